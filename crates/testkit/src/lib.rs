//! Local sites, hostile answers, scripted downloader and conformance suites for tests.

//! Files of a crawl job on disk.

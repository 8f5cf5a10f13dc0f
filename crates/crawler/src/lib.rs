//! The crawl engine of Huntsman: requests, politeness, frontier, middleware traits.

pub mod robots;

//! The crawl engine of Huntsman: requests, politeness, frontier, middleware traits.

pub mod autothrottle;
pub mod referrer;
pub mod retry_after;
pub mod robots;

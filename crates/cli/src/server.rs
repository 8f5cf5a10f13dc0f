//! The server under `serve`, the demo's forum and the site of `bench crawl`.

pub(crate) use huntsman::serve::{Limits, serve, serve_pages};

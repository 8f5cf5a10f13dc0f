//! The server under `serve`, the demo's forum and the site of `bench crawl`.

pub(crate) use huntsman::serve::{
    ActiveRequest as Visit, HostNames as Names, Limits, Rejection as Untaken, serve, serve_pages,
};

//! A Chromium without a network: it renders pages, and the program answers every request that they make.
//!
//! A browser that reaches the network itself goes around everything that a crawler promises: the guard of addresses, robots.txt, the pace of a
//! host. So this one reaches nothing. Each request of a page, a frame or a worker is handed to a [`Network`], and the page sees its answer.

mod network;
mod rendered;
mod rendering;

pub use network::{Answer, Asked, Kind, Network, NetworkFuture, Refused};
pub use rendered::{ConsoleLine, Rendered, Shot, SubRequest};
pub use rendering::{Action, Ready, Rendering, Step};

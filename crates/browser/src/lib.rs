//! A Chromium without a network: it renders pages, and the program answers every request that they make.
//!
//! A browser that reaches the network itself goes around everything that a crawler promises: the guard of addresses, robots.txt, the pace of a
//! host. So this one reaches nothing. Each request of a page, a frame or a worker is handed to a [`Network`], and the page sees its answer.
//! Images, media, fonts and pings are never asked. What interception does not see, such as sockets, comes to a proxy that refuses it.
//! So do the scripts of workers that workers start, which Chromium tells of to nobody, and now and then a shared worker made of a blob.
//!
//! It is not a driver of browsers in general: there is no window, nothing is downloaded, no page opens another one, and automation is not hidden.
//! It runs on Unix, and needs a Chromium of any recent version; the Debian package `chromium-headless-shell` is the smallest.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use huntsman_browser::{Answer, Asked, Browser, Network, NetworkFuture, Refused, Rendering, Settings};
//!
//! /// A site of one page.
//! struct Site;
//!
//! impl Network for Site {
//!     fn answer(&self, asked: Asked) -> NetworkFuture<'_> {
//!         Box::pin(async move {
//!             if asked.url != "https://example.org/" {
//!                 return Err(Refused { reason: "unknown".to_owned() });
//!             }
//!             let headers = vec![("Content-Type".to_owned(), "text/html".to_owned())];
//!             let body = "<p></p><script>document.querySelector('p').textContent = 1 + 1</script>".into();
//!             Ok(Answer { status: 200, headers, body })
//!         })
//!     }
//! }
//!
//! # async fn example() -> Result<(), huntsman_browser::Error> {
//! let browser = Browser::new(Settings::default())?;
//! let page = browser.render("https://example.org/", &Rendering::default(), Arc::new(Site)).await?;
//! assert!(page.html.contains("<p>2</p>"));
//! browser.close().await;
//! # Ok(())
//! # }
//! ```

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

// The kit of the tests names the crate as others do.
#[cfg(test)]
extern crate self as huntsman_browser;

mod browser;
mod connection;
mod error;
mod executable;
mod flags;
#[cfg(test)]
mod leaks;
mod message;
mod network;
mod page;
mod process;
mod processes;
mod profiles;
mod proxy;
mod rendered;
mod rendering;
mod settings;
mod targets;

pub use browser::{Browser, Stats};
pub use error::Error;
pub use network::{Answer, Asked, Kind, Network, NetworkFuture, Refused};
pub use rendered::{ConsoleLine, Exchange, Rendered, Shot, SubRequest};
pub use rendering::{Action, Ready, Rendering, Step};
pub use settings::Settings;

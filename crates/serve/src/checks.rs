//! Copyvio checks over HTTP: an API in the shape of Earwig's Copyvio Detector, pages with forms to paste texts into,
//! and metrics. `huntsman serve` is this service on a socket.
//!
//! A request passes the layers of the site (host name, token). Its parameters are read into an order, and the
//! [`Checker`](huntsman_sweep::service::Checker), which all requests share, carries out the order. Everything that a
//! client decides is bounded: connections, bytes, time, concurrent checks, and the addresses that are fetched.
//!
//! ```no_run
//! # async fn run() -> huntsman_crawler::Result<()> {
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use huntsman_serve::checks::{Access, Service};
//! use huntsman_serve::{Limits, serve};
//! use huntsman_sweep::service::{ArticleReader, Checker, Wikis};
//! use huntsman_sweep::{CheckPlan, Links, Workspace};
//! use tokio::net::TcpListener;
//! use tokio::sync::watch;
//!
//! let workspace = Workspace::start(None, |crawler| crawler)?;
//! let reader = ArticleReader::start(None, Duration::from_secs(20), |crawler| crawler)?;
//! let checker = Checker::new(workspace, reader, CheckPlan::default(), vec![Arc::new(Links)], 8);
//! let listener = TcpListener::bind("127.0.0.1:8765").await?;
//! let access = Access::new(listener.local_addr()?, None)?;
//! let routes = Service::new(access, checker, Wikis::default()).routes();
//! let (_stop, stopped) = watch::channel(false);
//! serve(listener, routes, Limits::default(), stopped).await;
//! # Ok(()) }
//! ```

mod api;
mod metrics;
mod order;
mod pages;
mod params;
mod question;
mod site;

pub use crate::access::{Access, AccessError};
pub use site::Service;

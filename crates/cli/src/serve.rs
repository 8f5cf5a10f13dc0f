//! The server: an API in the shape of Earwig's Copyvio Detector, pages with forms to paste texts into, and metrics.
//!
//! A request passes the layers of the site (host name, token), becomes a question (its parameters), then an order;
//! the [`Checker`](huntsman::sweep::service::Checker), which all requests share, carries out the order. Everything that a client decides is bounded:
//! connections, bytes, time, concurrent checks, and the addresses that are fetched.

mod api;
mod args;
mod gate;
mod metrics;
mod order;
mod pages;
mod params;
mod question;
mod site;

pub(crate) use args::ServeArgs;
pub(crate) use gate::Gate;
pub(crate) use metrics::Telemetry;
pub(crate) use site::{Service, routes};

//! Tests of the HTTP client against scripted servers on loopback.

mod addresses;
mod basics;
mod limits;
mod protocol;
mod proxies;
mod reuse;
mod secure;
mod support;
mod timeouts;

//! The HTTP client against scripted servers on loopback: one program, because linking costs more than running.

mod addresses;
mod basics;
mod limits;
mod protocol;
mod proxies;
mod reuse;
mod secure;
mod support;
mod timeouts;

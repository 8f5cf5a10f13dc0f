//! The HTTP client against scripted servers on loopback: one program, because linking costs more than running.

mod addresses;
mod basics;
mod limits;
mod protocol;
mod reuse;
mod support;
mod timeouts;

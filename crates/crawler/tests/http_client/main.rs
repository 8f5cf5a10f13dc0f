//! The HTTP client against scripted servers on loopback: one program, because linking costs more than running.

mod basics;
mod support;

//! Logging that cannot panic: the macros of `tracing`, with every panic caught.
//!
//! The program's subscriber writes a log line in the middle of the task that logs. Some subscribers panic, above all
//! when their output is gone: `spider 2>&1 | head -1` closes the pipe after one line, and the subscriber reports the
//! failed write on standard error, which is closed as well. A crawl must not lose a page, let alone a task, because
//! of a log line, so every line of the engine and of the built-in components goes through these macros. The line that
//! failed is lost; later lines are tried again.
//!
//! ```
//! use huntsman_crawler::log;
//!
//! log::warn!(pages = 3, "the site answers slowly");
//! ```

use std::panic::{AssertUnwindSafe, catch_unwind};

#[doc(hidden)]
pub use tracing;

pub use crate::{
    log_debug as debug, log_error as error, log_info as info, log_trace as trace, log_warn as warn,
};

/// Writes a log line and ignores a panic.
#[doc(hidden)]
pub fn guarded(write: impl FnOnce()) {
    // The failure cannot be reported, because the log itself failed.
    let _ = catch_unwind(AssertUnwindSafe(write));
}

/// Logs at level ERROR, as `tracing::error!`; cannot panic.
#[doc(hidden)]
#[macro_export]
macro_rules! log_error {
    ($($line:tt)+) => { $crate::log::guarded(|| $crate::log::tracing::error!($($line)+)) };
}

/// Logs at level WARN, as `tracing::warn!`; cannot panic.
#[doc(hidden)]
#[macro_export]
macro_rules! log_warn {
    ($($line:tt)+) => { $crate::log::guarded(|| $crate::log::tracing::warn!($($line)+)) };
}

/// Logs at level INFO, as `tracing::info!`; cannot panic.
#[doc(hidden)]
#[macro_export]
macro_rules! log_info {
    ($($line:tt)+) => { $crate::log::guarded(|| $crate::log::tracing::info!($($line)+)) };
}

/// Logs at level DEBUG, as `tracing::debug!`; cannot panic.
#[doc(hidden)]
#[macro_export]
macro_rules! log_debug {
    ($($line:tt)+) => { $crate::log::guarded(|| $crate::log::tracing::debug!($($line)+)) };
}

/// Logs at level TRACE, as `tracing::trace!`; cannot panic.
#[doc(hidden)]
#[macro_export]
macro_rules! log_trace {
    ($($line:tt)+) => { $crate::log::guarded(|| $crate::log::tracing::trace!($($line)+)) };
}

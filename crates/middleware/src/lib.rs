//! The built-in middlewares, sinks and plugins of Huntsman.

//! Tests of the shell through its public interface.

mod commands;

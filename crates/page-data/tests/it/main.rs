//! Tests against what independent programs made of the same input.

mod json_path;
mod linked_data;

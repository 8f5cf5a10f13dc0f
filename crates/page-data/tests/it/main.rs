//! Tests against what independent programs made of the same input.

mod linked_data;

//! Tests against what an independent program made of the same paths and documents.

mod json_path;

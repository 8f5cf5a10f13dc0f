//! Tests of expressions and documents.

mod documents;
mod expressions;
mod hostile;
mod index;

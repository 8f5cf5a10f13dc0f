//! Tests against tables of cases.

mod canonical;

//! JSONPath (RFC 9535): selects values of JSON, within a budget of steps.
//!
//! ```
//! use huntsman_json_path::JsonPath;
//! use serde_json::json;
//!
//! let shop = json!({"items": [{"name": "mill", "price": 7}, {"name": "dam", "price": 9}]});
//! let names = JsonPath::new("$.items[?@.price > 8].name")?.select(&shop)?;
//! assert_eq!(names, ["dam"]);
//! # Ok::<(), huntsman_json_path::Error>(())
//! ```
//!
//! It reads no JSON and knows no page. `derive(Item)` compiles it into the compiler to check paths, so it has few dependencies.

mod check;
mod error;
mod evaluate;
mod path;

pub use error::Error;
pub use path::{JsonPath, Limits};

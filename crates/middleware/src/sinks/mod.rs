//! Sinks: pipelines that write items to files, and the observer that records dropped requests.

mod csv;
mod drops;
mod feed;
mod json;
mod jsonl;
mod name;
mod position;
mod record;
mod target;
mod xml;

pub use csv::Csv;
pub use drops::DropLog;
pub use feed::{Feed, FeedSettings, FieldChoice, Format};
pub use json::Json;
pub use jsonl::JsonLines;
pub use position::FilePosition;
pub use target::Compression;
pub(crate) use target::{Boundary, Lines, Writer, explain, open_to_append};
pub use xml::Xml;

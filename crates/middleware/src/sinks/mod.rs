//! Sinks: pipelines that write items to files, and the observer that records dropped requests.

mod by_name;
mod csv;
mod delivery;
mod drops;
mod feed;
mod json;
mod jsonl;
mod name;
#[cfg(feature = "parquet")]
mod parquet;
mod place;
mod position;
mod record;
#[cfg(feature = "s3")]
mod s3;
mod settled;
#[cfg(feature = "sqlite")]
mod sqlite;
mod target;
mod xml;

pub use by_name::{FeedStart, NamedFeed};
pub use csv::{Csv, csv_row, csv_text};
pub use delivery::Completion;
pub use drops::DropLog;
pub use feed::{Feed, FeedSettings, FieldChoice, Format};
pub use json::Json;
pub use jsonl::JsonLines;
#[cfg(feature = "parquet")]
pub use parquet::Parquet;
pub use position::FilePosition;
pub use settled::SettledPages;
#[cfg(feature = "sqlite")]
pub use sqlite::{Sqlite, TablePosition};
pub use target::Compression;
pub(crate) use target::{Boundary, Lines, Writer, explain, open_to_append};
pub use xml::Xml;

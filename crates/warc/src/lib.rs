//! WARC files (ISO 28500): records are written and read one at a time, and damage is told where it is.
//!
//! [`Record`] makes a record, and [`WarcWriter`] writes records to a file, each as a gzip member of its own.
//! [`WarcReader`] reads files of the versions 0.17 to 1.1, compressed or not. After damage it goes on with the next record that it finds.
//!
//! [`Captures`] finds the records that answer a request among [`Archives`], which are files, WACZ files or objects of a bucket, and [`Payload`] is what
//! such a record has.
//!
//! [`CdxjIndex`] is the index of many files by which players find captures.
//!
//! The crate knows nothing of crawls and writes no files but those that it sorts an index with; ARC files and files that are compressed with zstd are refused by name.
//!
//! ```
//! use huntsman_warc::{Options, Record, RecordKind, WarcReader, WarcWriter};
//!
//! let mut warc = WarcWriter::new(Vec::new(), Options::default());
//! warc.write(&Record::info("a.warc.gz", "2026-01-01T00:00:00Z", &[("software", "example")]))?;
//! let page = Record::new(RecordKind::Response, "2026-01-01T00:00:01Z")
//!     .field("WARC-Target-URI", "http://site.example/")
//!     .http(b"HTTP/1.1 200 OK\r\n\r\n", b"hello");
//! warc.write(&page)?;
//! let file = warc.finish()?;
//!
//! let mut reader = WarcReader::new(&file[..]);
//! let mut kinds = Vec::new();
//! while let Some(head) = reader.next_head()? {
//!     kinds.push(head.kind().to_owned());
//! }
//! assert_eq!(kinds, ["warcinfo", "response"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod archive;
mod captures;
mod cdxj;
mod check;
mod digest;
mod error;
mod head;
mod key;
mod member;
mod message;
mod moment;
mod named;
mod payload;
mod posted;
mod reader;
mod record;
mod source;
mod stream;
mod surt;
mod wacz;
mod writer;

pub use archive::Archive;
pub use captures::{Answer, ArchiveError, Capture, Captures, IndexLine, index_lines};
pub use cdxj::{CdxjIndex, index_file};
pub use check::{Check, Finding};
pub use digest::{Digest, DigestKind, Hasher};
pub use error::ReadError;
pub use head::RecordHead;
pub use key::CaptureKey;
pub use message::{HttpHead, request_head, response_head, unchunked};
pub use moment::Moment;
pub use named::{Archives, NameError, is_archive_name, is_index_name, is_wacz_name};
pub use payload::{Payload, is_packed};
pub use reader::{Block, Span, WarcReader};
pub use record::{Options, Record, RecordKind, record_id};
pub use surt::surt;
pub use wacz::{Packed, PackedPage, PageText, WaczOptions, pack_wacz};
pub use writer::WarcWriter;

//! Single records of archives, which an index names.

use std::collections::VecDeque;
use std::io::Read;
use std::ops::ControlFlow;

use huntsman_warc::{Archives, index_lines};

use crate::archive::member;
use crate::input::{Each, ReadOptions, SourceError};
use crate::record::{Body, Position, RawDocument};

/// Records that are fetched ahead of the reader, so that those of a bucket do not wait for one round trip each.
const AHEAD: usize = 64;

/// The records that the lines of an index name, and the archives in which they are.
#[derive(Debug)]
pub struct Members(Archives);

/// A record that is being fetched, or why there is none.
struct Ahead {
    position: Position,
    offset: u64,
    record: Result<Box<dyn Read + Send>, String>,
}

impl Members {
    pub(crate) fn new(archives: Archives) -> Self {
        Self(archives)
    }

    /// Passes on the documents in the order of the lines. A record that cannot be read, or whose file is nowhere, is a document that
    /// cannot be.
    pub(crate) fn read(&self, options: &ReadOptions<'_>, each: Each<'_>) -> ControlFlow<()> {
        // The index was named first; others belong to WACZ files.
        let Some(index) = self.0.indexes().first() else { return ControlFlow::Continue(()) };
        let mut ahead = VecDeque::new();
        let mut flow = ControlFlow::Continue(());
        let read = index_lines(index, |number, line| {
            if flow.is_break() {
                return Ok(());
            }
            let (position, record) = match self.0.file_of(index, &line.file) {
                Some(file) => {
                    let record = file.open_at(line.offset, line.length).map_err(|error| error.to_string());
                    (Position { source: file.name().into(), line: None }, record)
                }
                None => {
                    let position = Position { source: index.name().into(), line: Some(number) };
                    (position, Err(line.without_file()))
                }
            };
            ahead.push_back(Ahead { position, offset: line.offset, record });
            if ahead.len() >= AHEAD {
                flow = ahead.pop_front().map_or(flow, |next| next.read(options, each));
            }
            Ok(())
        });
        flow?;
        for next in ahead {
            next.read(options, each)?;
        }
        match read {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => each(Err(SourceError(error.to_string()))),
        }
    }
}

impl Ahead {
    fn read(self, options: &ReadOptions<'_>, each: Each<'_>) -> ControlFlow<()> {
        let Self { position, offset, record } = self;
        let body = match record {
            Ok(record) => member(record, offset, options.max_document, options.archive_id),
            Err(why) => Some(Body::Unreadable(why)),
        };
        match body {
            Some(body) => each(Ok(RawDocument { position, body })),
            None => ControlFlow::Continue(()),
        }
    }
}

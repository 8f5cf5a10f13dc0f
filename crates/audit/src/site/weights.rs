//! What pages weigh: the bytes of their HTML and of the files of the site that they load.

use huntsman_crawler::Result;

use super::MAX_HOPS;
use super::columns::{Columns, Flag};
use super::walk::{Links, LinksWriter};
use crate::edges::EdgeParts;
use crate::record::{EdgeKind, Kind, Record};
use huntsman_disk::Scratch;

/// Bytes on the wire that a page may load, with its HTML.
pub(crate) const MAX_WEIGHT: u64 = 3_000_000;

/// A page that weighs more than [`MAX_WEIGHT`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heavy {
    /// Its number.
    pub(crate) page: u32,
    /// Bytes on the wire of its HTML and its files.
    pub(crate) bytes: u64,
    /// Number of the file with the most bytes.
    pub(crate) largest: Option<u32>,
}

/// The files that pages load, and their bytes.
#[derive(Debug)]
pub(super) struct Weights {
    loaded: LinksWriter,
    /// Bytes of each answer on the wire.
    bytes: Vec<u32>,
    /// The files of the page that is being read.
    files: Vec<u32>,
}

impl Weights {
    pub(super) fn new(scratch: &Scratch, number: u32) -> Self {
        Self { loaded: LinksWriter::new(scratch, number), bytes: vec![0; number as usize], files: Vec::new() }
    }

    /// Notes the size of an answer of the site.
    pub(super) fn note(&mut self, number: u32, record: &Record) {
        if matches!(record.kind, Kind::Page | Kind::Resource) && record.status == Some(200) {
            self.bytes[number as usize] = u32::try_from(record.wire_bytes).unwrap_or(u32::MAX);
        }
    }

    /// Notes a reference of the page that is being read. Browsers load one of the candidates of an image and the beginning of audio and video,
    /// and a frame is a page of its own.
    pub(super) fn refer(&mut self, to: u32, edge: &EdgeParts<'_>) {
        if matches!(edge.kind, EdgeKind::Script | EdgeKind::Style | EdgeKind::Image) && !edge.is_candidate {
            self.files.push(to);
        }
    }

    /// Ends the page that was read.
    pub(super) fn end(&mut self, page: u32) -> Result<()> {
        self.loaded.add(page, &mut self.files)?;
        self.files.clear();
        Ok(())
    }

    /// The pages that weigh too much.
    pub(super) fn heavy(self, columns: &Columns) -> Result<Vec<Heavy>> {
        let Self { loaded, bytes, .. } = self;
        let loaded: Links = loaded.finish();
        let (mut buffer, mut files, mut heavy) = (Vec::new(), Vec::new(), Vec::new());
        let is_page = |page: &u32| columns.has(*page, Flag::HTML) && columns.kind(*page) == Kind::Page;
        for page in (0..columns.len()).filter(is_page) {
            loaded.of(page, &mut buffer, &mut files)?;
            files.iter_mut().for_each(|file| *file = end_of(columns, *file));
            files.sort_unstable();
            files.dedup();
            let of = |number: u32| u64::from(bytes[number as usize]);
            let total = of(page) + files.iter().map(|file| of(*file)).sum::<u64>();
            if total > MAX_WEIGHT {
                let largest = files.iter().copied().max_by_key(|file| of(*file));
                heavy.push(Heavy { page, bytes: total, largest });
            }
        }
        Ok(heavy)
    }
}

/// The answer at the end of the redirects of a URL.
fn end_of(columns: &Columns, url: u32) -> u32 {
    (0..MAX_HOPS).fold(url, |at, _| {
        let answered = columns.requested(at).unwrap_or(at);
        columns.redirect(answered).unwrap_or(answered)
    })
}

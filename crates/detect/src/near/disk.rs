//! An index that persists on disk.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

use super::check::IndexCheck;
use super::directory::{self, Directory};
use super::document::{DocId, Document, NearMatch};
use super::engine::{DOCUMENTS_AT_ONCE, Engine, Journal, check_languages, last_of_each};
use super::error::{IndexError, IndexErrorKind};
use super::frame::Group;
use super::identity::Identity;
use super::index::{IndexStats, NearIndex};
use super::language::Language;
use super::log::{Contents, Log};
use super::pairs::{self, Pair};
use super::partition::Change;
use super::rows::Rows;
use super::segment::{Damage, Segment};
use crate::simhash::SimHash;

/// An index in memory with a log on disk. It is as fast as [`MemoryIndex`](super::MemoryIndex), and it survives the end of its process.
///
/// | file | content |
/// |---|---|
/// | `lock` | locked while a process works on the index; the system unlocks it when that process ends, however it ends |
/// | `index.txt` | the format version, and the identity of the index |
/// | `log-0000000001` | the insertions and removals, with checksums; 24 bytes per document with a number; more files after [`compact`](Self::compact) |
///
/// A batch that was inserted survives a kill at any time; of a batch whose insertion is interrupted, the documents up to some point
/// survive, or none. Everything before a [`flush`](NearIndex::flush) survives a loss of power as well. An incomplete write at the end is
/// dropped at the next opening, with a warning. Any other damage is an error, which names the file and the byte; no documents are dropped
/// silently, and a damaged index is never started anew.
///
/// Opening reads the log and builds the tables, about 0.5 us per document. If an error says that the disk is full, the index still answers
/// queries; inserting works again when there is room.
#[derive(Debug)]
pub struct DiskIndex {
    engine: Engine,
    log: Log,
    torn: u64,
    directory: Directory,
}

/// A log is rewritten on opening if it has this many records that are superseded, and more of them than current ones: 24 MB. Less in tests.
const WASTED_RECORDS: u64 = if cfg!(test) { 10_000 } else { 1 << 20 };

impl DiskIndex {
    /// Opens the index in a directory, or makes an empty one.
    ///
    /// # Errors
    /// - [`Identity`](super::IndexErrorKind::Identity): the index was made for another k or other features.
    /// - [`Locked`](super::IndexErrorKind::Locked): another process has it open.
    /// - [`Damaged`](super::IndexErrorKind::Damaged): a file is missing, or its content is not as it was written.
    /// - [`Format`](super::IndexErrorKind::Format): it was written by a newer version.
    /// - [`Full`](super::IndexErrorKind::Full), [`Io`](super::IndexErrorKind::Io): the disk is full, or fails otherwise.
    pub fn open(path: impl AsRef<Path>, identity: Identity) -> Result<Self, IndexError> {
        Self::build(path, identity, [])
    }

    /// Opens the index in a directory, or makes one, and inserts many documents in bulk: about a microsecond each, in less memory than
    /// [`insert`](NearIndex::insert) takes.
    ///
    /// Documents that were inserted before an error or a kill stay; to continue, pass the same documents again.
    ///
    /// # Errors
    /// As [`open`](Self::open); [`Input`](super::IndexErrorKind::Input): an id is too long, or there are too many languages.
    pub fn build(
        path: impl AsRef<Path>,
        identity: Identity,
        documents: impl IntoIterator<Item = Document>,
    ) -> Result<Self, IndexError> {
        let directory = Directory::open(path.as_ref(), &identity)?;
        let (log, mut languages, contents) = Log::open(&directory.path, room_for, keep)?;
        let mut documents = documents.into_iter();
        let mut batch = Vec::new();
        loop {
            batch.clear();
            batch.extend(documents.by_ref().take(DOCUMENTS_AT_ONCE));
            if batch.is_empty() {
                break;
            }
            add(&batch, &log, &mut languages)?;
        }
        let engine = Engine::with_rows(identity, languages);
        let index = Self { engine, log, torn: contents.torn, directory };
        let records = index.log.records();
        if records > 2 * index.stats()?.documents() + WASTED_RECORDS {
            index.compact()?;
        }
        Ok(index)
    }

    /// The identity of the index in a directory; `None` if there is no index. Needs no lock.
    ///
    /// # Errors
    /// The index is damaged, was written by a newer version, or cannot be read.
    pub fn identity_of(path: impl AsRef<Path>) -> Result<Option<Identity>, IndexError> {
        directory::identity_of(path.as_ref())
    }

    /// Checks all stored data of the index in a directory, and changes nothing.
    ///
    /// # Errors
    /// - [`Format`](super::IndexErrorKind::Format): there is no index, or it was written by a newer version.
    /// - [`Locked`](super::IndexErrorKind::Locked): another process has it open.
    /// - [`Io`](super::IndexErrorKind::Io): it cannot be read.
    pub fn verify(path: impl AsRef<Path>) -> Result<IndexCheck, IndexError> {
        IndexCheck::of(path.as_ref())
    }

    /// Repairs a damaged index so that it can be opened: keeps everything that is intact, and returns the damaged parts of its log.
    ///
    /// The damaged files stay beside the repaired ones, as `.damaged`. If the identity of the index is lost, it becomes `identity`. To
    /// restore lost documents, insert them again.
    ///
    /// # Errors
    /// As [`open`](Self::open), except for damage.
    pub fn repair(path: impl AsRef<Path>, identity: Identity) -> Result<Vec<Damage>, IndexError> {
        let path = path.as_ref();
        // Fails here if there is no index, so that none is created.
        drop(Directory::lock_shared(path)?);
        let directory = Directory::lock(path)?;
        match directory::identity_of(path) {
            Ok(Some(found)) => found.check(&identity).map_err(|error| error.at(path))?,
            Err(error) if error.kind() != IndexErrorKind::Damaged => return Err(error),
            Ok(None) | Err(_) => directory.write_identity(&identity)?,
        }
        Segment::repair_all(path)
    }

    /// Rewrites the log without superseded records. Other threads may use the index meanwhile.
    ///
    /// A log with more superseded records than current ones is also rewritten when it is opened, if there are at least a million of them.
    ///
    /// # Errors
    /// The disk is full or fails; the log is unchanged.
    pub fn compact(&self) -> Result<(), IndexError> {
        self.log.compact(|write| {
            for (language, snapshot) in self.engine.snapshots() {
                let mut documents = snapshot.documents();
                loop {
                    let batch = documents.by_ref().take(DOCUMENTS_AT_ONCE);
                    let changes: Vec<Change<'_>> =
                        batch.map(|(id, hash)| Change { id, hash, is_there: false }).collect();
                    if changes.is_empty() {
                        break;
                    }
                    write(&[(language, changes)])?;
                }
            }
            Ok(())
        })
    }

    /// Bytes of an incomplete write at the end of the log, which were dropped on opening.
    pub fn torn_bytes(&self) -> u64 {
        self.torn
    }

    /// The directory of the index.
    pub fn path(&self) -> &Path {
        &self.directory.path
    }

    /// As [`MemoryIndex::set_max_candidates`](super::MemoryIndex::set_max_candidates).
    pub fn set_max_candidates(&self, max_candidates: usize) {
        self.engine.set_max_candidates(max_candidates);
    }

    /// As [`MemoryIndex::scan`](super::MemoryIndex::scan).
    pub fn scan(&self, queries: &[(Language, SimHash)]) -> Vec<Vec<NearMatch>> {
        self.engine.scan(queries)
    }

    /// As [`MemoryIndex::pairs`](super::MemoryIndex::pairs).
    pub fn pairs(&self, each: &mut dyn FnMut(&Pair) -> ControlFlow<()>) {
        pairs::all(&self.engine, each);
    }

    /// As [`MemoryIndex::settle`](super::MemoryIndex::settle).
    pub fn settle(&self) {
        self.engine.settle();
    }
}

type Languages = BTreeMap<Language, Rows>;

/// Allocates rows for the contents of the log.
fn room_for(contents: &Contents) -> Languages {
    let rows = contents.records.iter().map(|(language, [numbers, texts])| {
        let mut rows = Rows::default();
        rows.reserve(*numbers, *texts);
        (*language, rows)
    });
    rows.collect()
}

fn keep(languages: &mut Languages, group: &Group<'_>) {
    let rows = languages.entry(group.language).or_default();
    group.records().for_each(|(id, hash)| rows.push(id, hash));
}

/// Logs documents and adds them to the rows.
fn add(documents: &[Document], log: &Log, languages: &mut Languages) -> Result<(), IndexError> {
    documents.iter().try_for_each(|document| document.id.check())?;
    let documents = last_of_each(documents);
    let mut changes = Vec::new();
    for documents in documents.chunk_by(|a, b| a.language == b.language) {
        let language = documents[0].language;
        if !languages.contains_key(&language) {
            check_languages(languages.len())?;
        }
        let rows = languages.entry(language).or_default();
        documents.iter().for_each(|document| rows.push((&document.id).into(), document.hash));
        let change = documents.iter().map(|document| Change {
            id: (&document.id).into(),
            hash: document.hash,
            is_there: false,
        });
        changes.push((language, change.collect()));
    }
    log.append(&changes)
}

impl NearIndex for DiskIndex {
    fn identity(&self) -> &Identity {
        self.engine.identity()
    }

    fn near(&self, queries: &[(Language, SimHash)]) -> Result<Vec<Vec<NearMatch>>, IndexError> {
        Ok(self.engine.near(queries))
    }

    fn get(&self, language: &Language, ids: &[DocId]) -> Result<Vec<Option<SimHash>>, IndexError> {
        Ok(self.engine.get(language, ids))
    }

    fn insert(&self, documents: &[Document]) -> Result<(), IndexError> {
        self.engine.insert(documents, &self.log)
    }

    fn remove(&self, language: &Language, ids: &[DocId]) -> Result<usize, IndexError> {
        self.engine.remove(language, ids, &self.log)
    }

    fn stats(&self) -> Result<IndexStats, IndexError> {
        let mut stats = self.engine.stats();
        stats.bytes.insert("log", self.log.bytes());
        Ok(stats)
    }

    fn for_each(&self, each: &mut dyn FnMut(&Document) -> ControlFlow<()>) -> Result<(), IndexError> {
        self.engine.for_each(each);
        Ok(())
    }

    fn flush(&self) -> Result<(), IndexError> {
        self.log.sync()
    }
}

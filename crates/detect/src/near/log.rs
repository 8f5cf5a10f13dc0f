//! The log on disk: the insertions and removals, in their order.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::engine::Journal;
use super::error::{IndexError, IndexErrorKind};
use super::frame::{self, FrameHeader, Group};
use super::language::Language;
use super::partition::Change;
use super::segment::{End, NewSegment, Segment};

/// A log: segments, of which only the last one is appended to.
#[derive(Debug)]
pub(super) struct Log {
    directory: PathBuf,
    tail: Mutex<Tail>,
    /// Held during a compaction.
    compaction: Mutex<()>,
}

/// The segment that is appended to.
#[derive(Debug)]
struct Tail {
    segment: Segment,
    medium: Arc<dyn Medium>,
    len: u64,
    /// The length up to which a sync mark (a frame without records) says that the log was synced.
    marked: u64,
    /// Bytes of all other segments.
    other_bytes: u64,
    /// Records of insertions and removals, in this segment and in all others.
    records: [u64; 2],
    /// Set when the state of the data on disk is unknown.
    is_broken: bool,
    frame: Vec<u8>,
}

/// The output of a segment: a file, or in tests a medium that fails.
trait Medium: std::fmt::Debug + Send + Sync {
    fn write(&self, bytes: &[u8]) -> io::Result<()>;
    /// Drops the bytes after the first `len`; the next write goes there.
    fn truncate(&self, len: u64) -> io::Result<()>;
    fn sync(&self) -> io::Result<()>;
}

impl Medium for File {
    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let mut file = self;
        file.write_all(bytes)
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        let mut file = self;
        file.set_len(len)?;
        file.seek(SeekFrom::Start(len)).map(|_| ())
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }
}

/// The contents of a log.
#[derive(Debug, Default)]
pub(super) struct Contents {
    /// For each language, the numbers of records whose ids are numbers and texts.
    pub(super) records: BTreeMap<Language, [usize; 2]>,
    /// Bytes of an incomplete write at the end, which are dropped.
    pub(super) torn: u64,
}

/// The largest buffer that is kept for the next frame.
const MAX_KEPT_BUFFER: usize = 1 << 20;

impl Log {
    /// Makes the log of a new index.
    pub(super) fn create(directory: &Path) -> Result<(), IndexError> {
        NewSegment::create(&Segment::new(directory, 1), true)?.publish()?;
        Ok(())
    }

    /// Opens the log and reads it twice: first to check it and to pass its contents to `counted`, then to pass each group to `keep`.
    ///
    /// An incomplete write at the end is cut off.
    ///
    /// # Errors
    /// The log is damaged, was written by a newer version, or cannot be read.
    pub(super) fn open<T>(
        directory: &Path,
        counted: impl FnOnce(&Contents) -> T,
        mut keep: impl FnMut(&mut T, &Group<'_>),
    ) -> Result<(Self, T, Contents), IndexError> {
        let segments = Segment::current(directory)?;
        let mut contents = Contents::default();
        let (mut records, mut other_bytes, mut len) = ([0; 2], 0, 0);
        for (at, segment) in segments.iter().enumerate() {
            let is_last = at + 1 == segments.len();
            let end = segment.read(&mut |group| {
                let [numbers, texts] = contents.records.entry(group.language).or_default();
                *(if group.kind.has_numbers() { numbers } else { texts }) += group.count;
                records[usize::from(!is_last)] += group.count as u64;
            })?;
            match end {
                End::Whole(bytes) if is_last => len = bytes,
                End::Whole(bytes) => other_bytes += bytes,
                End::Torn { at, bytes } if is_last => (len, contents.torn) = (at, bytes),
                End::Torn { at, .. } => {
                    return Err(segment.damaged(at, "its end is missing, and there is a segment behind it"));
                }
            }
        }
        let last = segments.last().expect("a log has a segment");
        let mut kept = counted(&contents);
        for segment in &segments {
            segment.read(&mut |group| keep(&mut kept, group))?;
        }
        let failed = last.failed("opening the log to write");
        let file = huntsman_files::open_write(&last.path).map_err(&failed)?;
        if contents.torn > 0 {
            tracing::warn!(
                file = %last.path.display(), offset = len, bytes = contents.torn,
                "the last record was not written to its end and is dropped"
            );
        }
        file.truncate(len).map_err(&failed)?;
        let tail = Tail {
            segment: last.clone(),
            medium: Arc::new(file),
            len,
            marked: if last.is_marked(len)? { len } else { 0 },
            other_bytes,
            records,
            is_broken: false,
            frame: Vec::new(),
        };
        let log =
            Self { directory: directory.to_owned(), tail: Mutex::new(tail), compaction: Mutex::new(()) };
        Ok((log, kept, contents))
    }

    fn tail(&self) -> MutexGuard<'_, Tail> {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes on disk.
    pub(super) fn bytes(&self) -> u64 {
        let tail = self.tail();
        tail.len + tail.other_bytes
    }

    /// The number of insertions and removals in the log.
    pub(super) fn records(&self) -> u64 {
        self.tail().records.iter().sum()
    }

    /// Makes the written records durable and appends a sync mark. Other threads may write meanwhile.
    pub(super) fn sync(&self) -> Result<(), IndexError> {
        let tail = self.tail();
        tail.check()?;
        let (medium, segment, len) = (Arc::clone(&tail.medium), tail.segment.clone(), tail.len);
        drop(tail);
        medium.sync().map_err(|error| {
            // After a failed sync, the system may have dropped the unwritten data.
            self.tail().is_broken = true;
            IndexError::io("syncing the log", error).at(&segment.path)
        })?;
        let mut tail = self.tail();
        // If records were written meanwhile, the next sync writes the mark.
        if tail.segment.number == segment.number && tail.len == len && tail.marked != len {
            // On a full disk the mark is missing, but the data is durable nevertheless.
            let _ = tail.append(&[]);
            tail.marked = tail.len;
        }
        Ok(())
    }

    /// Replaces all segments with one that holds the current documents, which `write` passes as insertions.
    ///
    /// Other changes go on meanwhile. The documents that `write` passes must include all that was logged before it was called.
    pub(super) fn compact(
        &self,
        write: impl FnOnce(&mut WriteChanges<'_>) -> Result<(), IndexError>,
    ) -> Result<(), IndexError> {
        let _one_at_a_time = self.compaction.lock().unwrap_or_else(PoisonError::into_inner);
        let base = self.roll()?;
        let mut new = NewSegment::create(&base, true)?;
        let (mut records, mut payload) = (0, Vec::new());
        let written = write(&mut |changes| {
            frame::encode(changes, &mut payload);
            records += changes.iter().map(|(_, changes)| changes.len() as u64).sum::<u64>();
            new.write(&payload)
        });
        // A replacement must be durable before the older data is removed.
        if let Err(error) = written.and_then(|()| self.sync()) {
            new.discard();
            return Err(error);
        }
        let bytes = new.publish()?;
        let mut tail = self.tail();
        (tail.other_bytes, tail.records[1]) = (bytes, records);
        drop(tail);
        Segment::current(&self.directory).map(|_| ())
    }

    /// Starts another segment; returns the one that is now complete.
    fn roll(&self) -> Result<Segment, IndexError> {
        // Syncs most of the data first, so that writers wait only briefly under the lock.
        self.sync()?;
        let mut tail = self.tail();
        tail.check()?;
        if let Err(error) = tail.medium.sync() {
            tail.is_broken = true;
            return Err(IndexError::io("syncing the log", error).at(&tail.segment.path));
        }
        let next = Segment::new(&self.directory, tail.segment.number + 1);
        let len = NewSegment::create(&next, false)?.publish()?;
        let failed = next.failed("opening the log to write");
        let file = huntsman_files::open_write(&next.path).map_err(&failed)?;
        file.truncate(len).map_err(&failed)?;
        tail.medium = Arc::new(file);
        tail.other_bytes += tail.len;
        (tail.len, tail.marked) = (len, len);
        tail.records = [0, tail.records[0] + tail.records[1]];
        Ok(std::mem::replace(&mut tail.segment, next))
    }
}

/// A callback that writes insertions.
pub(super) type WriteChanges<'a> = dyn FnMut(&[(Language, Vec<Change<'_>>)]) -> Result<(), IndexError> + 'a;

impl Journal for Log {
    /// Writes changes in one step: if the process ends, all of them are in the log, or none.
    fn append(&self, changes: &[(Language, Vec<Change<'_>>)]) -> Result<(), IndexError> {
        let mut payload = std::mem::take(&mut self.tail().frame);
        frame::encode(changes, &mut payload);
        let mut tail = self.tail();
        tail.append(&payload)?;
        tail.records[0] += changes.iter().map(|(_, changes)| changes.len() as u64).sum::<u64>();
        if payload.capacity() <= MAX_KEPT_BUFFER {
            tail.frame = payload;
        }
        Ok(())
    }
}

impl Tail {
    fn check(&self) -> Result<(), IndexError> {
        if !self.is_broken {
            return Ok(());
        }
        let message = "an earlier write failed and could not be undone; open the index again";
        Err(IndexError::new(IndexErrorKind::Io, message).at(&self.segment.path))
    }

    fn append(&mut self, payload: &[u8]) -> Result<(), IndexError> {
        self.check()?;
        let header = FrameHeader::of(payload, self.len).to_bytes(self.segment.number);
        let written = self.medium.write(&header).and_then(|()| self.medium.write(payload));
        if let Err(error) = written {
            // The incomplete frame is removed, and the next one is written in its place.
            self.is_broken = self.medium.truncate(self.len).is_err();
            return Err(IndexError::io("writing the log", error).at(&self.segment.path));
        }
        self.len += (header.len() + payload.len()) as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

    use tempfile::tempdir;

    use super::*;
    use crate::near::{DocId, IndexErrorKind};
    use crate::simhash::SimHash;

    /// A simulated disk file with a limit on its bytes.
    #[derive(Debug)]
    struct Small {
        file: File,
        room: AtomicU64,
        len: AtomicU64,
        may_truncate: AtomicBool,
    }

    impl Medium for Arc<Small> {
        fn write(&self, bytes: &[u8]) -> io::Result<()> {
            let free = self.room.load(Ordering::Relaxed) - self.len.load(Ordering::Relaxed);
            let fits = bytes.len().min(free as usize);
            Medium::write(&self.file, &bytes[..fits])?;
            self.len.fetch_add(fits as u64, Ordering::Relaxed);
            if fits < bytes.len() { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
        }

        fn truncate(&self, len: u64) -> io::Result<()> {
            if !self.may_truncate.load(Ordering::Relaxed) {
                return Err(io::Error::other("the disk is gone"));
            }
            self.len.store(len, Ordering::Relaxed);
            self.file.truncate(len)
        }

        fn sync(&self) -> io::Result<()> {
            Ok(())
        }
    }

    /// A log on such a disk, and the disk.
    fn small(directory: &Path, room: u64) -> (Log, Arc<Small>) {
        Log::create(directory).expect("a log");
        let (log, (), _) = Log::open(directory, |_| (), |(), _| ()).expect("a log");
        let mut tail = log.tail();
        let file = huntsman_files::open_write(&tail.segment.path).expect("a file");
        let small = Arc::new(Small {
            file,
            room: AtomicU64::new(tail.len + room),
            len: AtomicU64::new(tail.len),
            may_truncate: AtomicBool::new(true),
        });
        small.file.truncate(tail.len).expect("truncate");
        tail.medium = Arc::new(Arc::clone(&small));
        drop(tail);
        (log, small)
    }

    fn put(log: &Log, number: u64) -> Result<(), IndexError> {
        let id = DocId::from(number);
        let change = Change { id: (&id).into(), hash: SimHash(1), is_there: false };
        log.append(&[(Language::parse("hi").expect("a name"), vec![change])])
    }

    /// The numeric ids in the log of a directory.
    fn numbers(directory: &Path) -> Vec<u64> {
        let (_, numbers, contents) = Log::open(
            directory,
            |_| Vec::new(),
            |numbers, group| {
                numbers.extend(group.records().map(|(id, _)| match DocId::from(id) {
                    DocId::Number(number) => number,
                    DocId::Text(text) => panic!("{text} was not put in"),
                }));
            },
        )
        .expect("the log is whole");
        assert_eq!(contents.torn, 0);
        numbers
    }

    #[test]
    fn a_full_disk_is_an_error_and_the_log_goes_on_when_there_is_room() {
        for room in (0..200).step_by(7) {
            let directory = tempdir().expect("a directory");
            let (log, small) = small(directory.path(), room);
            let mut written = Vec::new();
            let mut refused = 0;
            for number in 0..10 {
                match put(&log, number) {
                    Ok(()) => written.push(number),
                    Err(error) => {
                        assert_eq!(error.kind(), IndexErrorKind::Full);
                        assert!(error.to_string().contains("log-0000000001: writing the log"), "{error}");
                        refused += 1;
                    }
                }
            }
            assert!(refused > 0, "there is no room for ten");
            assert_eq!(numbers(directory.path()), written, "room for {room}");
            small.room.store(1 << 20, Ordering::Relaxed);
            put(&log, 99).expect("there is room");
            written.push(99);
            assert_eq!(log.records(), written.len() as u64);
            assert_eq!(numbers(directory.path()), written, "room for {room}, then more");
        }
    }

    #[test]
    fn a_write_that_cannot_be_undone_is_the_last() {
        let directory = tempdir().expect("a directory");
        let (log, small) = small(directory.path(), 100);
        put(&log, 1).expect("there is room");
        small.may_truncate.store(false, Ordering::Relaxed);
        assert_eq!(put(&log, 2).expect_err("it is full").kind(), IndexErrorKind::Full);
        small.room.store(1 << 20, Ordering::Relaxed);
        for error in
            [put(&log, 3).expect_err("it is not known what is there"), log.sync().expect_err("neither")]
        {
            assert_eq!(error.kind(), IndexErrorKind::Io);
            assert!(error.to_string().contains("open the index again"), "{error}");
        }
        drop(log);
        // Opens the log as it would be after a crash at this moment.
        let (log, numbers, contents) =
            Log::open(directory.path(), |_| 0, |count, group| *count += group.count)
                .expect("the log is whole");
        assert!(numbers == 1 && contents.torn > 0);
        put(&log, 4).expect("there is room");
    }
}

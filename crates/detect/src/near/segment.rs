//! One file of a log.

use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use huntsman_files::Replacement;

use super::error::{IndexError, IndexErrorKind};
use super::frame::{self, FrameHeader, Group, SegmentHeader};

/// The advice for the owner of a damaged index in this directory.
pub(super) fn advice(directory: &Path) -> String {
    format!(
        "restore the directory from a copy, or `huntsman dedup repair --index {}`, which keeps all that is whole",
        directory.display()
    )
}

/// A file of a log, identified by its number.
#[derive(Clone, Debug)]
pub(super) struct Segment {
    pub(super) number: u64,
    pub(super) path: PathBuf,
}

/// How reading a segment ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The segment is intact; its length in bytes.
    Whole(u64),
    /// The segment is not intact from a byte on, for this number of bytes.
    Torn { at: u64, bytes: u64 },
}

impl End {
    /// Whether the segment never held a record.
    pub(super) fn is_empty(self) -> bool {
        matches!(self, End::Whole(..=HEADER))
    }
}

const HEADER: u64 = SegmentHeader::LENGTH as u64;
const FRAME_HEADER: u64 = FrameHeader::LENGTH as u64;
/// An upper limit for the bytes of a frame.
const MAX_FRAME: u64 = 128 << 20;

impl Segment {
    pub(super) fn new(directory: &Path, number: u64) -> Self {
        Self { number, path: directory.join(format!("log-{number:010}")) }
    }

    /// The segments of a directory, the oldest first.
    pub(super) fn all(directory: &Path) -> Result<Vec<Segment>, IndexError> {
        let failed = |e| IndexError::io("reading the directory", e).at(directory);
        let mut segments = Vec::new();
        for entry in fs::read_dir(directory).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            let number = name.to_str().and_then(|name| name.strip_prefix("log-")?.parse().ok());
            segments.extend(number.map(|number| Segment::new(directory, number)));
        }
        segments.sort_by_key(|segment| segment.number);
        Ok(segments)
    }

    /// The segments in use: those from the last base on. Removes earlier ones, and files that were never completed.
    ///
    /// # Errors
    /// A segment is missing, or its start is damaged.
    pub(super) fn current(directory: &Path) -> Result<Vec<Segment>, IndexError> {
        let mut segments = Self::all(directory)?;
        let mut base = None;
        for (at, segment) in segments.iter().enumerate() {
            let header =
                segment.header()?.ok_or_else(|| segment.damaged(0, "it does not begin as a log does"))?;
            if header.is_base {
                base = Some(at);
            }
        }
        let Some(base) = base else {
            let message = format!("the beginning of the log is missing; {}", advice(directory));
            return Err(IndexError::new(IndexErrorKind::Damaged, message).at(directory));
        };
        let old = segments.drain(..base).collect::<Vec<_>>();
        for (segment, number) in segments.iter().zip(segments[0].number..) {
            if segment.number != number {
                let missing = Segment::new(directory, number);
                let message = format!("a segment of the log is missing; {}", advice(directory));
                return Err(IndexError::new(IndexErrorKind::Damaged, message).at(missing.path));
            }
        }
        for segment in old {
            huntsman_files::remove_file(&segment.path)
                .map_err(segment.failed("removing an old segment of the log"))?;
        }
        Ok(segments)
    }

    /// The segments in use, intact or not: those from the last base on.
    pub(super) fn counting(directory: &Path) -> Result<Vec<Segment>, IndexError> {
        let mut segments = Self::all(directory)?;
        let mut base = 0;
        for (at, segment) in segments.iter().enumerate() {
            base = if segment.is_base()? { at } else { base };
        }
        Ok(segments.split_off(base))
    }

    /// Whether all earlier segments are obsolete.
    pub(super) fn is_base(&self) -> Result<bool, IndexError> {
        Ok(self.header()?.is_some_and(|header| header.is_base))
    }

    pub(super) fn failed(&self, what: &'static str) -> impl Fn(io::Error) -> IndexError + use<> {
        let path = self.path.clone();
        move |e| IndexError::io(what, e).at(&path)
    }

    pub(super) fn damaged(&self, at: u64, what: &str) -> IndexError {
        let message = format!("damaged at byte {at}: {what}; {}", advice(self.directory()));
        IndexError::new(IndexErrorKind::Damaged, message).at(&self.path)
    }

    fn directory(&self) -> &Path {
        self.path.parent().expect("a segment is in a directory")
    }

    fn open(&self) -> Result<(File, u64), IndexError> {
        // Links are refused even for reading, because the file may be appended to later under the same name.
        let opened = huntsman_files::refuse_link(&self.path).and_then(|()| {
            let file = File::open(&self.path)?;
            let bytes = file.metadata()?.len();
            Ok((file, bytes))
        });
        opened.map_err(self.failed("opening the log"))
    }

    /// The header of the file; `None` if it is damaged.
    fn header(&self) -> Result<Option<SegmentHeader>, IndexError> {
        let (file, _) = self.open()?;
        let mut bytes = Vec::with_capacity(SegmentHeader::LENGTH);
        file.take(HEADER).read_to_end(&mut bytes).map_err(self.failed("reading the log"))?;
        let header = bytes.as_array().and_then(|bytes| SegmentHeader::read(bytes, self.number));
        match header {
            Some(SegmentHeader { version, .. }) if version > frame::VERSION => {
                let known = frame::VERSION;
                let message = format!("it has format {version}, of a newer program; this one knows {known}");
                Err(IndexError::new(IndexErrorKind::Format, message).at(&self.path))
            }
            header => Ok(header),
        }
    }

    /// Visits all groups of records in order.
    ///
    /// # Errors
    /// A part is damaged and is not just an incomplete write that a kill or a loss of power left at the end; or a record is malformed.
    pub(super) fn read(&self, visit: &mut dyn FnMut(&Group<'_>)) -> Result<End, IndexError> {
        let failed = self.failed("reading the log");
        let (file, end) = self.open()?;
        let mut reader = BufReader::with_capacity(1 << 20, file);
        reader.seek(SeekFrom::Start(HEADER)).map_err(&failed)?;
        let mut at = HEADER;
        let mut payload = Vec::new();
        while at < end {
            let frame = read_frame(&mut reader, self.number, at, end, &mut payload).map_err(&failed)?;
            if frame != Some(at) {
                let next = if frame.is_some() { Some(at) } else { self.next_whole(at + 1)? };
                return match next {
                    Some(next) => Err(self.damaged(
                        at,
                        &format!(
                            "what should be here is missing or changed, and from byte {next} on there is more"
                        ),
                    )),
                    None if self.is_torn(at, end)? => Ok(End::Torn { at, bytes: end - at }),
                    None => Err(self.damaged(at, "a complete record has the wrong checksum")),
                };
            }
            for group in frame::groups(&payload) {
                visit(&group.map_err(|what| self.damaged(at, what))?);
            }
            at += FRAME_HEADER + payload.len() as u64;
        }
        Ok(End::Whole(end))
    }

    /// Whether the damage at the end of the segment is just an incomplete write: the frame is shorter than it should be, or parts of it
    /// never reached the disk. No intact frame follows it, so no sync mark says that it was synced.
    fn is_torn(&self, at: u64, end: u64) -> Result<bool, IndexError> {
        let failed = self.failed("reading the log");
        let (mut file, _) = self.open()?;
        file.seek(SeekFrom::Start(at)).map_err(&failed)?;
        let mut bytes = Vec::new();
        file.take((end - at).min(MAX_FRAME)).read_to_end(&mut bytes).map_err(&failed)?;
        let Some((head, payload)) = bytes.split_first_chunk() else { return Ok(true) };
        let header = FrameHeader::read(head, self.number);
        let is_short = header.is_some_and(|header| u64::from(header.length) > end - at - FRAME_HEADER);
        Ok(is_short
            || huntsman_files::has_unwritten(head, at)
            || huntsman_files::has_unwritten(payload, at + FRAME_HEADER))
    }

    /// Whether the last frame within this length is a sync mark, which says that everything before it was synced.
    pub(super) fn is_marked(&self, len: u64) -> Result<bool, IndexError> {
        let Some(at) = len.checked_sub(FRAME_HEADER).filter(|at| *at >= HEADER) else { return Ok(false) };
        let (mut file, _) = self.open()?;
        let mut payload = Vec::new();
        let frame = file
            .seek(SeekFrom::Start(at))
            .and_then(|_| read_frame(&mut file, self.number, at, len, &mut payload));
        Ok(frame.map_err(self.failed("reading the log"))? == Some(at))
    }

    /// The offset of the first intact frame at or after `from`, whether it is in its place or not.
    fn next_whole(&self, from: u64) -> Result<Option<u64>, IndexError> {
        const PIECE: u64 = 1 << 20;
        let failed = self.failed("reading the log");
        let (mut file, end) = self.open()?;
        let (mut piece, mut payload) = (Vec::new(), Vec::new());
        let mut start = from;
        while start + FRAME_HEADER <= end {
            file.seek(SeekFrom::Start(start)).map_err(&failed)?;
            piece.clear();
            (&file).take(PIECE).read_to_end(&mut piece).map_err(&failed)?;
            for (at, header) in (start..).zip(piece.array_windows()) {
                if FrameHeader::read(header, self.number).is_some() {
                    file.seek(SeekFrom::Start(at)).map_err(&failed)?;
                    if read_frame(&mut file, self.number, at, end, &mut payload).map_err(&failed)?.is_some() {
                        return Ok(Some(at));
                    }
                }
            }
            start += PIECE - FRAME_HEADER + 1;
        }
        Ok(None)
    }

    /// Visits all intact frames, wherever they are; returns the damage between them.
    pub(super) fn salvage(
        &self,
        visit: &mut dyn FnMut(&[u8]) -> Result<(), IndexError>,
    ) -> Result<Vec<Damage>, IndexError> {
        let failed = self.failed("reading the log");
        let (mut file, end) = self.open()?;
        let mut damage = Vec::new();
        if self.header()?.is_none() {
            damage.push(self.lost(0, end.min(HEADER)));
        }
        let (mut at, mut payload) = (HEADER, Vec::new());
        while at < end {
            file.seek(SeekFrom::Start(at)).map_err(&failed)?;
            let frame = read_frame(&mut file, self.number, at, end, &mut payload).map_err(&failed)?;
            if frame.is_some() && frame::groups(&payload).all(|group| group.is_ok()) {
                if frame != Some(at) {
                    // Either the data before this frame is missing, or the frame occurs twice.
                    damage.push(self.lost(at, 0));
                }
                visit(&payload)?;
                at += FRAME_HEADER + payload.len() as u64;
            } else {
                let next = self.next_whole(at + 1)?;
                let is_torn = next.is_none() && self.is_torn(at, end)?;
                let next = next.unwrap_or(end);
                damage.push(Damage { is_torn, ..self.lost(at, next - at) });
                at = next;
            }
        }
        Ok(damage)
    }

    fn lost(&self, at: u64, bytes: u64) -> Damage {
        Damage { file: self.path.clone(), at, bytes, is_torn: false }
    }

    /// Repairs the segments of a directory so that they can be read, and keeps everything that is intact; returns the damage.
    pub(super) fn repair_all(directory: &Path) -> Result<Vec<Damage>, IndexError> {
        let mut lost = Vec::new();
        let mut next = None;
        for segment in Self::all(directory)? {
            for missing in next.unwrap_or(segment.number)..segment.number {
                let missing = Segment::new(directory, missing);
                NewSegment::create(&missing, false)?.publish()?;
                lost.push(missing.lost(0, 0));
            }
            lost.extend(segment.repair(next.is_none())?);
            next = Some(segment.number + 1);
        }
        if next.is_none() {
            let first = Segment::new(directory, 1);
            NewSegment::create(&first, true)?.publish()?;
            lost.push(first.lost(0, 0));
        }
        Ok(lost)
    }

    /// Replaces the file with its intact parts, and keeps the original beside it as `.damaged`; returns the damage.
    fn repair(&self, is_first: bool) -> Result<Vec<Damage>, IndexError> {
        let header = self.header()?;
        let is_base = is_first || header.is_some_and(|header| header.is_base);
        let is_as_it_should = header.is_some_and(|header| header.is_base == is_base);
        let mut repaired = NewSegment::create(self, is_base)?;
        let lost = self.salvage(&mut |payload| repaired.write(payload))?;
        if lost.is_empty() && is_as_it_should {
            repaired.discard();
            return Ok(lost);
        }
        let kept = self.path.with_added_extension("damaged");
        let copied = File::open(&self.path).and_then(|mut damaged| {
            huntsman_files::replace(kept, |copy| io::copy(&mut damaged, copy).map(|_| ()))
        });
        copied.map_err(self.failed("keeping a copy of the damaged log"))?;
        repaired.publish()?;
        Ok(lost)
    }
}

/// A damaged or incomplete part of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Damage {
    /// The file.
    pub file: PathBuf,
    /// The offset of the first damaged byte.
    pub at: u64,
    /// The number of damaged bytes; 0 if a file or the data before this byte is missing.
    pub bytes: u64,
    /// Whether this is just a write that a kill or a loss of power cut off before its insertion was reported as done.
    pub is_torn: bool,
}

/// Reads the frame at the offset `at` of a segment into `payload`; if it is intact, returns the offset at which it should be.
fn read_frame(
    reader: &mut impl Read,
    segment: u64,
    at: u64,
    end: u64,
    payload: &mut Vec<u8>,
) -> io::Result<Option<u64>> {
    payload.clear();
    let Some(rest) = end.checked_sub(at + FRAME_HEADER) else { return Ok(None) };
    let mut header = [0; FrameHeader::LENGTH];
    reader.read_exact(&mut header)?;
    // The checksum of the header covers the length, so the length can be trusted.
    let header = FrameHeader::read(&header, segment).filter(|header| u64::from(header.length) <= rest);
    let Some(header) = header else { return Ok(None) };
    payload.resize(header.length as usize, 0);
    reader.read_exact(payload)?;
    Ok(header.is_of(payload).then_some(header.at))
}

/// A segment that has a temporary name until it is complete.
#[derive(Debug)]
pub(super) struct NewSegment {
    segment: Segment,
    file: Replacement,
    len: u64,
}

impl NewSegment {
    pub(super) fn create(segment: &Segment, is_base: bool) -> Result<Self, IndexError> {
        let failed = segment.failed("making a segment of the log");
        let mut file = Replacement::new(&segment.path).map_err(&failed)?;
        let header = SegmentHeader { version: frame::VERSION, is_base }.to_bytes(segment.number);
        file.write_all(&header).map_err(failed)?;
        Ok(Self { segment: segment.clone(), file, len: HEADER })
    }

    /// Writes a frame with this payload.
    pub(super) fn write(&mut self, payload: &[u8]) -> Result<(), IndexError> {
        let header = FrameHeader::of(payload, self.len).to_bytes(self.segment.number);
        let written = self.file.write_all(&header).and_then(|()| self.file.write_all(payload));
        written.map_err(self.segment.failed("writing a segment of the log"))?;
        self.len += FRAME_HEADER + payload.len() as u64;
        Ok(())
    }

    /// Renames the segment durably to its final name; returns its length in bytes.
    pub(super) fn publish(self) -> Result<u64, IndexError> {
        self.file.finish().map_err(self.segment.failed("publishing a segment of the log"))?;
        Ok(self.len)
    }

    /// Removes the unfinished segment.
    pub(super) fn discard(self) {
        drop(self.file);
    }
}

//! The records of a file without their compression: a file as it is, or the gzip members of it.

use std::io::Read;

use flate2::{Crc, Decompress, FlushDecompress, Status};

use crate::error::ReadError;
use crate::source::Source;

/// Bytes that are decompressed at once.
const CHUNK: usize = 64 << 10;
/// Greatest length of a text in the head of a gzip member.
const MAX_GZIP_TEXT: usize = 64 << 10;

/// The first bytes of a gzip member with deflate, up to its flags.
const GZIP: [u8; 3] = [0x1f, 0x8b, 0x08];

/// A stream of bytes. A gzip member ends it, until the next one is begun; a file without compression is one stream.
#[derive(Debug)]
pub(crate) struct Stream<R> {
    source: Source<R>,
    is_gzip: bool,
    inflate: Decompress,
    crc: Crc,
    decoded: Vec<u8>,
    /// The part of `decoded` that is next.
    ready: std::ops::Range<usize>,
    member: u64,
    is_in_member: bool,
}

impl<R: Read> Stream<R> {
    /// Looks at the first bytes of a file; other formats are refused.
    pub(crate) fn new(mut source: Source<R>) -> Result<Self, ReadError> {
        let start = source.peek(12).map_err(|cause| ReadError::io(0, cause))?;
        // Also if the first member is torn right at its beginning.
        let is_gzip = start.first() == Some(&GZIP[0]);
        let other = match start {
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(
                "the file is compressed with zstd, which is not read here: decompress it first (zstd -d)",
            ),
            [b'P', b'K', 3, 4, ..] => {
                Some("the file is a ZIP archive; if it is a WACZ file, its name has to end with .wacz")
            }
            start if start.starts_with(b"filedesc:") => {
                Some("the file is an ARC file, which is not read here: convert it first (warcio recompress)")
            }
            _ => None,
        };
        if let Some(what) = other {
            return Err(ReadError::unsupported(what));
        }
        Ok(Self {
            source,
            is_gzip,
            inflate: Decompress::new(false),
            crc: Crc::new(),
            decoded: vec![0; if is_gzip { CHUNK } else { 0 }],
            ready: 0..0,
            member: 0,
            is_in_member: !is_gzip,
        })
    }

    pub(crate) fn is_gzip(&self) -> bool {
        self.is_gzip
    }

    /// Where what is read next can be found in the file: its member, or the byte itself.
    pub(crate) fn offset(&self) -> u64 {
        // All of a short member may be unpacked, and its end passed, before it is read.
        let is_of_member = self.is_in_member || !self.ready.is_empty();
        if self.is_gzip && is_of_member { self.member } else { self.source.offset() }
    }

    /// Offset of the next byte of the file; after a member that is its end.
    pub(crate) fn file_offset(&self) -> u64 {
        self.source.offset()
    }

    /// The bytes that are next, and none at the end of the member or of the file.
    pub(crate) fn fill(&mut self) -> Result<&[u8], ReadError> {
        if !self.is_gzip {
            let at = self.source.offset();
            return self.source.peek(1).map_err(|cause| ReadError::io(at, cause));
        }
        while self.ready.is_empty() && self.is_in_member {
            self.inflate()?;
        }
        Ok(&self.decoded[self.ready.clone()])
    }

    pub(crate) fn consume(&mut self, bytes: usize) {
        if self.is_gzip {
            self.ready.start = (self.ready.start + bytes).min(self.ready.end);
        } else {
            self.source.consume(bytes);
        }
    }

    fn inflate(&mut self) -> Result<(), ReadError> {
        let member = self.member;
        let io = |cause| ReadError::io(member, cause);
        let input = self.source.peek(1).map_err(io)?;
        if input.is_empty() {
            return Err(ReadError::damage(member, "the file ends within the gzip member"));
        }
        let (before_in, before_out) = (self.inflate.total_in(), self.inflate.total_out());
        let status = self.inflate.decompress(input, &mut self.decoded, FlushDecompress::None);
        let taken = usize::try_from(self.inflate.total_in() - before_in).expect("at most the input");
        let made = usize::try_from(self.inflate.total_out() - before_out).expect("at most the buffer");
        self.source.consume(taken);
        self.ready = 0..made;
        self.crc.update(&self.decoded[..made]);
        match status {
            Ok(Status::StreamEnd) => {
                self.is_in_member = false;
                self.check_trailer()
            }
            Ok(_) if taken == 0 && made == 0 => {
                Err(ReadError::damage(member, "the gzip member does not go on"))
            }
            Ok(_) => Ok(()),
            Err(_) => Err(ReadError::damage(member, "the gzip member is not valid")),
        }
    }

    fn check_trailer(&mut self) -> Result<(), ReadError> {
        let trailer = self.source.peek(8).map_err(|cause| ReadError::io(self.member, cause))?;
        let Some((trailer, _)) = trailer.split_first_chunk::<8>() else {
            return Err(ReadError::damage(self.member, "the file ends within the gzip member"));
        };
        let sum = u32::from_le_bytes([trailer[0], trailer[1], trailer[2], trailer[3]]);
        let length = u32::from_le_bytes([trailer[4], trailer[5], trailer[6], trailer[7]]);
        self.source.consume(8);
        if (sum, length) == (self.crc.sum(), self.crc.amount()) {
            return Ok(());
        }
        Err(ReadError::damage(self.member, "the checksum of the gzip member is wrong"))
    }

    /// Begins the next gzip member; returns whether there is one.
    pub(crate) fn begin_member(&mut self) -> Result<bool, ReadError> {
        (self.ready, self.is_in_member) = (0..0, false);
        self.member = self.source.offset();
        let member = self.member;
        let start = self.source.peek(10).map_err(|cause| ReadError::io(member, cause))?;
        if start.is_empty() {
            return Ok(false);
        }
        if start.len() < 10 || start[..3] != GZIP {
            return Err(ReadError::damage(member, "no gzip member begins here"));
        }
        let flags = start[3];
        self.source.consume(10);
        self.skip_gzip_fields(flags)?;
        self.inflate.reset(false);
        self.crc.reset();
        self.is_in_member = true;
        Ok(true)
    }

    fn skip_gzip_fields(&mut self, flags: u8) -> Result<(), ReadError> {
        let member = self.member;
        let io = |cause| ReadError::io(member, cause);
        let cut = || ReadError::damage(member, "the head of the gzip member is not valid");
        if flags & 4 != 0 {
            let length = *self.source.peek(2).map_err(io)?.first_chunk::<2>().ok_or_else(cut)?;
            let length = 2 + usize::from(u16::from_le_bytes(length));
            if self.source.peek(length).map_err(io)?.len() < length {
                return Err(cut());
            }
            self.source.consume(length);
        }
        for text in [8, 16] {
            if flags & text != 0 {
                let bytes = self.source.peek(MAX_GZIP_TEXT).map_err(io)?;
                let end = bytes.iter().take(MAX_GZIP_TEXT).position(|b| *b == 0).ok_or_else(cut)?;
                self.source.consume(end + 1);
            }
        }
        if flags & 2 != 0 {
            self.source.consume(2);
        }
        Ok(())
    }

    /// After damage: goes to the next place where a member may begin. Returns whether there is one.
    pub(crate) fn find_member(&mut self) -> Result<bool, ReadError> {
        (self.ready, self.is_in_member) = (0..0, false);
        self.source.go_to(self.member + 1);
        loop {
            let at = self.source.offset();
            let bytes = self.source.peek(4).map_err(|cause| ReadError::io(at, cause))?;
            if bytes.len() < 4 {
                return Ok(false);
            }
            // The three upper flags are reserved, and zero.
            match bytes.windows(4).position(|start| start[..3] == GZIP && start[3] & 0xe0 == 0) {
                Some(found) => {
                    self.source.consume(found);
                    return Ok(true);
                }
                None => {
                    let passed = bytes.len() - 3;
                    self.source.consume(passed);
                }
            }
        }
    }
}

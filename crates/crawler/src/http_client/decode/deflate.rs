//! The deflate coding. The standard (RFC 9110) means zlib, but many servers send the raw deflate format.

use flate2::{Decompress, FlushDecompress, Status};

use super::{Malformed, Stage, make_room};

/// Decodes `deflate`. The first two bytes tell which of the two formats it is.
pub(super) struct Deflate {
    inner: Option<Inflate>,
    first: Option<u8>,
    /// Whether the data so far may begin with the zlib header.
    zlib: bool,
}

impl Deflate {
    pub(super) fn new() -> Self {
        Self { inner: None, first: None, zlib: false }
    }
}

impl Stage for Deflate {
    fn run(&mut self, input: &[u8], out: &mut Vec<u8>, room: usize) -> Result<usize, Malformed> {
        if let Some(inner) = &mut self.inner {
            return inner.run(input, out, room);
        }
        let head = match (self.first, input) {
            (_, []) => return Ok(0),
            (None, [only]) => {
                self.first = Some(*only);
                self.zlib = is_zlib_method(*only);
                return Ok(1);
            }
            (None, [a, b, ..]) => [*a, *b],
            (Some(a), [b, ..]) => [a, *b],
        };
        self.zlib = is_zlib(head);
        let mut inflate = Inflate::new(self.zlib);
        if let Some(first) = self.first.take() {
            inflate.run(&[first], out, room)?;
        }
        self.inner.insert(inflate).run(input, out, room)
    }

    fn is_complete(&self) -> bool {
        self.inner.as_ref().is_some_and(|inner| inner.ended)
    }

    fn is_evident(&self) -> bool {
        self.zlib
    }
}

/// Whether these bytes are a zlib header (RFC 1950): method 8, window at most 32 KiB, no preset dictionary, and the
/// two bytes are a multiple of 31.
fn is_zlib([cmf, flg]: [u8; 2]) -> bool {
    is_zlib_method(cmf) && flg & 0x20 == 0 && u16::from_be_bytes([cmf, flg]).is_multiple_of(31)
}

fn is_zlib_method(cmf: u8) -> bool {
    cmf & 0x0f == 8 && cmf >> 4 <= 7
}

/// The inflating of one stream, raw or in the zlib format.
pub(super) struct Inflate {
    inner: Decompress,
    pub(super) ended: bool,
}

impl Inflate {
    pub(super) fn new(zlib: bool) -> Self {
        Self { inner: Decompress::new(zlib), ended: false }
    }

    /// Starts again with a raw stream.
    pub(super) fn restart(&mut self) {
        self.inner.reset(false);
        self.ended = false;
    }

    /// Like [`Stage::run`], but consumes nothing after the end of the stream if `stop_at_end` is set.
    pub(super) fn inflate(
        &mut self,
        input: &[u8],
        out: &mut Vec<u8>,
        room: usize,
    ) -> Result<usize, Malformed> {
        let (start_in, start_out) = (self.inner.total_in(), out.len());
        loop {
            let taken = usize::try_from(self.inner.total_in() - start_in).expect("no more than the input");
            let left = room.saturating_sub(out.len() - start_out);
            if self.ended || left == 0 {
                return Ok(taken);
            }
            // The spare capacity limits the output: `make_room` never reserves more than is left.
            make_room(out, left);
            let (before_in, before_out) = (self.inner.total_in(), out.len());
            let status = self.inner.decompress_vec(&input[taken..], out, FlushDecompress::None);
            match status {
                Ok(Status::StreamEnd) => self.ended = true,
                Ok(Status::Ok | Status::BufError) => {
                    if self.inner.total_in() == before_in && out.len() == before_out {
                        return Ok(taken);
                    }
                }
                Err(_) => return Err(Malformed("invalid deflate data")),
            }
        }
    }

    fn run(&mut self, input: &[u8], out: &mut Vec<u8>, room: usize) -> Result<usize, Malformed> {
        let taken = self.inflate(input, out, room)?;
        Ok(if self.ended { input.len() } else { taken })
    }
}

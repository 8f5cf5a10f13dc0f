//! The zstd coding (RFC 8878): a sequence of frames.

use zstd::stream::raw::{DParameter, Decoder, InBuffer, Operation, OutBuffer};

use super::{Malformed, Stage, make_room};

/// RFC 9659: a decoder for HTTP must offer a window of 8 MiB and should refuse a larger one.
const WINDOW_LOG: u32 = 23;

/// Decodes `zstd`. Data after the last frame that is not a frame is ignored.
pub(super) struct Zstd {
    inner: Option<Decoder<'static>>,
    frames: u64,
    /// Number of bytes of the current frame that were consumed.
    taken: usize,
    ended: bool,
}

impl Zstd {
    pub(super) fn new() -> Self {
        let inner = Decoder::new().ok().and_then(|mut decoder| {
            decoder.set_parameter(DParameter::WindowLogMax(WINDOW_LOG)).ok().map(|()| decoder)
        });
        Self { inner, frames: 0, taken: 0, ended: false }
    }
}

impl Stage for Zstd {
    fn run(&mut self, input: &[u8], out: &mut Vec<u8>, room: usize) -> Result<usize, Malformed> {
        /// The length of the longest frame header.
        const MAX_HEADER: usize = 18;
        let Some(inner) = &mut self.inner else { return Err(Malformed("no memory for a decoder")) };
        let start = out.len();
        let mut source = InBuffer::around(input);
        loop {
            let room = room.saturating_sub(out.len() - start);
            if self.ended {
                return Ok(input.len());
            }
            if room == 0 {
                return Ok(source.pos());
            }
            make_room(out, room);
            let (before_in, before_out) = (source.pos(), out.len());
            let result = inner.run(&mut source, &mut OutBuffer::around_pos(out, before_out));
            self.taken += source.pos() - before_in;
            match result {
                Ok(0) if self.taken > 0 => {
                    self.frames += 1;
                    self.taken = 0;
                }
                Ok(_) if source.pos() == before_in && out.len() == before_out => return Ok(source.pos()),
                Ok(_) => {}
                Err(_) if self.frames > 0 && out.len() == before_out && self.taken <= MAX_HEADER => {
                    self.taken = 0;
                    self.ended = true;
                }
                Err(_) => return Err(Malformed("invalid zstd data")),
            }
        }
    }

    fn is_complete(&self) -> bool {
        self.frames > 0 && self.taken == 0
    }
}

//! The br coding (RFC 7932).

use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};

use super::{Malformed, Stage, make_room};

type State = BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>;

/// Decodes `br`.
pub(super) struct Brotli {
    state: Box<State>,
    ended: bool,
}

impl Brotli {
    pub(super) fn new() -> Self {
        let alloc = StandardAlloc::default;
        Self { state: Box::new(State::new(alloc(), alloc(), alloc())), ended: false }
    }
}

impl Stage for Brotli {
    fn run(&mut self, input: &[u8], out: &mut Vec<u8>, room: usize) -> Result<usize, Malformed> {
        /// The library writes into slices, so the capacity is first filled with zeros, in steps of this size.
        const STEP: usize = 32 << 10;
        let start = out.len();
        let (mut at, mut left) = (0, input.len());
        loop {
            let room = room - (out.len() - start);
            if self.ended {
                return Ok(input.len());
            }
            if room == 0 {
                return Ok(at);
            }
            let before = out.len();
            let step = make_room(out, room.min(STEP));
            out.resize(before + step, 0);
            let (mut free, mut written, mut total) = (step, before, 0);
            let result = BrotliDecompressStream(
                &mut left,
                &mut at,
                input,
                &mut free,
                &mut written,
                out,
                &mut total,
                &mut self.state,
            );
            out.truncate(written);
            match result {
                BrotliResult::ResultSuccess => self.ended = true,
                BrotliResult::NeedsMoreInput => return Ok(at),
                BrotliResult::NeedsMoreOutput => {}
                BrotliResult::ResultFailure => return Err(Malformed("invalid brotli data")),
            }
        }
    }

    fn is_complete(&self) -> bool {
        self.ended
    }
}

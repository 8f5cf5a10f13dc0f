//! The gzip coding (RFC 1952): a sequence of members, each with its checksum.

use flate2::Crc;

use super::deflate::Inflate;
use super::{Malformed, Stage};

/// Decodes `gzip`. Data after the last member that does not begin like a member is ignored, as in browsers.
pub(super) struct Gzip {
    state: State,
    inflate: Inflate,
    crc: Crc,
    members: u64,
}

enum State {
    /// The ten fixed bytes, and how many of them have arrived.
    Fixed([u8; 10], usize),
    /// Optional parts that must still be skipped.
    Extra {
        flags: u8,
        length: [u8; 2],
        got: usize,
    },
    ExtraBytes {
        flags: u8,
        left: u16,
    },
    Text {
        flags: u8,
    },
    HeaderCrc {
        left: u8,
    },
    Data,
    Trailer([u8; 8], usize),
    Ended,
}

const EXTRA: u8 = 0x04;
const NAME: u8 = 0x08;
const COMMENT: u8 = 0x10;
const HEADER_CRC: u8 = 0x02;
const RESERVED: u8 = 0xe0;

impl Gzip {
    pub(super) fn new() -> Self {
        Self { state: State::Fixed([0; 10], 0), inflate: Inflate::new(false), crc: Crc::new(), members: 0 }
    }

    /// The state for the next optional part that the flags announce.
    fn after(flags: u8) -> State {
        if flags & EXTRA != 0 {
            State::Extra { flags: flags & !EXTRA, length: [0; 2], got: 0 }
        } else if flags & (NAME | COMMENT) != 0 {
            let bit = if flags & NAME != 0 { NAME } else { COMMENT };
            State::Text { flags: flags & !bit }
        } else if flags & HEADER_CRC != 0 {
            State::HeaderCrc { left: 2 }
        } else {
            State::Data
        }
    }

    fn fixed(&mut self, head: [u8; 10]) -> Result<(), Malformed> {
        let [_, _, method, flags, ..] = head;
        if method != 8 {
            return Err(Malformed("unknown compression method"));
        }
        if flags & RESERVED != 0 {
            return Err(Malformed("reserved flags are set"));
        }
        if self.members > 0 {
            self.inflate.restart();
            self.crc.reset();
        }
        self.state = Self::after(flags);
        Ok(())
    }

    fn trailer(&mut self, trailer: [u8; 8]) -> Result<(), Malformed> {
        let [a, b, c, d, e, f, g, h] = trailer;
        if u32::from_le_bytes([a, b, c, d]) != self.crc.sum() {
            return Err(Malformed("wrong checksum"));
        }
        if u32::from_le_bytes([e, f, g, h]) != self.crc.amount() {
            return Err(Malformed("wrong length"));
        }
        self.members += 1;
        self.state = State::Fixed([0; 10], 0);
        Ok(())
    }
}

impl Stage for Gzip {
    fn run(&mut self, input: &[u8], out: &mut Vec<u8>, room: usize) -> Result<usize, Malformed> {
        let start = out.len();
        let mut at = 0;
        loop {
            let rest = &input[at..];
            match &mut self.state {
                State::Ended => return Ok(input.len()),
                State::Data => {
                    let before = out.len();
                    at += self.inflate.inflate(rest, out, room - (before - start))?;
                    self.crc.update(&out[before..]);
                    if !self.inflate.ended {
                        return Ok(at);
                    }
                    self.state = State::Trailer([0; 8], 0);
                }
                _ if rest.is_empty() => return Ok(at),
                State::Fixed(head, got) => {
                    head[*got] = rest[0];
                    *got += 1;
                    at += 1;
                    let (head, got) = (*head, *got);
                    if head[..got.min(2)] != [0x1f, 0x8b][..got.min(2)] {
                        if self.members == 0 {
                            return Err(Malformed("no gzip header"));
                        }
                        self.state = State::Ended;
                    } else if got == head.len() {
                        self.fixed(head)?;
                    }
                }
                State::Extra { flags, length, got } => {
                    length[*got] = rest[0];
                    *got += 1;
                    at += 1;
                    if *got == 2 {
                        self.state = State::ExtraBytes { flags: *flags, left: u16::from_le_bytes(*length) };
                    }
                }
                State::ExtraBytes { flags, left } => {
                    let skipped = rest.len().min(usize::from(*left));
                    at += skipped;
                    *left -= u16::try_from(skipped).expect("at most `left`");
                    if *left == 0 {
                        self.state = Self::after(*flags);
                    }
                }
                State::Text { flags } => match memchr::memchr(0, rest) {
                    Some(end) => {
                        at += end + 1;
                        self.state = Self::after(*flags);
                    }
                    None => return Ok(input.len()),
                },
                State::HeaderCrc { left } => {
                    at += 1;
                    *left -= 1;
                    if *left == 0 {
                        self.state = State::Data;
                    }
                }
                State::Trailer(trailer, got) => {
                    trailer[*got] = rest[0];
                    *got += 1;
                    at += 1;
                    if *got == trailer.len() {
                        let trailer = *trailer;
                        self.trailer(trailer)?;
                    }
                }
            }
        }
    }

    fn is_complete(&self) -> bool {
        self.members > 0 && matches!(self.state, State::Ended | State::Fixed(_, 0))
    }
}

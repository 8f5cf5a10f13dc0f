//! Content codings: gzip, deflate, br and zstd, also stacked, decoded piece by piece up to a limit.
//!
//! Every stage receives the bytes that arrived and returns what it can decode, so that a decompression bomb ends at
//! the limit after little was read and little was kept. The limits apply to the output of each stage and not only to
//! the last one; otherwise a coding inside a coding could use much time without any output.
//!
//! The decoders are those of flate2, brotli-decompressor and zstd. reqwest would use the same ones, but has no limit
//! for the decoded bytes and does not report the bytes on the wire.

use bytes::Bytes;
use http::{HeaderMap, header};

use crate::fetch::{FetchError, FetchErrorKind};
use crate::settings::Settings;

mod brotli;
mod deflate;
mod gzip;
mod zstd;

/// Limits for decoding a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeLimits {
    /// Largest result in bytes; 0 means no limit.
    pub max_size: u64,
    /// Number of codings that may be stacked.
    pub max_codings: usize,
    /// Returns the first `max_size` bytes of a larger body, marked truncated, instead of an error.
    pub truncate: bool,
    /// If set, a body that ends before its coding does is an error; else the part that could be decoded is returned,
    /// marked partial.
    pub fail_on_loss: bool,
}

impl DecodeLimits {
    /// The limits from the settings `download_maxsize`, `max_content_codings`, `download_truncate` and
    /// `download_fail_on_dataloss`.
    pub fn of(settings: &Settings) -> Self {
        Self {
            max_size: settings.download_maxsize,
            max_codings: settings.max_content_codings,
            truncate: settings.download_truncate,
            fail_on_loss: settings.download_fail_on_dataloss,
        }
    }
}

/// A decoded body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decoded {
    /// The decoded bytes; the original ones if the coding is unknown.
    pub body: Bytes,
    /// Whether the coded body ended early, so that this is only the part that could be decoded (flag `partial`).
    pub partial: bool,
    /// Whether the body was cut at the limit (flag `truncated`).
    pub truncated: bool,
    /// Whether a coding is unknown, so that nothing was decoded (flag `unknown_encoding`).
    pub unknown: bool,
}

/// Decodes a whole body according to its `Content-Encoding`. This is for responses that did not come through the HTTP
/// client, which decodes while it reads. `None` if there is nothing to decode; that case costs only a check of the
/// headers.
///
/// # Errors
/// The body does not match its coding or ends before its coding does, there are too many codings, or the result
/// exceeds the limit.
pub fn decode_body(
    headers: &HeaderMap,
    body: &[u8],
    limits: DecodeLimits,
) -> Result<Option<Decoded>, FetchError> {
    match Codings::of(headers, limits.max_codings)? {
        Codings::None => Ok(None),
        Codings::Unknown(_) => {
            Ok(Some(Decoded { body: Bytes::copy_from_slice(body), unknown: true, ..Decoded::default() }))
        }
        Codings::Known(codings) => {
            let mut decoder = Decoder::new(&codings, limits);
            decoder.push(body)?;
            decoder.finish(false).map(Some)
        }
    }
}

/// A supported coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coding {
    Gzip,
    Deflate,
    Brotli,
    Zstd,
}

impl Coding {
    fn of(token: &[u8]) -> Option<Self> {
        const NAMES: [(&[u8], Coding); 6] = [
            (b"gzip", Coding::Gzip),
            (b"x-gzip", Coding::Gzip),
            (b"br", Coding::Brotli),
            (b"deflate", Coding::Deflate),
            (b"zstd", Coding::Zstd),
            (b"x-zstd", Coding::Zstd),
        ];
        NAMES.iter().find(|(name, _)| token.eq_ignore_ascii_case(name)).map(|(_, coding)| *coding)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Deflate => "deflate",
            Self::Brotli => "br",
            Self::Zstd => "zstd",
        }
    }
}

/// The parsed `Content-Encoding`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Codings {
    None,
    /// In the order of decoding: the coding that was applied last comes first.
    Known(Vec<Coding>),
    /// The first unknown name, for the log.
    Unknown(String),
}

impl Codings {
    /// Reads all lines of the header; `identity` and empty members are ignored.
    pub(crate) fn of(headers: &HeaderMap, most: usize) -> Result<Self, FetchError> {
        if !headers.contains_key(header::CONTENT_ENCODING) {
            return Ok(Self::None);
        }
        let (mut known, mut unknown) = (Vec::new(), None);
        for value in headers.get_all(header::CONTENT_ENCODING) {
            for token in value.as_bytes().split(|b| *b == b',') {
                let token = token.trim_ascii();
                if token.is_empty() || token.eq_ignore_ascii_case(b"identity") {
                    continue;
                }
                if known.len() == most {
                    let message = format!("more than {most} content codings are stacked");
                    return Err(FetchError::new(FetchErrorKind::Decode, message).after_sending());
                }
                match Coding::of(token) {
                    Some(coding) => known.push(coding),
                    None if unknown.is_none() => {
                        unknown = Some(token[..token.len().min(40)].escape_ascii().to_string());
                    }
                    None => {}
                }
            }
        }
        known.reverse();
        Ok(match unknown {
            Some(name) => Self::Unknown(name),
            None if known.is_empty() => Self::None,
            None => Self::Known(known),
        })
    }
}

/// The error of a body that does not match its coding.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Malformed(&'static str);

/// A decoder of one coding.
trait Stage: Send {
    /// Decodes `input` until all of it is consumed, or until `out` has grown by `room` bytes. Returns the number of
    /// bytes consumed. Bytes after the end of the coded data are consumed and ignored.
    fn run(&mut self, input: &[u8], out: &mut Vec<u8>, room: usize) -> Result<usize, Malformed>;

    /// Whether the end of the coded data was reached.
    fn is_complete(&self) -> bool;

    /// Whether incomplete data can be recognised as the beginning of this coding. In the raw deflate format almost
    /// any bytes are a valid beginning.
    fn is_evident(&self) -> bool {
        true
    }
}

/// A chain of stages with its limit.
pub(crate) struct Decoder {
    stages: Vec<Link>,
    out: Vec<u8>,
    limit: usize,
    truncate: bool,
    fail_on_loss: bool,
    truncated: bool,
    touched: bool,
}

struct Link {
    coding: Coding,
    stage: Box<dyn Stage>,
    /// Output of this stage that the next one has not consumed yet; unused by the last stage.
    passing: Vec<u8>,
    given: usize,
}

/// The result of pushing bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// More bytes are accepted.
    More,
    /// The limit is reached, and no more bytes are needed.
    Full,
}

/// Number of bytes that are passed from one stage to the next at once.
const PASSING: usize = 32 << 10;
/// Initial capacity of the output: most pages fit after one doubling.
const FIRST_ROOM: usize = 32 << 10;

impl Decoder {
    /// A decoder of these codings, in the given order.
    pub(crate) fn new(codings: &[Coding], limits: DecodeLimits) -> Self {
        let stages = codings
            .iter()
            .map(|coding| Link {
                coding: *coding,
                stage: match coding {
                    Coding::Gzip => Box::new(gzip::Gzip::new()),
                    Coding::Deflate => Box::new(deflate::Deflate::new()),
                    Coding::Brotli => Box::new(brotli::Brotli::new()),
                    Coding::Zstd => Box::new(zstd::Zstd::new()),
                },
                passing: Vec::new(),
                given: 0,
            })
            .collect();
        let limit = match limits.max_size {
            0 => usize::MAX - 1,
            max => usize::try_from(max).unwrap_or(usize::MAX - 1),
        };
        Self {
            stages,
            out: Vec::new(),
            limit,
            truncate: limits.truncate,
            fail_on_loss: limits.fail_on_loss,
            truncated: false,
            touched: false,
        }
    }

    /// Takes the next bytes of the body.
    pub(crate) fn push(&mut self, input: &[u8]) -> Result<Flow, FetchError> {
        if self.truncated {
            return Ok(Flow::Full);
        }
        self.touched |= !input.is_empty();
        match feed(&mut self.stages, &mut self.out, self.limit, input) {
            Ok(()) => Ok(Flow::More),
            Err(Stop::Limit) if self.truncate => {
                self.truncated = true;
                self.out.truncate(self.limit);
                Ok(Flow::Full)
            }
            Err(Stop::Limit) => {
                let message = format!("the decoded body is larger than {} bytes", self.limit);
                Err(FetchError::new(FetchErrorKind::TooLarge, message).after_sending())
            }
            Err(Stop::Malformed(coding, Malformed(what))) => Err(malformed(coding, what)),
        }
    }

    /// The decoded body; `cut` says that the body is known to be incomplete. An empty body stays empty, whatever its
    /// coding.
    pub(crate) fn finish(mut self, cut: bool) -> Result<Decoded, FetchError> {
        let open = self.stages.iter().find(|link| !link.stage.is_complete()).filter(|_| self.touched);
        if let Some(link) = open.filter(|_| !cut && !self.truncated) {
            if !link.stage.is_evident() {
                return Err(malformed(link.coding, "it has no end"));
            }
            // The HTTP framing was complete, but the coded data is not: half a page must not look like a page.
            if self.fail_on_loss {
                let message = format!("the body ends before its {} data does", link.coding.name());
                return Err(FetchError::new(FetchErrorKind::Incomplete, message).after_sending());
            }
        }
        let partial = open.is_some() && !self.truncated;
        if self.out.capacity() - self.out.len() > self.out.len() / 4 {
            self.out.shrink_to_fit();
        }
        Ok(Decoded { body: self.out.into(), partial, truncated: self.truncated, unknown: false })
    }
}

fn malformed(coding: Coding, what: &str) -> FetchError {
    let message = format!("the body is not {}: {what}", coding.name());
    FetchError::new(FetchErrorKind::Decode, message).after_sending()
}

enum Stop {
    Limit,
    Malformed(Coding, Malformed),
}

/// Passes input to the first stage; the last one writes to `out`.
fn feed(stages: &mut [Link], out: &mut Vec<u8>, limit: usize, mut input: &[u8]) -> Result<(), Stop> {
    let Some((link, rest)) = stages.split_first_mut() else {
        out.extend_from_slice(input);
        return Ok(());
    };
    loop {
        let last = rest.is_empty();
        let (target, room) = if last {
            let room = limit + 1 - out.len();
            (&mut *out, room)
        } else {
            link.passing.clear();
            (&mut link.passing, PASSING)
        };
        let before = target.len();
        let taken = link.stage.run(input, target, room).map_err(|m| Stop::Malformed(link.coding, m))?;
        let grown = target.len() - before;
        link.given += grown;
        if link.given > limit {
            return Err(Stop::Limit);
        }
        input = &input[taken..];
        if !last {
            feed(rest, out, limit, &link.passing)?;
        }
        if input.is_empty() && grown < room {
            return Ok(());
        }
    }
}

/// Reserves spare capacity in `out`. It grows by doubling, but never beyond `room` more bytes, so that what a stage
/// writes into the spare capacity is bounded, too. Returns the reserved number of bytes, at least 1 if `room` is.
fn make_room(out: &mut Vec<u8>, room: usize) -> usize {
    if out.len() == out.capacity() {
        out.reserve_exact(out.len().max(FIRST_ROOM).min(room));
    }
    (out.capacity() - out.len()).min(room)
}

#[cfg(test)]
mod tests;

//! Content codings: gzip, deflate, br and zstd, also stacked, decoded piece by piece against a limit.
//!
//! Every stage is pushed what arrived and gives what it can, so that a bomb ends at the limit with little read and
//! little kept. Limits hold for what each stage gives, not only for the last one: a coding inside a coding could
//! else burn time without giving a byte.
//!
//! The formats are those of flate2, brotli-decompressor and zstd. reqwest would decode with them as well, but has no limit for the decoded bytes and
//! does not tell the bytes on the wire.

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
    /// Largest result in bytes; 0 is no limit.
    pub max_size: u64,
    /// Codings that may be stacked.
    pub max_codings: usize,
    /// Gives the first `max_size` bytes of a larger body, marked truncated, instead of an error.
    pub truncate: bool,
    /// A body that ends before its coding does is an error; else what could be decoded of it is given, marked partial.
    pub fail_on_loss: bool,
}

impl DecodeLimits {
    /// The limits of a crawl: `download_maxsize`, `max_content_codings`, `download_truncate`,
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
    /// The bytes; as they came if the coding is unknown.
    pub body: Bytes,
    /// The coded body ended early: this is what could be decoded (flag `partial`).
    pub partial: bool,
    /// The limit cut it (flag `truncated`).
    pub truncated: bool,
    /// A coding is not known, so nothing was decoded (flag `unknown_encoding`).
    pub unknown: bool,
}

/// Decodes a whole body by its `Content-Encoding`: for answers that did not come through the HTTP client, which
/// decodes while it reads. `None` if there is nothing to decode; costs no more than a look at the headers then.
///
/// # Errors
/// The body is not what its coding says or ends before its coding does, too many codings, or a result above the limit.
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

/// A coding that can be undone.
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

/// What `Content-Encoding` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Codings {
    None,
    /// In the order they are to be undone: the last applied first.
    Known(Vec<Coding>),
    /// The first name that is not known, for the log.
    Unknown(String),
}

impl Codings {
    /// Reads all lines of the header; `identity` and empty members count for nothing.
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

/// A body that is not what its coding says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Malformed(&'static str);

/// One coding being undone.
trait Stage: Send {
    /// Undoes what it can of `input`: until all of it is taken, or until `out` has grown by `room` bytes.
    /// Answers with the bytes taken. Bytes after the end of the coded data are taken and ignored.
    fn run(&mut self, input: &[u8], out: &mut Vec<u8>, room: usize) -> Result<usize, Malformed>;

    /// Whether the data came to its end.
    fn is_complete(&self) -> bool;

    /// Whether data without its end may be taken for the beginning of this coding. In the bare deflate format most bytes are the
    /// beginning of something.
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
    /// What the stage gave and the next one has not taken yet; unused by the last one.
    passing: Vec<u8>,
    given: usize,
}

/// What a push of bytes led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// More is welcome.
    More,
    /// The limit is reached and the rest is not wanted.
    Full,
}

/// Bytes that pass from one stage to the next at once.
const PASSING: usize = 32 << 10;
/// Room for the first output: most pages fit after one doubling.
const FIRST_ROOM: usize = 32 << 10;

impl Decoder {
    /// Undoes the codings in the order given.
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

    /// What was decoded; `cut` says that the body is known to have lost its end. An empty body is an empty body,
    /// whatever its coding.
    pub(crate) fn finish(mut self, cut: bool) -> Result<Decoded, FetchError> {
        let open = self.stages.iter().find(|link| !link.stage.is_complete()).filter(|_| self.touched);
        if let Some(link) = open.filter(|_| !cut && !self.truncated) {
            if !link.stage.is_evident() {
                return Err(malformed(link.coding, "it has no end"));
            }
            // The framing was whole, but what was framed is not: half a page must not look like a page.
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

/// Feeds the first of the stages; the last one writes to `out`.
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

/// Makes spare room in `out`, growing by doubling but never beyond `room` more bytes, so that what a stage writes
/// into the spare room is bounded too. Answers with the room made, at least 1 if `room` is.
fn make_room(out: &mut Vec<u8>, room: usize) -> usize {
    if out.len() == out.capacity() {
        out.reserve_exact(out.len().max(FIRST_ROOM).min(room));
    }
    (out.capacity() - out.len()).min(room)
}

#[cfg(test)]
mod tests;

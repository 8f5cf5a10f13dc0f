//! A queued request as bytes: the same form is used in memory, in the journal and in segments.

use std::cmp::Reverse;
use std::sync::Arc;

use http::Extensions;

use super::super::queue::QueuePosition;
use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::host::HostKey;
use crate::request::{Fingerprint, Request};

/// Version of the format.
const VERSION: u8 = 1;
/// Number of bytes before the name of the host.
const HEAD: usize = 1 + 16 + 4 + 1 + 8 + 8 + 8 + 4;
/// Stands for "no time": the request is due at once.
const NO_TIME: u64 = u64::MAX;

/// A request with its place. The bytes are: version, fingerprint, priority, whether it is a start request, score,
/// sequence, time, length and name of the host, and the request as JSON ([`Request::to_json`]). Numbers are
/// little-endian.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) bytes: Arc<[u8]>,
    /// Typed values; they are kept as long as the row stays in memory.
    extensions: Option<Box<Extensions>>,
}

/// The fields of a row that precede its request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) fingerprint: Fingerprint,
    pub(super) place: QueuePosition,
    pub(super) at: Option<Timestamp>,
    pub(super) host: HostKey,
}

impl Row {
    pub(super) fn new(
        request: Request,
        fingerprint: Fingerprint,
        place: QueuePosition,
        host: &HostKey,
    ) -> Self {
        let name = host.as_str().as_bytes();
        let mut bytes = Vec::with_capacity(HEAD + name.len() + 64 + request.url.as_str().len());
        bytes.push(VERSION);
        bytes.extend_from_slice(&fingerprint.0.to_le_bytes());
        bytes.extend_from_slice(&place.priority.0.to_le_bytes());
        bytes.push(u8::from(place.is_start));
        bytes.extend_from_slice(&place.score.to_le_bytes());
        bytes.extend_from_slice(&place.sequence.to_le_bytes());
        bytes.extend_from_slice(&request.not_before.map_or(NO_TIME, |at| at.0).to_le_bytes());
        bytes.extend_from_slice(&u32::try_from(name.len()).unwrap_or(u32::MAX).to_le_bytes());
        bytes.extend_from_slice(name);
        request.write_json(&mut bytes);
        let extensions = (!request.extensions.is_empty()).then(|| Box::new(request.extensions));
        Self { bytes: bytes.into(), extensions }
    }

    /// A row made of stored bytes.
    pub(super) fn stored(bytes: &[u8]) -> Self {
        Self { bytes: bytes.into(), extensions: None }
    }

    /// Reads the head from stored bytes.
    pub(super) fn head(bytes: &[u8]) -> Result<Head> {
        let mut rest = bytes;
        let version = u8::from_le_bytes(take(&mut rest)?);
        if version != VERSION {
            return Err(Error::msg(format!(
                "a queued request has form {version}, this version reads {VERSION}"
            )));
        }
        let fingerprint = Fingerprint(u128::from_le_bytes(take(&mut rest)?));
        let place = QueuePosition {
            priority: Reverse(i32::from_le_bytes(take(&mut rest)?)),
            is_start: u8::from_le_bytes(take(&mut rest)?) != 0,
            score: u64::from_le_bytes(take(&mut rest)?),
            sequence: u64::from_le_bytes(take(&mut rest)?),
        };
        let at = u64::from_le_bytes(take(&mut rest)?);
        let name = name_of(bytes)?;
        let at = (at != NO_TIME).then_some(Timestamp(at));
        Ok(Head { fingerprint, place, at, host: HostKey::new(name) })
    }

    /// The request, with slot and fingerprint assigned.
    pub(super) fn request(&self, host: &HostKey) -> Result<Request> {
        let mut fingerprint = [0; 16];
        fingerprint.copy_from_slice(self.bytes.get(1..17).ok_or_else(damaged)?);
        let start = HEAD + name_of(&self.bytes)?.len();
        let value = serde_json::from_slice(&self.bytes[start..]).map_err(|_| damaged())?;
        let mut request = Request::from_json(value)?;
        request.assign_slot(host.clone());
        request.assign_fingerprint(Fingerprint(u128::from_le_bytes(fingerprint)));
        if let Some(extensions) = &self.extensions {
            request.extensions = (**extensions).clone();
        }
        Ok(request)
    }
}

fn name_of(bytes: &[u8]) -> Result<&str> {
    let mut length = bytes.get(HEAD - 4..).ok_or_else(damaged)?;
    let length = u32::from_le_bytes(take(&mut length)?) as usize;
    let name = bytes.get(HEAD..).and_then(|rest| rest.get(..length)).ok_or_else(damaged)?;
    std::str::from_utf8(name).map_err(|_| damaged())
}

/// Reads the next bytes of stored data.
pub(super) fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N]> {
    let (head, tail) = rest.split_first_chunk::<N>().ok_or_else(damaged)?;
    *rest = tail;
    Ok(*head)
}

/// The error for stored data that cannot be read although its checksum is right: another program wrote it.
pub(super) fn damaged() -> Error {
    Error::msg(
        "the stored queue cannot be read: it is damaged, or not of this program; `huntsman verify` tells what is whole, --fresh starts anew",
    )
}

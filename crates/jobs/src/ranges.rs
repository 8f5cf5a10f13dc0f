//! Files as responses: whole, or the part that the header `Range` names.

use std::io::{self, SeekFrom};
use std::path::Path;

use axum::body::Body;
use axum::http::header::{ACCEPT_RANGES, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, RANGE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use bytes::{Bytes, BytesMut};
use futures_util::stream;
use huntsman_serve::local::ApiError;
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncSeekExt};

/// Bytes that are read at once: a file is never in memory as a whole.
const PIECE: u64 = 64 << 10;

/// The answer for a file. Its end is that at the time of the request, even if it grows.
pub(crate) async fn answer(path: &Path, headers: &HeaderMap) -> Result<Response, ApiError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => ApiError::new(
            StatusCode::NOT_FOUND,
            format!("there is no {name}: the job has not written it yet, or writes elsewhere"),
        ),
        _ => ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, format!("reading {name}: {error}")),
    };
    let found = tokio::fs::symlink_metadata(path).await.map_err(failed)?;
    if !found.is_file() {
        return Err(failed(io::Error::other("it is no regular file")));
    }
    let mut file = File::open(path).await.map_err(failed)?;
    let size = file.metadata().await.map_err(failed)?.len();
    let wanted = headers.get(RANGE).and_then(|value| value.to_str().ok());
    let (from, length, is_part) = match wanted.and_then(|text| part(text, size)) {
        None => (0, size, false),
        Some(Some((from, length))) => (from, length, true),
        Some(None) => {
            let error = ApiError::new(StatusCode::RANGE_NOT_SATISFIABLE, format!("{name} has {size} bytes"));
            return Ok(([(CONTENT_RANGE, format!("bytes */{size}"))], error).into_response());
        }
    };
    file.seek(SeekFrom::Start(from)).await.map_err(failed)?;
    let kind = match path.extension().and_then(|extension| extension.to_str()) {
        Some("json") => "application/json; charset=utf-8",
        Some("jsonl") => "application/jsonl; charset=utf-8",
        _ => "text/plain; charset=utf-8",
    };
    let head = [
        (CONTENT_TYPE, kind.to_owned()),
        (CONTENT_LENGTH, length.to_string()),
        (ACCEPT_RANGES, "bytes".to_owned()),
    ];
    let body = Body::from_stream(stream::try_unfold((file, length), read));
    Ok(if is_part {
        let range = format!("bytes {from}-{}/{size}", from + length - 1);
        (StatusCode::PARTIAL_CONTENT, head, [(CONTENT_RANGE, range)], body).into_response()
    } else {
        (head, body).into_response()
    })
}

/// The next piece of a file of which so many bytes are left to send.
async fn read((mut file, left): (File, u64)) -> io::Result<Option<(Bytes, (File, u64))>> {
    if left == 0 {
        return Ok(None);
    }
    let most = usize::try_from(left.min(PIECE)).unwrap_or(usize::MAX);
    let mut piece = BytesMut::zeroed(most);
    let read = file.read(&mut piece).await?;
    if read == 0 {
        // Whoever has made the file shorter has broken the promise of its length.
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    piece.truncate(read);
    Ok(Some((piece.freeze(), (file, left - read as u64))))
}

/// Begin and length of the part that a header asks for; `Some(None)` if there is no such part. `None` if the header is not understood or asks
/// for several parts: then the whole file is sent, as RFC 9110 allows.
fn part(text: &str, size: u64) -> Option<Option<(u64, u64)>> {
    let (from, to) = text.strip_prefix("bytes=")?.split_once('-')?;
    let number =
        |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse::<u64>().ok())?;
    if from.is_empty() {
        let length = number(to)?.min(size);
        return Some((length > 0).then_some((size - length, length)));
    }
    let from = number(from)?;
    let last = size.checked_sub(1);
    let to = if to.is_empty() { u64::MAX } else { number(to)? };
    if to < from {
        return None;
    }
    Some(last.filter(|last| from <= *last).map(|last| (from, to.min(last) - from + 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_those_of_rfc_9110() {
        for (text, size, expected) in [
            ("bytes=0-4", 10, Some(Some((0, 5)))),
            ("bytes=4-", 10, Some(Some((4, 6)))),
            ("bytes=8-99", 10, Some(Some((8, 2)))),
            ("bytes=-3", 10, Some(Some((7, 3)))),
            ("bytes=-99", 10, Some(Some((0, 10)))),
            ("bytes=-0", 10, Some(None)),
            ("bytes=10-", 10, Some(None)),
            ("bytes=0-", 0, Some(None)),
            ("bytes=5-4", 10, None),
            ("bytes=0-1,4-5", 10, None),
            ("bytes=+1-2", 10, None),
            ("bytes=-", 10, None),
            ("lines=0-1", 10, None),
            ("bytes=99999999999999999999-", 10, None),
        ] {
            assert_eq!(part(text, size), expected, "{text} of {size}");
        }
    }
}

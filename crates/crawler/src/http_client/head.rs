//! Checks of response headers that the HTTP library does not make.

use http::{HeaderMap, StatusCode, Version, header};

use crate::settings::Settings;

/// Limits of a block of headers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeadLimits {
    lines: usize,
    bytes: usize,
}

impl HeadLimits {
    /// The limits from `max_header_lines` and `max_header_bytes`.
    pub(crate) fn of(settings: &Settings) -> Self {
        Self { lines: settings.max_header_lines, bytes: settings.max_header_bytes }
    }

    /// Returns what is wrong with the headers of a response, if anything.
    pub(crate) fn check(
        &self,
        status: StatusCode,
        version: Version,
        headers: &HeaderMap,
    ) -> Result<(), String> {
        if !(200..=599).contains(&status.as_u16()) {
            return Err(format!("status {} is not a final response", status.as_u16()));
        }
        if headers.len() > self.lines {
            return Err(format!("{} header lines, more than {}", headers.len(), self.lines));
        }
        // The library's own limit is the size of its buffer, about 400 KiB, whatever the setting.
        let bytes: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
        if bytes > self.bytes {
            return Err(format!("{bytes} bytes of headers, more than {}", self.bytes));
        }
        if version < Version::HTTP_2 && headers.contains_key(header::TRANSFER_ENCODING) {
            if headers.contains_key(header::CONTENT_LENGTH) {
                return Err("both Content-Length and Transfer-Encoding".to_owned());
            }
            check_transfer_codings(headers)?;
        }
        Ok(())
    }
}

/// The library decodes `chunked` if it is the last transfer coding, and passes on a body with any other transfer
/// coding unchanged; that would be delivered as the page. No other coding was offered, so none is decoded here (RFC
/// 9112, 7.4), and `chunked` may be applied only once (7.1). `identity` means no coding, in the older standard.
fn check_transfer_codings(headers: &HeaderMap) -> Result<(), String> {
    let lines = headers.get_all(header::TRANSFER_ENCODING).iter();
    let mut is_chunked = false;
    for coding in lines.flat_map(|line| line.as_bytes().split(|b| *b == b',')).map(<[u8]>::trim_ascii) {
        let shown = || coding[..coding.len().min(40)].escape_ascii();
        if is_chunked {
            return Err(format!(
                "Transfer-Encoding has \"{}\" after chunked, which must be the last one",
                shown()
            ));
        }
        match coding {
            b"" => {}
            name if name.eq_ignore_ascii_case(b"identity") => {}
            name if name.eq_ignore_ascii_case(b"chunked") => is_chunked = true,
            _ => return Err(format!("the transfer coding \"{}\" was not offered", shown())),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_transfer_codings_that_the_library_undoes_pass() {
        for (lines, passes) in [
            (&["chunked"][..], true),
            (&["CHUNKED "], true),
            (&["identity"], true),
            (&["identity, chunked"], true),
            (&["identity", "chunked"], true),
            (&[""], true),
            (&["gzip, chunked"], false),
            (&["gzip", "chunked"], false),
            (&["chunked, gzip"], false),
            (&["chunked, chunked"], false),
            (&["chunked", "chunked"], false),
            (&["chunked,"], false),
            (&["chunked", ""], false),
            (&["chunked, identity"], false),
            (&["chunked;q=1"], false),
            (&["xchunked"], false),
            (&["gzip"], false),
            (&["\u{a0}chunked"], false),
        ] {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(
                    header::TRANSFER_ENCODING,
                    http::HeaderValue::from_bytes(line.as_bytes()).unwrap(),
                );
            }
            assert_eq!(check_transfer_codings(&headers).is_ok(), passes, "{lines:?}");
        }
    }
}

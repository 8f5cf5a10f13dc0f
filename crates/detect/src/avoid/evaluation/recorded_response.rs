//! A line of a recorded crawl.

use std::borrow::Cow;
use std::io::BufRead;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use huntsman_html::{content_charset, decode_body};
use serde::Deserialize;
use url::Url;

use super::recording::RecordingError;

/// A response of a recorded crawl.
///
/// The format is text of one JSON object per line: `url`, `status`, `ctype` (the content type), `location` (of redirects), and `body`, or
/// `body_base64` if the body is not UTF-8. Other fields are ignored. `huntsman crawl --record` writes it. If a URL has several lines, the
/// last one counts: a failure may have been followed by a retry.
///
/// ```
/// use huntsman_detect::avoid::evaluation::RecordedResponse;
///
/// let line = r#"{"n":1,"url":"http://h.example/","status":200,"ctype":"text/html; charset=latin1","body_base64":"Y2Fm6Q=="}"#;
/// let response = RecordedResponse::read(line.as_bytes()).next().unwrap()?;
/// assert_eq!((response.status, &*response.text()), (200, "café"));
/// # Ok::<(), huntsman_detect::avoid::evaluation::RecordingError>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RecordedResponse {
    /// The requested URL, without fragment.
    pub url: Url,
    /// The status code.
    pub status: u16,
    /// The content type; empty if there is none.
    pub content_type: String,
    /// Where a redirect leads.
    pub location: Option<Url>,
    /// The body, without content coding.
    pub body: Vec<u8>,
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    url: Cow<'a, str>,
    status: u16,
    #[serde(default)]
    ctype: Option<String>,
    #[serde(default)]
    location: Option<String>,
    #[serde(default)]
    body: Option<String>,
    #[serde(default, borrow)]
    body_base64: Option<Cow<'a, str>>,
}

impl RecordedResponse {
    /// Reads a recorded crawl, unpacked, response by response. Empty lines are ignored.
    ///
    /// # Errors
    /// The text cannot be read, or a line is malformed; the error names it.
    pub fn read(text: impl BufRead) -> impl Iterator<Item = Result<Self, RecordingError>> {
        text.lines().enumerate().filter_map(|(number, line)| match line {
            Ok(line) if line.is_empty() => None,
            Ok(line) => {
                Some(Self::parse(&line).map_err(|what| RecordingError::Line { number: number + 1, what }))
            }
            Err(error) => Some(Err(RecordingError::Io(error))),
        })
    }

    fn parse(line: &str) -> Result<Self, String> {
        let line: Line<'_> = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let mut url =
            Url::parse(&line.url).map_err(|error| format!("{}: {error}", line.url.escape_debug()))?;
        url.set_fragment(None);
        let body = match (line.body, line.body_base64) {
            (Some(text), _) => text.into_bytes(),
            (None, Some(code)) => STANDARD.decode(&*code).map_err(|error| format!("body_base64: {error}"))?,
            (None, None) => Vec::new(),
        };
        let location = line.location.and_then(|location| url.join(&location).ok());
        let content_type = line.ctype.unwrap_or_default();
        Ok(Self { url, status: line.status, content_type, location, body })
    }

    /// The body as text, decoded as the crawler decodes it.
    pub fn text(&self) -> Cow<'_, str> {
        decode_body(&self.body, content_charset(&self.content_type), None).text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_may_have_any_body_and_a_malformed_one_is_named() {
        let text = "{\"url\":\"http://h/a#b\",\"status\":200,\"ctype\":\"text/html\",\"location\":null,\"body\":\"\\u00e9\"}\n\n\
            {\"url\":\"http://h/b\",\"status\":302,\"location\":\"c?d\",\"depth\":3}\n\
            {\"url\":\"http://h/c\",\"status\":200,\"body_base64\":\"/w==\",\"truncated\":true}\n";
        let read: Vec<RecordedResponse> =
            RecordedResponse::read(text.as_bytes()).map(Result::unwrap).collect();
        assert_eq!((read[0].url.as_str(), &*read[0].text()), ("http://h/a", "\u{e9}"));
        assert_eq!(read[1].location.as_ref().unwrap().as_str(), "http://h/c?d");
        assert_eq!(
            (&read[1].content_type[..], &read[1].body[..], &read[2].body[..]),
            ("", &b""[..], &[255][..])
        );
        for (line, what) in [
            ("{", "EOF"),
            ("{\"url\":\"/a\",\"status\":200}", "/a"),
            ("{\"url\":\"http://h/\",\"status\":200,\"body_base64\":\"?\"}", "body_base64"),
        ] {
            let error = RecordedResponse::read(format!("\n{line}\n").as_bytes()).next().unwrap().unwrap_err();
            let said = error.to_string();
            assert!(said.starts_with("line 2: ") && said.contains(what), "{said}");
        }
    }
}

//! Downloads that failed: the part of a body that was received, and why there is no response.

use huntsman_crawler::{FetchError, FetchErrorKind, Request, Timestamp};
use huntsman_warc::{Options, Record, RecordKind, record_id};

use super::exchange::{head_of, metadata, without_user};

/// Why the body of a response is not whole, by the words of the standard.
pub(super) fn truncation(kind: FetchErrorKind) -> &'static str {
    use FetchErrorKind as K;
    match kind {
        K::ConnectTimeout | K::FirstByteTimeout | K::IdleTimeout | K::TotalTimeout => "time",
        K::Reset | K::Incomplete | K::Proxy => "disconnect",
        K::TooLarge => "length",
        _ => "unspecified",
    }
}

/// Whether a failure says something of the site, and not of a setting, a rule or the end of the crawl.
pub(super) fn is_of_site(kind: FetchErrorKind) -> bool {
    use FetchErrorKind as K;
    matches!(
        kind,
        K::Dns
            | K::Connect
            | K::Tls
            | K::ConnectTimeout
            | K::FirstByteTimeout
            | K::IdleTimeout
            | K::TotalTimeout
            | K::Reset
            | K::Incomplete
            | K::BadResponse
            | K::TooLarge
            | K::Decode
    )
}

/// The records of a download without a response, each as a gzip member: the request, if it was sent, and `metadata` with the reason in the field
/// `fetchError`.
pub(super) fn members(
    request: &Request,
    error: &FetchError,
    now: Timestamp,
    keeps_credentials: bool,
    options: Options,
) -> Vec<u8> {
    let (url, date) = (without_user(&request.url), now.to_rfc3339());
    let unique: [u8; 16] = rand::random();
    let id = |what: &[u8]| record_id(&[what, url.as_bytes(), &now.0.to_le_bytes(), &unique]);
    let mut fields = metadata(request, None);
    fields.push(("fetchError", error.kind().name().to_owned()));
    fields.push(("fetchErrorMessage", error.to_string()));
    let fields: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let mut about = Record::metadata(&date, &fields).id(id(b"metadata")).field("WARC-Target-URI", &url);
    let mut members = Vec::new();
    if error.was_sent() {
        let head = head_of(request, keeps_credentials);
        let sent = Record::new(RecordKind::Request, &date)
            .id(id(b"request"))
            .field("WARC-Target-URI", &url)
            .http(&head, &request.body);
        members.extend(sent.to_member(options));
        about = about.field("WARC-Concurrent-To", &id(b"request"));
    }
    members.extend(about.to_member(options));
    members
}

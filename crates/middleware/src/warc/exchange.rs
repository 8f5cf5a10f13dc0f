//! One exchange, and the records that it becomes.

use std::collections::HashSet;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, Version, header};
use huntsman_crawler::{Request, Response, Timestamp, meta};
use huntsman_warc::{Digest, Options, Record, RecordKind, is_packed, record_id, request_head, response_head};
use url::{Position, Url};

use super::known::{Known, Original};

const SAME_PAYLOAD: &str = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest";
const NOT_MODIFIED: &str = "http://netpreserve.org/warc/1.1/revisit/server-not-modified";

/// Marks a response, in its extensions, that was written.
#[derive(Clone, Debug)]
pub(super) struct Archived {
    id: String,
    url: String,
    date: String,
}

impl Archived {
    #[cfg(feature = "render")]
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    #[cfg(feature = "render")]
    pub(super) fn date(&self) -> &str {
        &self.date
    }

    /// The links of the page as a record about its response, in the form of Heritrix.
    pub(super) fn outlinks(&self, links: &[Url], options: Options) -> Vec<u8> {
        let mut seen = HashSet::new();
        let lines = links.iter().filter(|link| seen.insert(link.as_str()));
        let lines: Vec<String> = lines.map(|link| format!("{} L a/@href", without_user(link))).collect();
        let fields: Vec<(&str, &str)> = lines.iter().map(|line| ("outlink", line.as_str())).collect();
        Record::metadata(&self.date, &fields)
            .id(record_id(&[b"outlinks", self.id.as_bytes()]))
            .field("WARC-Target-URI", &self.url)
            .field("WARC-Concurrent-To", &self.id)
            .to_member(options)
    }
}

/// What was written of an exchange.
pub(super) struct Written {
    pub(super) bytes: usize,
    pub(super) is_revisit: bool,
}

/// A request and its response. Bodies are shared and not copied.
pub(super) struct Exchange {
    id: String,
    url: String,
    date: String,
    ip: Option<String>,
    method: Method,
    status: StatusCode,
    version: Version,
    /// The version of TLS.
    tls: Option<&'static str>,
    truncated: Option<&'static str>,
    request_head: Vec<u8>,
    request_body: Bytes,
    response_head: Vec<u8>,
    body: Bytes,
    /// Whether the body is compressed already.
    is_packed: bool,
    metadata: Vec<(&'static str, String)>,
}

impl Exchange {
    pub(super) fn new(
        request: &Request,
        response: &Response,
        now: Timestamp,
        keeps_credentials: bool,
    ) -> Self {
        let took = response.timings.total;
        let sent = Timestamp(now.0.saturating_sub(u64::try_from(took.as_micros()).unwrap_or(0)));
        let url = without_user(&request.url);
        let unique: [u8; 16] = rand::random();
        Self {
            id: record_id(&[b"response", url.as_bytes(), &sent.0.to_le_bytes(), &unique]),
            date: sent.to_rfc3339(),
            ip: response.ip.map(|ip| ip.to_string()),
            method: request.method.clone(),
            status: response.status,
            version: response.version,
            tls: response.tls_version,
            truncated: truncation(response),
            request_head: head_of(request, keeps_credentials),
            request_body: request.body.clone(),
            response_head: response_head(
                response.status,
                response.version,
                &response.headers,
                &response.body,
            ),
            body: response.body.clone(),
            is_packed: is_packed(&response.headers, &response.body),
            metadata: metadata(request, Some(took)),
            url,
        }
    }

    /// An exchange whose body failed: the part that was received, and why there is no more.
    pub(super) fn partial(mut self, why: &'static str, error: &str) -> Self {
        self.truncated = Some(why);
        self.metadata.push(("fetchError", error.to_owned()));
        self
    }

    /// Notes what else is told of the exchange.
    pub(super) fn note(&mut self, name: &'static str, value: &str) {
        self.metadata.push((name, value.to_owned()));
    }

    /// What later records about the response refer to.
    pub(super) fn archived(&self) -> Archived {
        Archived { id: self.id.clone(), url: self.url.clone(), date: self.date.clone() }
    }

    /// The body, without transfer coding and with its content coding.
    pub(super) fn body(&self) -> &[u8] {
        &self.body
    }

    /// The earlier record that has the body of this one.
    pub(super) fn original(&self, digest: &Digest, known: &Known) -> Option<Original> {
        if self.status == StatusCode::NOT_MODIFIED {
            return known.of_url(&self.url).cloned();
        }
        let may_refer = !self.body.is_empty() && self.truncated.is_none();
        may_refer.then(|| known.of_digest(digest).cloned()).flatten()
    }

    /// This exchange as one that later ones may refer to.
    pub(super) fn as_original(&self, digest: &Digest) -> Option<Original> {
        let is_whole = !self.body.is_empty() && self.truncated.is_none() && self.status.is_success();
        is_whole.then(|| Original {
            digest: digest.to_string(),
            url: self.url.clone(),
            date: self.date.clone(),
            id: self.id.clone(),
            answers_get: self.method == Method::GET,
        })
    }

    /// The records, each as a gzip member: the response, the request and what is told of both.
    pub(super) fn members(&self, digest: &Digest, original: Option<&Original>, options: Options) -> Vec<u8> {
        let mut members = self.response(digest, original).to_member(options);
        let request = self.record(RecordKind::Request, &self.id_of(b"request"));
        let request =
            request.field("WARC-Concurrent-To", &self.id).http(&self.request_head, &self.request_body);
        members.extend(request.to_member(options));
        let fields: Vec<(&str, &str)> =
            self.metadata.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let metadata = Record::metadata(&self.date, &fields)
            .id(self.id_of(b"metadata"))
            .field("WARC-Target-URI", &self.url)
            .field("WARC-Concurrent-To", &self.id);
        members.extend(metadata.to_member(options));
        members
    }

    fn response(&self, digest: &Digest, original: Option<&Original>) -> Record<'_> {
        let Some(original) = original else {
            let record = self.record(RecordKind::Response, &self.id).http(&self.response_head, &self.body);
            return record.body_digest(digest).packed(self.is_packed);
        };
        let is_304 = self.status == StatusCode::NOT_MODIFIED;
        let payload = if is_304 { original.digest.clone() } else { digest.to_string() };
        self.record(RecordKind::Revisit, &self.id)
            .field("WARC-Profile", if is_304 { NOT_MODIFIED } else { SAME_PAYLOAD })
            .field("WARC-Refers-To", &original.id)
            .field("WARC-Refers-To-Target-URI", &original.url)
            .field("WARC-Refers-To-Date", &original.date)
            .field("WARC-Payload-Digest", &payload)
            .http(&self.response_head, b"")
    }

    /// The fields that request and response share.
    fn record(&self, kind: RecordKind, id: &str) -> Record<'_> {
        let mut record = Record::new(kind, &self.date).id(id).field("WARC-Target-URI", &self.url);
        if let Some(ip) = &self.ip {
            record = record.field("WARC-IP-Address", ip);
        }
        let protocol = match self.version {
            Version::HTTP_2 => Some("h2"),
            Version::HTTP_3 => Some("h3"),
            _ => None,
        };
        if let Some(protocol) = protocol {
            record = record.field("WARC-Protocol", protocol);
        }
        if let Some(tls) = self.tls {
            record = record.field("WARC-Protocol", &tls.to_ascii_lowercase().replace(' ', "/"));
        }
        match self.truncated {
            Some(why) if kind == RecordKind::Response => record.field("WARC-Truncated", why),
            _ => record,
        }
    }

    fn id_of(&self, what: &[u8]) -> String {
        record_id(&[what, self.id.as_bytes()])
    }
}

/// The URL as it was requested, without user, password and fragment.
pub(super) fn without_user(url: &Url) -> String {
    let mut url = url.clone();
    if !url.username().is_empty() || url.password().is_some() {
        url.set_username("").and_then(|()| url.set_password(None)).expect("http has an authority");
    }
    url[..Position::AfterQuery].to_owned()
}

/// Why the body is not whole, by the words of the standard.
fn truncation(response: &Response) -> Option<&'static str> {
    let reasons = [
        ("truncated", "length"),
        ("dataloss", "disconnect"),
        ("partial", "disconnect"),
        ("download_stopped", "unspecified"),
        ("unread", "unspecified"),
    ];
    reasons.into_iter().find(|(flag, _)| response.has_flag(flag)).map(|(_, why)| why)
}

pub(super) fn head_of(request: &Request, keeps_credentials: bool) -> Vec<u8> {
    let url = &request.url;
    let host = &url[Position::BeforeHost..Position::AfterPort];
    let target = &url[Position::BeforePath..Position::AfterQuery];
    let mut headers: std::borrow::Cow<'_, HeaderMap> = std::borrow::Cow::Borrowed(&request.headers);
    if !headers.contains_key(header::ACCEPT) {
        // The client sends it, too.
        headers.to_mut().insert(header::ACCEPT, HeaderValue::from_static("*/*"));
    }
    request_head(&request.method, target, host, &headers, &request.body, |name, value| {
        let is_secret =
            name == header::AUTHORIZATION || name == header::PROXY_AUTHORIZATION || value.is_sensitive();
        keeps_credentials || !is_secret
    })
}

/// What is told of how a page was found, and of the time that it took.
pub(super) fn metadata(request: &Request, took: Option<std::time::Duration>) -> Vec<(&'static str, String)> {
    let redirects: Vec<String> = request.meta_value(meta::REDIRECT_URLS).unwrap_or_default();
    let via = redirects.last().map(String::as_str).or(request.referer.as_deref());
    let hops = usize::from(request.depth) + redirects.len();
    let via = via.and_then(|via| Url::parse(via).ok()).map(|via| ("via", without_user(&via)));
    via.into_iter()
        .chain([("hopsFromSeed", hops.to_string())])
        .chain(took.map(|took| ("fetchTimeMs", took.as_millis().to_string())))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use huntsman_crawler::{FetchError, FetchErrorKind};
    use huntsman_warc::{DigestKind, WarcReader};

    use super::super::failed;
    use super::*;

    fn request() -> Request {
        let mut request = Request::get("http://site.example/a?b#c".parse::<Url>().unwrap());
        for (name, value) in [("authorization", "Basic c2VjcmV0"), ("x-key", "secret"), ("cookie", "a=b")] {
            let mut value = HeaderValue::from_static(value);
            value.set_sensitive(name == "x-key");
            request.headers.insert(header::HeaderName::from_static(name), value);
        }
        request
    }

    fn response(status: u16, body: &'static str) -> Response {
        let url = "http://site.example/a?b".parse().unwrap();
        let mut response = Response::new(url, StatusCode::from_u16(status).unwrap(), body);
        response.timings.total = Duration::from_millis(1500);
        response
    }

    fn exchange(response: &Response) -> Exchange {
        Exchange::new(&request(), response, Timestamp(1_700_000_002_000_000), false)
    }

    #[test]
    fn credentials_are_left_out_unless_they_are_asked_for() {
        let without = String::from_utf8(head_of(&request(), false)).unwrap();
        assert!(without.starts_with("GET /a?b HTTP/1.1\r\nhost: site.example\r\n"), "{without}");
        assert!(without.contains("cookie: a=b") && !without.contains("ecret"), "{without}");
        let with = String::from_utf8(head_of(&request(), true)).unwrap();
        assert!(with.contains("x-key: secret") && with.contains("c2VjcmV0"), "{with}");
    }

    #[test]
    fn a_304_refers_to_the_answer_that_is_known_and_is_plain_without_one() {
        let digest = DigestKind::Sha1;
        let (first, later) = (exchange(&response(200, "page")), exchange(&response(304, "")));
        let mut known = Known::default();
        assert_eq!(later.original(&digest.of(b""), &known), None);
        known.add(first.as_original(&digest.of(b"page")).unwrap());
        let original = later.original(&digest.of(b""), &known).unwrap();
        let members = later.members(&digest.of(b""), Some(&original), Options::default());
        let mut reader = WarcReader::new(&members[..]);
        let head = reader.next_head().unwrap().unwrap();
        assert_eq!((head.kind(), head.get("WARC-Profile")), ("revisit", Some(NOT_MODIFIED)));
        assert_eq!(head.get("WARC-Refers-To"), Some(&*first.id));
        assert_eq!(head.get("WARC-Refers-To-Date"), Some("2023-11-14T22:13:20.500Z"), "when it was sent");
        assert_eq!(head.get("WARC-Payload-Digest"), Some(&*digest.of(b"page").to_string()));
        let request = reader.next_head().unwrap().unwrap();
        assert_eq!(request.get("WARC-Concurrent-To"), head.id());
    }

    #[test]
    fn a_body_that_is_cut_is_marked_and_nothing_refers_to_it() {
        let mut cut = response(200, "half");
        cut.add_flag("truncated");
        let exchange = exchange(&cut);
        let digest = DigestKind::Sha1.of(b"half");
        assert_eq!(exchange.as_original(&digest), None);
        let members = exchange.members(&digest, None, Options::default());
        let head = WarcReader::new(&members[..]).next_head().unwrap().unwrap();
        assert_eq!(head.get("WARC-Truncated"), Some("length"));
    }

    #[test]
    fn a_failed_download_leaves_what_came_of_it_and_why_it_failed() {
        let error = FetchError::new(FetchErrorKind::IdleTimeout, "no data for 5 s").after_sending();
        let partial =
            exchange(&response(200, "half")).partial(failed::truncation(error.kind()), error.kind().name());
        let digest = DigestKind::Sha1.of(b"half");
        assert_eq!(partial.as_original(&digest), None);
        let members = partial.members(&digest, None, Options::default());
        let mut reader = WarcReader::new(&members[..]);
        assert_eq!(reader.next_head().unwrap().unwrap().get("WARC-Truncated"), Some("time"));
        reader.next_head().unwrap();
        reader.next_head().unwrap();
        let about = String::from_utf8(reader.block(u64::MAX).unwrap().bytes).unwrap();
        assert!(about.ends_with("fetchError: idle_timeout\r\n"), "{about}");

        let members =
            |error: &FetchError| failed::members(&request(), error, Timestamp(0), false, Options::default());
        let kinds = |members: Vec<u8>| {
            let mut reader = WarcReader::new(&members[..]);
            let mut kinds = Vec::new();
            while let Some(head) = reader.next_head().unwrap() {
                kinds.push(head.kind().to_owned());
            }
            kinds
        };
        assert_eq!(kinds(members(&error)), ["request", "metadata"]);
        assert_eq!(kinds(members(&FetchError::new(FetchErrorKind::Dns, "no such name"))), ["metadata"]);
    }

    #[test]
    fn links_are_told_once_each_and_without_passwords() {
        let links: Vec<Url> = ["http://a.example/", "http://u:p@b.example/x#y", "http://a.example/"]
            .iter()
            .map(|link| link.parse().unwrap())
            .collect();
        let archived = exchange(&response(200, "page")).archived();
        let member = archived.outlinks(&links, Options::default());
        let mut reader = WarcReader::new(&member[..]);
        let head = reader.next_head().unwrap().unwrap();
        assert_eq!((head.kind(), head.get("WARC-Concurrent-To")), ("metadata", Some(&*archived.id)));
        let block = reader.block(u64::MAX).unwrap().bytes;
        assert_eq!(
            block,
            b"outlink: http://a.example/ L a/@href\r\noutlink: http://b.example/x L a/@href\r\n"
        );
    }

    #[test]
    fn protocols_are_fields_of_their_own() {
        let mut secure = response(200, "page");
        (secure.version, secure.tls_version) = (Version::HTTP_2, Some("TLS 1.3"));
        let members = exchange(&secure).members(&DigestKind::Sha1.of(b"page"), None, Options::default());
        let head = WarcReader::new(&members[..]).next_head().unwrap().unwrap();
        assert_eq!(head.all("WARC-Protocol").collect::<Vec<_>>(), ["h2", "tls/1.3"]);
    }
}

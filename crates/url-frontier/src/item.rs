//! Requests as URLs of the server, and back.

use http::Method;
use huntsman_crawler::{Fingerprinter, HostKey, Order, Request, SlotBy, StoredRequest, meta};
use prost::Message;
use url::Url;

use crate::message::{StringList, UrlInfo};

/// The name of the metadata that holds a request: the first bytes of its stored form in hexadecimal digits, and the rest, which is text.
const REQUEST: &str = "hm";
/// Bytes of a stored request before its text: the version and the fingerprint.
const HEAD: usize = 17;
/// The most bytes of a request with all that belongs to it.
const MAX_REQUEST: usize = 1 << 20;
/// The most bytes of the name of a queue.
const MAX_KEY: usize = 255;

/// How requests become URLs of one job.
#[derive(Clone, Debug)]
pub(crate) struct Form {
    pub(crate) job: String,
    pub(crate) fingerprinter: Fingerprinter,
    pub(crate) slot_by: SlotBy,
}

impl Form {
    /// The URL by which the server knows a request. It decides whether the request is known, as its fingerprint does elsewhere: requests
    /// that differ in other things than the canonical URL have a fragment, which no page has.
    pub(crate) fn url(&self, request: &Request) -> String {
        let mut url = self.fingerprinter.canonical(&request.url);
        let fingerprint = request.fingerprint();
        let is_plain = request.method == Method::GET
            && request.body.is_empty()
            && self.fingerprinter.of_get(&request.url) == Some(fingerprint);
        if !is_plain {
            url.push_str(&format!("#{REQUEST}-{:032x}", fingerprint.0));
        }
        url
    }

    /// A request as the server stores it.
    ///
    /// # Errors
    /// The server cannot hold the request; the text says why.
    pub(crate) fn info(&self, request: &Request) -> Result<UrlInfo, String> {
        let host = request.host();
        let key = host.as_str();
        if key.is_empty() || key.len() > MAX_KEY {
            return Err(format!("a queue of a URLFrontier server has a name of 1 to {MAX_KEY} bytes"));
        }
        let stored = StoredRequest::new(request, Order::Bfs);
        let (head, text) = stored.bytes.split_at(HEAD);
        let head: String = head.iter().map(|byte| format!("{byte:02x}")).collect();
        let text = String::from_utf8_lossy(text).into_owned();
        let info = UrlInfo {
            url: self.url(request),
            key: key.to_owned(),
            metadata: [(REQUEST.to_owned(), StringList { values: vec![head, text] })].into(),
            crawl_id: self.job.clone(),
        };
        let size = info.encoded_len();
        if size > MAX_REQUEST {
            return Err(format!(
                "it takes {size} bytes, and a URLFrontier server gets {MAX_REQUEST} at most"
            ));
        }
        Ok(info)
    }

    /// The request of a served URL. One of another crawler is a plain GET.
    ///
    /// # Errors
    /// There is no such request; the text says why.
    pub(crate) fn request(&self, info: &UrlInfo) -> Result<Request, String> {
        if let Some(stored) = info.metadata.get(REQUEST) {
            match read(stored, &HostKey::new(&info.key)) {
                Ok(request) => return Ok(request),
                Err(why) => {
                    tracing::warn!(url = %info.url, "a queued request is asked as a plain GET: {why}")
                }
            }
        }
        let url = Url::parse(&info.url).map_err(|error| error.to_string())?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!("{} is no scheme of the web", url.scheme()));
        }
        // What another crawler has put is wanted, whatever the scope of this crawl's links is.
        let mut request = Request::get(url).with_meta(meta::ALLOW_OFFSITE, true);
        request.assign_slot(HostKey::of(&request.url, self.slot_by));
        let fingerprint = self.fingerprinter.of(&request);
        request.assign_fingerprint(fingerprint);
        Ok(request)
    }

    /// What is sent of a served URL when it is done: all but the request.
    pub(crate) fn without_request(&self, info: &UrlInfo) -> UrlInfo {
        let mut info = info.clone();
        info.metadata.remove(REQUEST);
        info.crawl_id.clone_from(&self.job);
        info
    }
}

/// Reads a stored request.
fn read(stored: &StringList, host: &HostKey) -> Result<Request, String> {
    let [head, text] = stored.values.as_slice() else {
        return Err("its metadata is not of this program".to_owned());
    };
    let digits = head.as_bytes().chunks(2).map(|pair| {
        let pair = std::str::from_utf8(pair).ok().filter(|pair| pair.len() == 2)?;
        u8::from_str_radix(pair, 16).ok()
    });
    let mut bytes: Vec<u8> = digits.collect::<Option<_>>().ok_or("its metadata is not of this program")?;
    bytes.extend_from_slice(text.as_bytes());
    StoredRequest::request(&bytes, host).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form() -> Form {
        Form { job: "job".to_owned(), fingerprinter: Fingerprinter::default(), slot_by: SlotBy::Host }
    }

    fn request(url: &str) -> Request {
        Request::parse(url).unwrap()
    }

    #[test]
    fn a_request_comes_back_as_it_was() {
        let mut plain = request("http://a.example/x?y=1#frag");
        plain.referer = Some("http://a.example/".into());
        (plain.depth, plain.retries, plain.nofollow) = (3, 2, true);
        let full = request("https://user:pass@a.example:8443/full?q=%C3%A9")
            .method(Method::POST)
            .body(vec![0u8, 200, 255])
            .header("X-A", "1")
            .unwrap()
            .callback("detail")
            .cb_kwarg("page", 3)
            .priority(-3)
            .meta("nested", serde_json::json!({"a": [1, null, "x"]}));
        let mut slot = request("http://a.example/slot");
        slot.assign_slot(HostKey::new("a slot of its own"));
        slot.assign_fingerprint(huntsman_crawler::Fingerprint(7 << 100));
        for sent in [plain, full, slot, request("http://xn--bcher-kva.example/")] {
            let info = form().info(&sent).unwrap();
            assert_eq!(info.key, sent.host().as_str());
            let back = form().request(&info).unwrap();
            assert_eq!(back, sent);
            assert_eq!((back.host(), back.fingerprint()), (sent.host(), sent.fingerprint()));
        }
    }

    #[test]
    fn requests_of_one_fingerprint_have_one_url_and_others_have_others() {
        let url = |request: &Request| form().url(request);
        let plain = request("http://a.example/?b=2&a=1");
        assert_eq!(url(&plain), "http://a.example/?a=1&b=2");
        assert_eq!(url(&plain), url(&request("http://a.example/?a=1&b=2#top")));
        let post = |body: &'static str| plain.clone().method(Method::POST).body(body);
        let urls = [url(&plain), url(&post("x")), url(&post("y")), url(&plain.clone().method(Method::HEAD))];
        assert!(urls[1].starts_with("http://a.example/?a=1&b=2#hm-"), "{urls:?}");
        assert_eq!(urls.iter().collect::<std::collections::BTreeSet<_>>().len(), 4, "{urls:?}");
        assert_eq!(url(&post("x")), url(&post("x")));
    }

    #[test]
    fn a_request_that_the_server_cannot_hold_is_refused() {
        let mut long = request("http://a.example/");
        long.assign_slot(HostKey::new(&"x".repeat(256)));
        assert!(form().info(&long).unwrap_err().contains("1 to 255 bytes"));
        let large = request("http://a.example/").meta("x", "x".repeat(MAX_REQUEST));
        assert!(form().info(&large).unwrap_err().contains("1048576 at most"));
    }

    #[test]
    fn a_url_of_another_crawler_is_a_plain_get_and_what_is_none_is_told() {
        let of = |url: &str, metadata: &[(&str, &[&str])]| UrlInfo {
            url: url.to_owned(),
            key: "other".to_owned(),
            metadata: metadata
                .iter()
                .map(|(name, values)| {
                    let values = values.iter().map(|value| (*value).to_owned()).collect();
                    ((*name).to_owned(), StringList { values })
                })
                .collect(),
            crawl_id: String::new(),
        };
        let read = |info: &UrlInfo| form().request(info).unwrap();
        let plain = read(&of("http://www.a.example/x", &[("depth", &["3"])]));
        assert_eq!((plain.url.as_str(), plain.method.as_str()), ("http://www.a.example/x", "GET"));
        assert_eq!(plain.host(), HostKey::new("www.a.example"));
        assert_eq!(plain.fingerprint(), request("http://www.a.example/x").fingerprint());
        let damaged: [&[&str]; 5] = [&[], &["01"], &["zz", "{}"], &["0", "{}"], &["\u{e9}1", "{}"]];
        for damaged in damaged {
            assert_eq!(read(&of("http://a.example/", &[("hm", damaged)])).url.path(), "/");
        }
        for wrong in ["", "a.example", "ftp://a.example/", "http://"] {
            assert!(form().request(&of(wrong, &[])).is_err(), "{wrong}");
        }
    }
}

//! Requirements on code that reads untrusted bytes: no panic, no hang, and properties of the result that must hold
//! for any input. The fuzzer (`fuzz/`) runs these targets with random bytes, and every test run uses the inputs in
//! `tests/fuzz/inputs`.

pub(crate) mod answers;
pub(crate) mod archives;
pub(crate) mod index;
pub(crate) mod job;
pub(crate) mod page_data;
pub(crate) mod select;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use huntsman::detect::copyvio::{
    Article, Boilerplate, Chain, Check, CheckOptions, Degree, Text, Wikitext, WindowIndex, highlight_html,
    html_text, licence_hint, sentences,
};
use huntsman::detect::urlparts::canonical;
use huntsman::detect::urlparts::guard::{most_repeated_segment, repeated_sequence, template_into};
use huntsman::html::{Scan, ScanOptions};
use huntsman::middleware::CookieJar;
use huntsman::store::{Batch, Durability, MemoryStore, Store};
use huntsman::{
    DecodeLimits, DiskFrontier, DiskLimits, Frontier, Order, Page, Request, Response, Sitemap, SitemapLimits,
    Timestamp,
};
use url::Url;

/// A function that must accept any bytes.
pub(crate) type Target = fn(&[u8]);

/// The targets by name.
pub(crate) const TARGETS: &[(&str, Target)] = &[
    ("headers", headers),
    ("robots", robots),
    ("html", html),
    ("url", url),
    ("store", store),
    ("cookies", cookies),
    ("sitemap", sitemap),
    ("wikitext", wikitext),
    ("page_text", page_text),
    ("page_data", page_data::page_data),
    ("compare", compare),
    ("decoders", decoders),
    ("job", job::job),
    ("index", index::index),
    #[cfg(feature = "redis")]
    ("resp", index::resp),
    ("answers", answers::answers),
    ("css", select::css),
    ("xpath", select::xpath),
    ("forms", select::forms),
    ("links", select::links),
    ("warc", archives::warc),
    ("wacz", archives::wacz),
];

/// The first line and the rest.
fn split(data: &[u8]) -> (&[u8], &[u8]) {
    match data.iter().position(|byte| *byte == b'\n') {
        Some(at) => (&data[..at], &data[at + 1..]),
        None => (data, b""),
    }
}

/// Headers, line by line, and after an empty line a body: builds a page from both.
pub(crate) fn headers(data: &[u8]) {
    let url = Url::parse("http://h.example/dir/page?q").expect("a URL");
    let mut response = Response::new(url.clone(), http::StatusCode::OK, "");
    let mut rest = data;
    loop {
        let (line, after) = split(rest);
        rest = after;
        let colon = line.iter().position(|byte| *byte == b':');
        let Some((name, value)) = colon.map(|at| (&line[..at], &line[at + 1..])) else { break };
        if let (Ok(name), Ok(value)) =
            (http::HeaderName::from_bytes(name), http::HeaderValue::from_bytes(value))
        {
            response.headers.append(name, value);
        }
    }
    let limits = DecodeLimits { max_size: 1 << 20, ..DecodeLimits::of(&huntsman::Settings::default()) };
    if let Ok(Some(decoded)) = huntsman::decode_body(&response.headers, rest, limits) {
        assert!(decoded.body.len() <= 1 << 20);
        response.body = decoded.body;
    } else {
        response.body = rest.to_vec().into();
    }
    if let Some(value) = response.header("retry-after") {
        let wait =
            huntsman::retry_after::retry_after(value, SystemTime::UNIX_EPOCH, Duration::from_secs(120));
        assert!(wait.is_none_or(|wait| wait <= Duration::from_secs(120)));
    }
    let page = Page::new(Request::get(url), response);
    let _ = (page.kind(), page.encoding(), page.title().map(str::len), page.declared_lang().map(str::len));
    for link in page.links() {
        assert!(matches!(link.scheme(), "http" | "https"));
    }
    let _ = page.text().len();
}

/// Content codings in the first line, then a body: limits hold, truncated output is a prefix of the full one, and
/// half of a compressed body is never taken for the whole.
pub(crate) fn decoders(data: &[u8]) {
    const MOST: u64 = 1 << 20;
    let (codings, body) = split(data);
    let decoded = |codings: &[u8], body: &[u8], max_size: u64, truncate: bool| {
        let mut headers = http::HeaderMap::new();
        if let Ok(value) = http::HeaderValue::from_bytes(codings) {
            headers.insert(http::header::CONTENT_ENCODING, value);
        }
        let limits = DecodeLimits { max_size, truncate, ..DecodeLimits::of(&huntsman::Settings::default()) };
        huntsman::decode_body(&headers, body, limits)
    };
    let whole = decoded(codings, body, MOST, false);
    if let Ok(Some(whole)) = &whole
        && !whole.unknown
    {
        assert!(whole.body.len() as u64 <= MOST && !whole.truncated);
        let length = whole.body.len() as u64;
        let cut = decoded(codings, body, MOST, true).expect("a limit that is not reached changes nothing");
        assert_eq!(cut.as_ref(), Some(whole));
        if let Ok(Some(cut)) = decoded(codings, body, (length / 2).max(1), true) {
            assert!(whole.body.starts_with(&cut.body) && cut.body.len() as u64 <= (length / 2).max(1));
        }
    }
    if let Err(error) = &whole
        && error.kind() == huntsman::FetchErrorKind::TooLarge
    {
        // All stages have one limit: an inner stage may be the one that was too large.
        let cut = decoded(codings, body, MOST, true).expect("a larger body is cut");
        assert!(cut.is_some_and(|cut| cut.truncated && cut.body.len() as u64 <= MOST));
    }
    if let Ok(length) = u16::try_from(body.len()) {
        let packed = stored(body);
        let back = decoded(b"gzip", &packed, 0, false).expect("it is gzip").expect("it was packed");
        assert!(back.body == body && !back.partial);
        let half = usize::from(length) * codings.len() % packed.len();
        let half = decoded(b"gzip", &packed[..half], 0, false);
        let is_told = half.is_err()
            || half.is_ok_and(|half| half.is_none_or(|half| half.partial || half.body.is_empty()));
        assert!(is_told, "half of a body is told as such");
    }
}

/// A path in the first line, then a robots.txt.
pub(crate) fn robots(data: &[u8]) {
    let (path, body) = split(data);
    let robots = huntsman::robots::Robots::parse(body);
    let base = Url::parse("http://h.example/").expect("a URL");
    let _ = robots.sitemaps(&base).len();
    let path = format!("/{}", String::from_utf8_lossy(path));
    for agent in ["Huntsman/1.0 (+https://h.example/)", "", "*"] {
        let rules = robots.agent(agent);
        let _ = (rules.decide(&path).allowed, rules.delay());
        assert!(rules.decide("/robots.txt").allowed, "it is always allowed itself");
    }
}

/// A document: two scans of it are equal, and the tree of a page can be built, walked and dropped.
pub(crate) fn html(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let options = ScanOptions { text: true, blocks: true, ..ScanOptions::default() };
    let (mut one, mut two) = (Scan::default(), Scan::default());
    one.run(&text, &options);
    two.run("<p>something else", &options);
    two.run(&text, &options);
    assert_eq!(one.text(), two.text());
    let links = |scan: &Scan| -> Vec<String> { scan.links(&text).map(|link| link.href.to_owned()).collect() };
    assert_eq!(links(&one), links(&two));
    let blocks: usize = one.blocks().map(|block| block.text.len()).sum();
    assert!(blocks <= one.text().len());
    let _ = (one.title(&text).map(str::len), one.base_href(&text).map(str::len));
    if data.len() < 20_000 {
        let url = Url::parse("http://h.example/").expect("a URL");
        let page = Page::new(Request::get(url.clone()), Response::html(url, data.to_vec()));
        for element in page.select("a, p").expect("a selector") {
            let _ = element.text().len();
        }
    }
}

/// A URL, on a base: its canonical form must be its own canonical form, and a stored request must keep its
/// fingerprint.
pub(crate) fn url(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let base = Url::parse("http://h.example/a/b?c=d").expect("a URL");
    let Ok(url) = base.join(&text) else { return };
    let form = canonical(&url);
    if matches!(url.scheme(), "http" | "https") {
        let again = Url::parse(&form).expect("the canonical form of a URL is one");
        assert_eq!(canonical(&again), form, "the form of the form is the form");
    }
    let mut template = String::new();
    template_into(url.path(), &mut template);
    let _ = (most_repeated_segment(url.path()), repeated_sequence(url.path()).is_some());
    if let Ok(request) = Request::parse(&text) {
        let back = Request::from_json(request.to_json()).expect("what was written can be read");
        // For other schemes, which are never fetched, the canonical form of a canonical form may differ from it
        // (drive letters of `file:`).
        if matches!(request.url.scheme(), "http" | "https") {
            assert_eq!(back.fingerprint(), request.fingerprint());
        }
    }
}

/// The content of a store, as key lengths, keys, value lengths and values: it must be opened or refused, and then be
/// usable.
pub(crate) fn store(data: &[u8]) {
    if let Ok(value) = serde_json::from_slice(data) {
        let _ = Request::from_json(value);
    }
    let store = Arc::new(MemoryStore::new());
    let mut batch = Batch::new();
    let mut rest = data;
    let mut take = |length: usize| {
        let (head, tail) = rest.split_at(length.min(rest.len()));
        rest = tail;
        head.to_vec()
    };
    let mut row = 0u64;
    loop {
        let head = take(3);
        let [kind, high, low] = head[..] else { break };
        let value = take(usize::from(u16::from_be_bytes([high, low])));
        let prefix: &[u8] = match kind % 3 {
            0 => b"f/j/",
            1 => b"f/s/",
            _ => b"f/r/",
        };
        row += 1;
        let number = if kind % 3 == 0 { row } else { u64::from(kind / 3) };
        batch.put([prefix, &number.to_be_bytes()[..]].concat(), value);
    }
    store.write(&batch, Durability::Process).expect("memory takes it");
    let limits = DiskLimits { requests: 4, seen: 4, uncommitted: 1_000 };
    let Ok(frontier) = DiskFrontier::open(store, Order::Bfs, limits) else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        let Ok(hosts) = frontier.open().await else { return };
        for (host, _) in hosts.iter().take(8) {
            let _ = frontier.lease(host, 8, Timestamp::MAX).await;
        }
        let request = Request::parse("http://h.example/").expect("a URL");
        let _ = frontier.push(vec![request]).await;
        let _ = frontier.sync().await;
    });
}

/// Set-Cookie headers, line by line: the jar sends at most one header, and storing and loading does not change that.
pub(crate) fn cookies(data: &[u8]) {
    let here = Url::parse("https://www.h.example/a/b").expect("a URL");
    let elsewhere = Url::parse("http://other.example/").expect("a URL");
    let now = Timestamp(1_700_000_000_000_000);
    let mut jar = CookieJar::new();
    for line in data.split(|byte| *byte == b'\n') {
        jar.store(&here, &String::from_utf8_lossy(line), now);
    }
    assert_eq!(jar.header(&elsewhere, now), None, "a cookie of another host");
    let header = jar.header(&here, now);
    if let Some(header) = &header {
        assert!(header.len() <= 8 << 10);
        http::HeaderValue::from_str(header)
            .or_else(|_| http::HeaderValue::from_bytes(header.as_bytes()))
            .expect("what is sent is a header");
    }
    let mut again = CookieJar::from_json(&jar.to_json()).expect("what was written can be read");
    assert_eq!(again.header(&here, now), header);
    let _ = CookieJar::from_netscape(&String::from_utf8_lossy(data));
    let _ = CookieJar::from_netscape(&jar.to_netscape()).expect("what was written can be read");
}

/// A sitemap: all entries have addresses, limits hold, and the compressed file gives the same entries.
pub(crate) fn sitemap(data: &[u8]) {
    let base = Url::parse("http://h.example/dir/sitemap.xml").expect("a URL");
    let read = |body: &[u8], limits: SitemapLimits| {
        let mut sitemap = Sitemap::new(body, &base, limits);
        let entries: Vec<_> = sitemap.by_ref().collect();
        (entries, sitemap.report())
    };
    let (entries, report) = read(data, SitemapLimits::default());
    assert_eq!(entries.len(), report.entries);
    assert!(entries.is_empty() || report.kind.is_some());
    for entry in &entries {
        let alternates = entry.alternates.iter().map(|alternate| &alternate.href);
        for url in std::iter::once(&entry.loc).chain(alternates) {
            assert!(matches!(url.scheme(), "http" | "https"), "{url}");
        }
        assert!(entry.priority.is_none_or(|priority| (0.0..=1.0).contains(&priority)));
        assert!(entry.lastmod.as_ref().is_none_or(|date| date.len() <= 8 << 10));
    }
    let limits = SitemapLimits { max_entries: 2, ..SitemapLimits::default() };
    let (few, cut) = read(data, limits);
    assert_eq!(
        (&few[..], cut.entries_cut),
        (&entries[..entries.len().min(2)], entries.len().saturating_sub(2))
    );
    let limits = SitemapLimits { max_bytes: 100, ..limits };
    assert!(read(data, limits).0.len() <= 2);
    if !data.starts_with(&[0x1f, 0x8b]) && data.len() <= 0xffff {
        let (unpacked, unpacked_report) = read(&stored(data), SitemapLimits::default());
        assert_eq!(unpacked, entries);
        assert_eq!(unpacked_report, report);
    }
}

/// Gzip without compression: one stored block (RFC 1951, 3.2.4).
fn stored(data: &[u8]) -> Vec<u8> {
    let step = |sum: u32, _| if sum & 1 == 1 { (sum >> 1) ^ 0xedb8_8320 } else { sum >> 1 };
    let crc = !data.iter().fold(!0u32, |sum, byte| (0..8).fold(sum ^ u32::from(*byte), step));
    let length = data.len() as u16;
    let mut out = b"\x1f\x8b\x08\0\0\0\0\0\0\xff\x01".to_vec();
    out.extend(length.to_le_bytes());
    out.extend((!length).to_le_bytes());
    out.extend(data);
    out.extend(crc.to_le_bytes());
    out.extend(u32::from(length).to_le_bytes());
    out
}

/// A wiki page: its text, its links, and the document made of the text.
pub(crate) fn wikitext(data: &[u8]) {
    let source = String::from_utf8_lossy(data);
    let page = Wikitext::new(&source);
    let text = page.text();
    assert!(!text.contains("\n\n"));
    assert!(page.links().iter().all(|link| source.contains(link)));
    assert!(sentences(&text).iter().all(|sentence| text.contains(sentence)));
    let chain = Chain::of(&html_text(&source), Degree::default());
    let marked = highlight_html(&text, &chain);
    assert_eq!(marked.matches("<span").count(), marked.matches("</span>").count());
}

/// A page as a source: both of its texts, and the parts of them that are no evidence.
pub(crate) fn page_text(data: &[u8]) {
    let (page, addresses) = Text::html_and_addresses(data, None);
    assert_eq!(page, Text::html(data, None));
    let mirror = addresses.mirror(&["h.example/wiki/".to_owned(), String::new()]);
    assert_eq!(mirror.is_some(), addresses.bytes() > 0);
    let document = page.document();
    assert!(document.words() >= 0.0 && document.text().len() <= page.text().len());
    assert!(page.windows(Degree::default()).size() >= 4, "there are the marks");
    let evidence = Article::new(page.document()).compare(&document);
    assert!(evidence.coverage_counted <= evidence.coverage && evidence.score <= evidence.score_with_excused);
    let _ = licence_hint(&String::from_utf8_lossy(data)).is_some();
}

/// An article, a zero byte, a source: shared passages are in both, and an index finds the matches that it promises.
pub(crate) fn compare(data: &[u8]) {
    let at = data.iter().position(|byte| *byte == 0).unwrap_or(data.len());
    let (one, two) = (&data[..at], data.get(at + 1..).unwrap_or_default());
    let (one, two) = (Text::plain(one, Some("utf-8")), Text::plain(two, Some("utf-8")));
    let (article, source) = (Article::new(one.document()), two.document());
    let mut boilerplate = Boilerplate::new(2, 50);
    ["a.example", "b.example"].iter().for_each(|host| boilerplate.observe(host, &source));
    for evidence in [article.compare(&source), article.compare_knowing(&source, &boilerplate)] {
        assert!((0.0..=1.0).contains(&evidence.coverage) && (0.0..=1.0).contains(&evidence.score.value()));
        assert!(evidence.matched <= evidence.words && evidence.longest <= evidence.matched);
        for passage in &evidence.passages {
            for (text, span) in [(one.text(), &passage.article), (two.text(), &passage.source)] {
                let piece = text.get(span.bytes.clone()).expect("a span is a part of the text");
                assert_eq!(piece.chars().count(), span.chars.len());
                assert_eq!(text[..span.bytes.start].chars().count(), span.chars.start);
            }
        }
        let places = evidence.passages.windows(2);
        assert!(places.into_iter().all(|pair| pair[0].article.bytes.end <= pair[1].article.bytes.start));
    }
    let mut check = Check::new(one.exact(), CheckOptions::compare());
    let confidence = check.compare("http://h.example/", two.exact()).confidence.value();
    assert!((0.0..=1.0).contains(&confidence));
    let mut index = WindowIndex::new(Degree::default(), 3);
    index.add(1, &source);
    let found = index.candidates(article.document(), 1);
    // Words of scripts without spaces count as a half or a quarter of a word, so runs of evidence may be longer than
    // their stated length.
    let run = evidence_run(&article.compare(&source));
    assert!(run < index.run() as f64 || found.texts.len() == 1, "a run of {run} words was not found");
}

/// The longest part of a passage without a gap.
fn evidence_run(evidence: &huntsman::detect::copyvio::Evidence) -> f64 {
    evidence.passages.iter().map(|passage| passage.longest).fold(0.0, f64::max)
}

//! A page as rules see it: what it says of itself, and to which classes it belongs.

use std::cell::OnceCell;
use std::collections::HashSet;

use http::HeaderMap;
use huntsman_crawler::{AllowedAddresses, Page, PageKind, Response};
use huntsman_html::{LinkElement, Meta, PageFacts, Region};
use huntsman_middleware::AuditSettings;
use huntsman_text::words;
use memchr::memmem;
use percent_encoding::percent_decode_str;
use url::Url;
use xxhash_rust::xxh3::xxh3_128;

use crate::answer_record::contradiction;
use crate::code::PageClass;
use crate::feed;
use crate::finding::Place;
use crate::likeness::Likeness;
use crate::place::Lines;
use crate::record::{Alternate, Edge, EdgeKind, HtmlRecord, NamedFile, NamedFor};
use crate::rendering;
use crate::soft_404;
use crate::spider::is_public;
use crate::structured;

/// Text of links and other values that is kept.
const MAX_TEXT: usize = 200;
/// Files of one page that are kept which it names for programs.
const MAX_FILES: usize = 20;

/// A canonical URL as a page states it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Canonical {
    /// As written.
    pub href: String,
    /// Resolved, without its fragment; `None` if it is no http or https URL that can be that of a page.
    pub url: Option<String>,
    /// Offset of the element; `None` if it is in a header.
    pub offset: Option<u32>,
}

/// The hosts of an audit.
#[derive(Clone, Copy)]
pub(crate) struct KnownHosts<'a> {
    /// Hosts that the user names, however local they are.
    pub(crate) allowed: &'a AllowedAddresses,
    /// Tells the URLs of hosts that are audited.
    pub(crate) is_audited: &'a dyn Fn(&Url) -> bool,
}

/// A page of the site that is judged.
pub struct AuditedPage<'a> {
    page: &'a Page,
    facts: &'a PageFacts,
    limits: &'a AuditSettings,
    hosts: KnownHosts<'a>,
    lines: Lines<'a>,
    canonicals: Vec<Canonical>,
    robots: Robots,
    own_text: OnceCell<String>,
    words: OnceCell<usize>,
}

/// What a page tells robots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Robots {
    index: bool,
    noindex: bool,
    nofollow: bool,
    nosnippet: bool,
    noimageindex: bool,
}

impl std::fmt::Debug for AuditedPage<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AuditedPage").field("url", &self.url().as_str()).finish_non_exhaustive()
    }
}

impl<'a> AuditedPage<'a> {
    /// The page; `None` unless its status is 2xx and it is HTML that was received whole and scanned for an audit
    /// ([`ScanOptions::audit`](huntsman_html::ScanOptions::audit)).
    pub(crate) fn of(page: &'a Page, limits: &'a AuditSettings, hosts: KnownHosts<'a>) -> Option<Self> {
        let response = page.response();
        let is_html = page.kind() == PageKind::Html && contradiction(response, true).is_none();
        if !response.status.is_success() || !is_html || !is_whole(response) {
            return None;
        }
        let (scan, text) = page.scanned();
        let facts = scan.facts()?;
        let mut audited = Self {
            page,
            facts,
            limits,
            hosts,
            lines: Lines::new(text),
            canonicals: Vec::new(),
            robots: Robots::default(),
            own_text: OnceCell::new(),
            words: OnceCell::new(),
        };
        audited.canonicals = audited.read_canonicals();
        audited.robots = audited.read_robots();
        Some(audited)
    }

    /// The page of the crawl, with its request and response.
    pub fn page(&self) -> &'a Page {
        self.page
    }

    /// Its URL; of a page whose scripts change its address, the one that was asked for.
    pub fn url(&self) -> &'a Url {
        if rendering::is_rendered(self.page) { &self.page.request().url } else { self.page.url() }
    }

    /// What the scan found.
    pub fn facts(&self) -> &'a PageFacts {
        self.facts
    }

    /// Whether the page was sent as XML, which is not read by the rules of HTML.
    pub fn is_xml(&self) -> bool {
        self.page.response().content_type().is_some_and(|kind| kind.ends_with("xml"))
    }

    /// Where the body begins, in bytes of the source, or the end of all offsets: of a page without a body, and of one that was sent as XML, where
    /// no text ends the head.
    pub(crate) fn end_of_head(&self) -> u32 {
        self.facts.body.filter(|_| !self.is_xml()).unwrap_or(u32::MAX)
    }

    /// The settings of the audit.
    pub fn limits(&self) -> &'a AuditSettings {
        self.limits
    }

    /// Another form of this page, judged by the same settings.
    #[cfg(feature = "render")]
    pub(crate) fn other_form<'b>(&'b self, page: &'b Page) -> Option<AuditedPage<'b>> {
        AuditedPage::of(page, self.limits, self.hosts)
    }

    /// Whether a URL is meant for readers elsewhere: its host is not one of this machine and its network, unless the audit names it.
    pub(crate) fn is_for_others(&self, url: &Url) -> bool {
        is_public(url) || self.hosts.allowed.contains(url) || (self.hosts.is_audited)(url)
    }

    /// Whether a URL is of the site that is audited.
    pub(crate) fn is_of_site(&self, url: &Url) -> bool {
        url.host_str() == self.url().host_str() || (self.hosts.is_audited)(url)
    }

    /// The headers of the answer.
    pub fn headers(&self) -> &'a HeaderMap {
        &self.page.response().headers
    }

    /// The values of a header, which may stand several times.
    pub fn header(&self, name: &str) -> impl Iterator<Item = &'a str> {
        self.headers().get_all(name).iter().filter_map(|value| value.to_str().ok())
    }

    /// Whether it belongs to a class, as far as the page alone tells.
    pub fn is(&self, class: PageClass) -> bool {
        match class {
            PageClass::Any | PageClass::Html => true,
            PageClass::Indexable => self.is_indexable(),
            PageClass::Content => self.is_indexable() && !self.is_later_page() && !self.is_soft_404(),
        }
    }

    fn is_indexable(&self) -> bool {
        let own = without_fragment(self.url());
        !self.robots.noindex
            && self.canonicals.iter().all(|canonical| canonical.url.as_ref().is_none_or(|url| *url == own))
    }

    fn is_later_page(&self) -> bool {
        self.link_elements().any(|link| link.has_rel("prev") && link.href.is_some())
    }

    /// Whether robots may not index it, by its own words.
    pub fn is_noindex(&self) -> bool {
        self.robots.noindex
    }

    /// Whether robots may not follow its links, by its own words.
    pub fn is_nofollow(&self) -> bool {
        self.robots.nofollow
    }

    /// Whether it tells robots both to index it and not to.
    pub fn has_robots_conflict(&self) -> bool {
        self.robots.index && self.robots.noindex
    }

    /// Whether search results may show no text of it, by its own words.
    pub fn is_nosnippet(&self) -> bool {
        self.robots.nosnippet
    }

    /// Whether its images may not be indexed, by its own words.
    pub fn is_noimageindex(&self) -> bool {
        self.robots.noimageindex
    }

    /// The canonical URLs that it states, those of the HTML first.
    pub fn canonicals(&self) -> &[Canonical] {
        &self.canonicals
    }

    /// Whether the canonical URLs contradict each other, so that search engines ignore all of them.
    pub fn has_several_canonicals(&self) -> bool {
        let differ = |in_header: bool| {
            let mut urls = self.canonicals.iter().filter(|canonical| canonical.offset.is_none() == in_header);
            let first = urls.next().map(|canonical| &canonical.url);
            urls.any(|canonical| Some(&canonical.url) != first)
        };
        differ(false) || differ(true)
    }

    /// The first title that is not empty.
    pub fn title(&self) -> Option<&'a str> {
        self.facts.titles.iter().map(|title| title.text.as_str()).find(|title| !title.is_empty())
    }

    /// The descriptions in the head, white space collapsed, with their offsets.
    pub fn descriptions(&self) -> impl Iterator<Item = (String, u32)> {
        let end = self.end_of_head();
        self.metas()
            .filter(move |meta| meta.offset < end && is_named(meta, "description"))
            .map(|meta| (collapsed(meta.content.unwrap_or_default()), meta.offset))
    }

    /// The `meta` elements outside of `noscript`.
    pub fn metas(&self) -> impl Iterator<Item = Meta<'a>> {
        self.page.metas().filter(|meta| !meta.in_noscript)
    }

    /// The `link` elements outside of `noscript`.
    pub fn link_elements(&self) -> impl Iterator<Item = LinkElement<'a>> {
        self.page.link_elements().filter(|link| !link.in_noscript)
    }

    /// The text of the page without menus, headers and footers.
    pub fn own_text(&self) -> &str {
        self.own_text.get_or_init(|| self.page.content().collect::<Vec<_>>().join("\n"))
    }

    /// Number of words of the own text. Of scripts without spaces two characters count as a word.
    pub fn words(&self) -> usize {
        *self.words.get_or_init(|| count_words(self.own_text()))
    }

    /// Whether title or heading and text say that a page is missing.
    pub fn is_soft_404(&self) -> bool {
        let heading = self.facts.headings.iter().find(|heading| heading.level == 1);
        let says = |text: Option<&str>| text.is_some_and(soft_404::is_headline);
        (says(self.title()) || says(heading.map(|heading| heading.text.as_str())))
            && soft_404::says_missing(self.own_text())
            && self.words() < soft_404::MAX_WORDS
    }

    /// The language that the page declares, in lower case.
    pub fn lang(&self) -> Option<String> {
        let (scan, text) = self.page.scanned();
        let of_xml = self.facts.xml_lang.as_deref().filter(|_| self.is_xml());
        let stated = scan.html_lang(text).filter(|lang| !lang.is_empty()).or(of_xml);
        stated.map(|lang| lang.trim().to_ascii_lowercase()).filter(|lang| !lang.is_empty())
    }

    /// The pages in other languages that elements and `Link` headers name, with their offsets: the language, the address as written, and the
    /// URL without its fragment.
    pub fn alternates(&self) -> Vec<(String, String, Option<String>, Option<u32>)> {
        let elements = self.link_elements().filter(|link| link.has_rel("alternate")).filter_map(|link| {
            let lang = link.hreflang?.trim().to_ascii_lowercase();
            Some((lang, link.href?.to_owned(), self.resolved(link.href?), Some(link.offset)))
        });
        let mut alternates: Vec<_> = elements.filter(|(lang, ..)| !lang.is_empty()).collect();
        for link in link_headers(self.headers()) {
            if let (true, Some(lang)) = (link.has_rel("alternate"), &link.hreflang) {
                let url = self.url().join(&link.target).ok().map(|url| without_fragment(&url));
                alternates.push((lang.to_ascii_lowercase(), link.target, url, None));
            }
        }
        alternates
    }

    /// An address of the page as an http or https URL without its fragment.
    pub fn resolved(&self, href: &str) -> Option<String> {
        self.page.join(href).map(|url| without_fragment(&url))
    }

    /// The place of a tag in the source; `offset` is that of its name.
    pub fn place(&self, offset: u32) -> Place {
        self.lines.shown(offset)
    }

    fn read_canonicals(&self) -> Vec<Canonical> {
        let elements = self.link_elements().filter(|link| link.has_rel("canonical")).filter_map(|link| {
            let href = link.href?.to_owned();
            let url = self.resolved(&href).filter(|url| names_a_page(&href, url));
            Some(Canonical { url, href, offset: Some(link.offset) })
        });
        let headers =
            link_headers(self.headers()).into_iter().filter(|link| link.has_rel("canonical")).map(|link| {
                let url = self.url().join(&link.target).ok().map(|url| without_fragment(&url));
                let url = url.filter(|url| names_a_page(&link.target, url));
                Canonical { href: link.target, url, offset: None }
            });
        elements.chain(headers).collect()
    }

    fn read_robots(&self) -> Robots {
        let mut robots = Robots::default();
        for list in
            self.robots_metas().chain(self.header("x-robots-tag").filter(|value| !is_for_one_robot(value)))
        {
            // `max-snippet: 0` has a blank that separates nothing.
            let list = list.split(':').map(str::trim).collect::<Vec<_>>().join(":");
            for word in list.split([',', ' ']).map(|word| word.trim().to_ascii_lowercase()) {
                robots.index |= word == "index";
                robots.noindex |= matches!(&*word, "noindex" | "none");
                robots.nofollow |= matches!(&*word, "nofollow" | "none");
                robots.nosnippet |= matches!(&*word, "nosnippet" | "max-snippet:0");
                robots.noimageindex |= word == "noimageindex";
            }
        }
        robots
    }

    /// The contents of the `meta` elements for all robots.
    fn robots_metas(&self) -> impl Iterator<Item = &'a str> {
        self.metas().filter(|meta| is_named(meta, "robots")).filter_map(|meta| meta.content)
    }

    /// Numbers of headings of the levels 1 to 6.
    fn headings(&self) -> [usize; 6] {
        let mut numbers = [0; 6];
        for heading in &self.facts.headings {
            if let Some(number) = numbers.get_mut(usize::from(heading.level).wrapping_sub(1)) {
                *number += 1;
            }
        }
        numbers
    }

    /// What is kept of the page for the rules that need the whole site.
    pub(crate) fn record(&self) -> HtmlRecord {
        let text = self.own_text();
        let rel = |name: &str| {
            let links = self.link_elements().filter(|link| link.has_rel(name));
            links.filter_map(|link| self.resolved(link.href?)).collect()
        };
        let anchors = self.facts.ids.iter().chain(&self.facts.names).map(|fact| fact.text.clone());
        let stated: Option<&Canonical> = self.canonicals.first().filter(|_| {
            let first = &self.canonicals[0].url;
            self.canonicals.iter().all(|canonical| canonical.url == *first)
        });
        HtmlRecord {
            title: self.title().map(str::to_owned),
            description: self.descriptions().map(|(text, _)| text).find(|text| !text.is_empty()),
            h1: self
                .facts
                .headings
                .iter()
                .find(|heading| heading.level == 1)
                .map(|heading| heading.text.clone()),
            headings: self.headings(),
            words: self.words(),
            text_key: text_key(text),
            lang: self.lang(),
            canonical: stated.and_then(|canonical| canonical.url.clone()),
            robots: self.robots_metas().collect::<Vec<_>>().join(", "),
            noindex: self.robots.noindex,
            nofollow: self.robots.nofollow,
            alternates: self
                .alternates()
                .into_iter()
                .filter_map(|(lang, _, url, _)| Some(Alternate { lang, url: url? }))
                .collect(),
            files: self.named_files(),
            has_icon: self.link_elements().any(|link| link.has_rel("icon") && link.href.is_some()),
            next: rel("next"),
            prev: rel("prev"),
            anchors: anchors.collect(),
            likeness: Likeness::of(text),
            has_scripts: self.facts.scripts > 0,
            is_soft_404: self.is_soft_404(),
            structured: structured::of(self),
        }
    }

    /// The images for previews and the feeds that the page names.
    fn named_files(&self) -> Vec<NamedFile> {
        let previews = self.properties("og:image").map(|(href, offset)| (NamedFor::Preview, href, offset));
        let is_feed = |link: &LinkElement<'_>| {
            let kind = link.media_type.unwrap_or_default().split(';').next().unwrap_or_default();
            link.has_rel("alternate") && feed::TYPES.contains(&&*kind.trim().to_ascii_lowercase())
        };
        let feeds = self.link_elements().filter(is_feed);
        let feeds = feeds.filter_map(|link| Some((NamedFor::Feed, link.href?, link.offset)));
        let mut files: Vec<NamedFile> = Vec::new();
        for (named_for, href, offset) in previews.chain(feeds) {
            let Some(url) = self.resolved(href.trim()).filter(|_| !href.trim().is_empty()) else { continue };
            if files.len() < MAX_FILES && !files.iter().any(|file| file.url == url) {
                let Place { line, column, .. } = self.lines.place(offset);
                files.push(NamedFile { named_for, url, line, column });
            }
        }
        files
    }

    /// The contents of the `meta` elements with a property of Open Graph, with their offsets. Many pages write `name` for `property`, which
    /// programs accept. `og:image` and `og:image:url` are the same.
    pub(crate) fn properties<'b>(&'b self, property: &'b str) -> impl Iterator<Item = (&'a str, u32)> + 'b {
        let is_same = move |name: &str| {
            let name = name.trim().to_ascii_lowercase();
            name == property
                || (property == "og:image" && matches!(&*name, "og:image:url" | "og:image:secure_url"))
        };
        let metas =
            self.metas().filter(move |meta| [meta.property, meta.name].into_iter().flatten().any(is_same));
        metas.filter_map(|meta| Some((meta.content?, meta.offset)))
    }

    /// What the page refers to, with places.
    pub(crate) fn edges(&self) -> Vec<Edge> {
        let own = without_fragment(self.url());
        let anchors: HashSet<&str> =
            self.facts.ids.iter().chain(&self.facts.names).map(|fact| fact.text.as_str()).collect();
        let edge = |href: &str, kind: EdgeKind, offset: u32| -> Option<Edge> {
            // The second scheme of `http://https://` is read as a host; it is told as a malformed link, and there is nothing to look at.
            let url = self.page.join(href).filter(|url| !matches!(url.host_str(), Some("http" | "https")))?;
            let fragment = url.fragment().filter(|fragment| !fragment.is_empty()).map(str::to_owned);
            let place = self.lines.place(offset);
            Some(Edge {
                to: without_fragment(&url),
                kind,
                fragment,
                nofollow: false,
                is_within: false,
                is_candidate: false,
                place,
            })
        };
        let links = self.page.anchors().zip(&self.facts.links).filter(|(link, _)| !link.in_noscript);
        let mut edges: Vec<Edge> = links
            .filter_map(|(link, fact)| {
                let mut edge = edge(link.href, EdgeKind::Link, link.offset)?;
                edge.nofollow = link.nofollow();
                edge.is_within = edge.to == own
                    && edge
                        .fragment
                        .as_deref()
                        .is_some_and(|fragment| leads_to(fragment, |id| anchors.contains(id)));
                edge.place.link = Some(fact.name.chars().take(MAX_TEXT).collect());
                edge.place.region = region_name(link.region).map(str::to_owned);
                Some(edge)
            })
            .collect();
        let resources = self.page.resources().filter(|resource| !resource.in_noscript);
        edges.extend(resources.filter_map(|found| {
            let is_candidate = found.kind == huntsman_html::ResourceKind::ImageCandidate;
            let edge = edge(found.url, resource_kind(found.kind)?, found.offset)?;
            Some(Edge { is_candidate, ..edge })
        }));
        let styles =
            self.link_elements().filter(|link| link.has_rel("stylesheet") && !link.has_rel("alternate"));
        edges.extend(styles.filter_map(|link| edge(link.href?, EdgeKind::Style, link.offset)));
        let preloads = self.preloads();
        edges.extend(preloads.filter_map(|(href, kind, offset)| edge(href, kind, offset)));
        edges
    }

    /// The scripts, styles and fonts that `link` elements load ahead: address, kind and offset. Images and media are found where they are shown.
    pub(crate) fn preloads(&self) -> impl Iterator<Item = (&'a str, EdgeKind, u32)> {
        self.link_elements().filter_map(|link| {
            let destination = link.destination.map(str::to_ascii_lowercase);
            let kind = match destination.as_deref() {
                _ if link.has_rel("modulepreload") => EdgeKind::Script,
                _ if !link.has_rel("preload") => return None,
                Some("script") => EdgeKind::Script,
                Some("style") => EdgeKind::Style,
                Some("font") => EdgeKind::Media,
                _ => return None,
            };
            Some((link.href?, kind, link.offset))
        })
    }
}

/// Whether a body was received as a whole.
pub(crate) fn is_whole(response: &Response) -> bool {
    const CUT: [&str; 5] = ["dataloss", "download_stopped", "partial", "truncated", "unread"];
    !CUT.iter().any(|flag| response.has_flag(flag))
}

/// Whether the address of a canonical URL, as written and resolved, can be that of a page: `https://https://example.org` cannot.
fn names_a_page(href: &str, url: &str) -> bool {
    let host = url.split_once("://").and_then(|(_, rest)| rest.split(['/', ':', '?']).next());
    !href.trim().is_empty() && url.starts_with("http") && !matches!(host, None | Some("http" | "https"))
}

/// Whether a fragment, as it is or decoded, is one of the places of a page.
pub(crate) fn leads_to(fragment: &str, has: impl Fn(&str) -> bool) -> bool {
    has(fragment) || has(&percent_decode_str(fragment).decode_utf8_lossy())
}

pub(crate) fn resource_kind(kind: huntsman_html::ResourceKind) -> Option<EdgeKind> {
    use huntsman_html::ResourceKind as K;
    Some(match kind {
        K::Image | K::ImageCandidate | K::Poster => EdgeKind::Image,
        K::Script => EdgeKind::Script,
        K::Iframe | K::Frame => EdgeKind::Frame,
        K::Media | K::Embed => EdgeKind::Media,
        K::Form => return None,
    })
}

fn region_name(region: Region) -> Option<&'static str> {
    Some(match region {
        Region::None => return None,
        Region::Nav => "nav",
        Region::Header => "header",
        Region::Footer => "footer",
        Region::Main => "main",
        Region::Aside => "aside",
    })
}

/// A URL without its fragment, which is how audits name pages.
pub(crate) fn without_fragment(url: &Url) -> String {
    match url.fragment() {
        None => url.as_str().to_owned(),
        Some(_) => url.as_str().split('#').next().unwrap_or_default().to_owned(),
    }
}

/// Whether a `meta` has this name.
pub(crate) fn is_named(meta: &Meta<'_>, name: &str) -> bool {
    meta.name.is_some_and(|found| found.trim().eq_ignore_ascii_case(name))
}

/// A text with white space collapsed.
pub(crate) fn collapsed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Number of characters, of which wide ones count twice, as they take the room of two.
pub(crate) fn width(text: &str) -> usize {
    text.chars().map(|c| 1 + usize::from(is_wide(c))).sum()
}

fn is_wide(c: char) -> bool {
    matches!(u32::from(c),
        0x1100..=0x115F | 0x2E80..=0xA4CF | 0xAC00..=0xD7A3 | 0xF900..=0xFAFF | 0xFE30..=0xFE6F | 0xFF00..=0xFF60
        | 0xFFE0..=0xFFE6 | 0x1F300..=0x1FAFF | 0x20000..=0x3FFFD)
}

/// Whether a script writes without spaces between words.
fn is_unspaced(c: char) -> bool {
    matches!(u32::from(c), 0x0E00..=0x0EFF | 0x1000..=0x109F | 0x1780..=0x17FF | 0x3040..=0x30FF | 0x3400..=0x9FFF | 0x20000..=0x3FFFD)
}

fn count_words(text: &str) -> usize {
    let unspaced = if text.is_ascii() { 0 } else { text.chars().filter(|c| is_unspaced(*c)).count() };
    if unspaced == 0 {
        return words::count(text);
    }
    let rest: String = text.chars().map(|c| if is_unspaced(c) { ' ' } else { c }).collect();
    words::count(&rest) + unspaced / 2
}

/// Hash of a text in which white space and case are folded.
fn text_key(text: &str) -> String {
    format!("{:032x}", xxh3_128(folded(text).as_bytes()))
}

/// A text in lower case with white space collapsed.
fn folded(text: &str) -> String {
    if text.is_ascii() {
        return folded_ascii(text);
    }
    let mut folded = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !folded.is_empty() {
            folded.push(' ');
        }
        let start = folded.len();
        if word.is_ascii() {
            folded.push_str(word);
            folded[start..].make_ascii_lowercase();
        } else {
            folded.push_str(&word.to_lowercase());
        }
    }
    folded
}

/// The same for ASCII, whose bytes change alone, several at a time. Long texts take a fifth of the time.
fn folded_ascii(text: &str) -> String {
    // White space of Unicode has the vertical tab, which `is_ascii_whitespace` leaves out.
    let fold = |byte: u8| if matches!(byte, b'\t'..=b'\r' | b' ') { b' ' } else { byte.to_ascii_lowercase() };
    let mut folded: Vec<u8> = text.trim().bytes().map(fold).collect();
    // Most texts have no two spaces in a row.
    if memmem::find(&folded, b"  ").is_some() {
        folded.dedup_by(|next, before| *before == b' ' && *next == b' ');
    }
    String::from_utf8(folded).expect("it is ASCII")
}

/// Whether a value of `X-Robots-Tag` is meant for one robot: `otherbot: noindex`.
fn is_for_one_robot(value: &str) -> bool {
    const WITH_VALUE: [&str; 4] =
        ["unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"];
    let first = value.split(',').next().unwrap_or_default();
    first.split_once(':').is_some_and(|(name, _)| !WITH_VALUE.contains(&&*name.trim().to_ascii_lowercase()))
}

/// One link of a `Link` header.
struct LinkHeader {
    target: String,
    rel: String,
    hreflang: Option<String>,
}

impl LinkHeader {
    fn has_rel(&self, word: &str) -> bool {
        self.rel.split_ascii_whitespace().any(|rel| rel.eq_ignore_ascii_case(word))
    }
}

/// The links of `Link` headers (RFC 8288).
fn link_headers(headers: &HeaderMap) -> Vec<LinkHeader> {
    let mut links = Vec::new();
    for value in headers.get_all(http::header::LINK).iter().filter_map(|value| value.to_str().ok()) {
        for part in value.split('<').skip(1) {
            let Some((target, rest)) = part.split_once('>') else { continue };
            let parameter = |name: &str| {
                rest.split([';', ',']).find_map(|pair| {
                    let (key, value) = pair.split_once('=')?;
                    key.trim().eq_ignore_ascii_case(name).then(|| value.trim().trim_matches('"').to_owned())
                })
            };
            links.push(LinkHeader {
                target: target.trim().to_owned(),
                rel: parameter("rel").unwrap_or_default(),
                hreflang: parameter("hreflang"),
            });
        }
    }
    links
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ascii_is_folded_as_any_text() {
        for (text, expected) in [
            ("", ""),
            (" \t\n", ""),
            ("One", "one"),
            ("  A  long\r\n\tWAY \x0B\x0C home.\n", "a long way home."),
            // The separators of ASCII are no white space.
            ("a\x1Cb \x1F C", "a\x1Cb \x1F c"),
        ] {
            assert_eq!(folded(text), expected, "{text:?}");
            assert_eq!(
                folded(&format!("{text}\u{A0} \u{C9}")),
                format!("{expected} \u{E9}").trim(),
                "{text:?}"
            );
        }
    }
}

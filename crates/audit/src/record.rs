//! Records: what an audit keeps of each answer while it crawls. The rules that need the whole site read them after the crawl.

use serde::{Deserialize, Serialize};

use crate::custom::Custom;
use crate::documents::Document;
use crate::finding::{Finding, Place};
use crate::likeness::Likeness;
use crate::measure::Measure;
use crate::robots_files::{RobotsFile, SitemapFile};
use crate::structured::DataItem;
use crate::tls::TlsRecord;

/// Why a URL was requested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Kind {
    /// A URL of the site that may be a page.
    #[default]
    Page,
    /// A script, style sheet, image, frame or medium of the site.
    Resource,
    /// A URL outside of the site, which is looked at once and whose links are not followed.
    External,
    /// A sitemap.
    Sitemap,
    /// The robots.txt of a host of the site, as a file to judge, or to tell why it could not be had.
    Robots,
    /// A path that no site has: its answer shows what pages that are missing look like.
    Probe,
    /// The front page of a host with https by http, which should lead to https.
    Plain,
    /// A feed that pages of the site name.
    Feed,
    /// The icon of a host at its usual place, which is asked for if a page names none.
    Icon,
    /// A page that was slow, for a second time.
    Again,
    /// The question whether a host accepts versions of TLS that are too old. A record tells the version that it accepts.
    OldTls,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Page => "page",
            Self::Resource => "resource",
            Self::External => "external",
            Self::Sitemap => "sitemap",
            Self::Robots => "robots",
            Self::Probe => "probe",
            Self::Plain => "plain",
            Self::Feed => "feed",
            Self::Icon => "icon",
            Self::Again => "again",
            Self::OldTls => "old_tls",
        }
    }

    const ALL: [Self; 11] = [
        Self::Page,
        Self::Resource,
        Self::External,
        Self::Sitemap,
        Self::Robots,
        Self::Probe,
        Self::Plain,
        Self::Feed,
        Self::Icon,
        Self::Again,
        Self::OldTls,
    ];

    pub(crate) fn of_name(name: &str) -> Self {
        Self::ALL.into_iter().find(|kind| kind.name() == name).unwrap_or_default()
    }

    pub(crate) fn of_number(number: u8) -> Self {
        Self::ALL.get(usize::from(number)).copied().unwrap_or_default()
    }
}

/// How a page refers to a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EdgeKind {
    /// A link that readers follow.
    Link,
    /// An image.
    Image,
    /// A script.
    Script,
    /// A style sheet.
    Style,
    /// A frame.
    Frame,
    /// Audio, video, an embedded object, or a font that is loaded ahead.
    Media,
    /// An entry of a sitemap.
    Sitemap,
}

impl EdgeKind {
    pub(crate) const ALL: [Self; 7] =
        [Self::Link, Self::Image, Self::Script, Self::Style, Self::Frame, Self::Media, Self::Sitemap];

    /// The number in files, below 8. It never changes.
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::Link => 0,
            Self::Image => 1,
            Self::Script => 2,
            Self::Style => 3,
            Self::Frame => 4,
            Self::Media => 5,
            Self::Sitemap => 6,
        }
    }

    pub(crate) fn of_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// The name in files.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Link => "link",
            Self::Image => "image",
            Self::Script => "script",
            Self::Style => "style",
            Self::Frame => "frame",
            Self::Media => "media",
            Self::Sitemap => "sitemap",
        }
    }

    /// Whether it is something that the page loads.
    pub fn is_resource(self) -> bool {
        matches!(self, Self::Image | Self::Script | Self::Style | Self::Frame | Self::Media)
    }
}

/// One reference of a page.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Edge {
    /// The URL, without its fragment.
    pub to: String,
    /// How the page refers to it.
    pub kind: EdgeKind,
    /// The fragment, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fragment: Option<String>,
    /// Whether its own `rel` says nofollow.
    #[serde(default)]
    pub nofollow: bool,
    /// Whether the fragment is a place of the page that has the reference, which is also its target.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_within: bool,
    /// Whether it is one of several files of which browsers load one, such as those of a `srcset`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_candidate: bool,
    /// Where it stands.
    #[serde(default)]
    pub place: Place,
}

impl Edge {
    /// A reference to a URL, without a place.
    pub fn new(to: &str, kind: EdgeKind) -> Self {
        let place = Place::default();
        Self {
            to: to.to_owned(),
            kind,
            fragment: None,
            nofollow: false,
            is_within: false,
            is_candidate: false,
            place,
        }
    }
}

/// What a file is for that a page names, and that is not shown in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum NamedFor {
    /// An image for previews of the page (`og:image`).
    Preview,
    /// A feed (`link rel=alternate` with the type of one).
    Feed,
}

/// A file that a page names for programs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct NamedFile {
    /// What it is for.
    pub named_for: NamedFor,
    /// The URL, resolved, without its fragment.
    pub url: String,
    /// Line of the element in the source, from 1.
    pub line: u32,
    /// Column of the element in characters, from 1.
    pub column: u32,
}

/// A page in another language, as a page names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Alternate {
    /// The language, in lower case: `en-gb`, `x-default`.
    pub lang: String,
    /// The URL, resolved, without its fragment.
    pub url: String,
}

/// What an HTML page says.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct HtmlRecord {
    /// The title.
    pub title: Option<String>,
    /// The description.
    pub description: Option<String>,
    /// The first heading of level 1.
    pub h1: Option<String>,
    /// Numbers of headings of the levels 1 to 6.
    pub headings: [usize; 6],
    /// Words of the page's own text, without menus.
    pub words: usize,
    /// Hash of that text, with white space and case folded.
    pub text_key: String,
    /// By what texts are compared that are not the same; `None` if there are too few words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub likeness: Option<Likeness>,
    /// The language that the page declares, in lower case.
    pub lang: Option<String>,
    /// The canonical URL; `None` if there is none, or several that differ.
    pub canonical: Option<String>,
    /// What its `meta` elements for robots say, as written; empty if there are none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub robots: String,
    /// Whether robots may not index it.
    pub noindex: bool,
    /// Whether robots may not follow its links.
    pub nofollow: bool,
    /// The pages in other languages.
    pub alternates: Vec<Alternate>,
    /// The files that it names for programs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<NamedFile>,
    /// Whether it names an icon.
    pub has_icon: bool,
    /// Targets of `rel=next`.
    pub next: Vec<String>,
    /// Targets of `rel=prev`.
    pub prev: Vec<String>,
    /// Ids and names that fragments may lead to.
    pub anchors: Vec<String>,
    /// Whether the page has scripts, which may make further anchors.
    pub has_scripts: bool,
    /// Whether it seems to say that a page is missing.
    pub is_soft_404: bool,
    /// The items that it describes for programs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub structured: Vec<DataItem>,
}

impl HtmlRecord {
    /// The URLs that it names, besides those that it refers to.
    pub(crate) fn named(&self) -> impl Iterator<Item = &str> {
        let alternates = self.alternates.iter().map(|alternate| &alternate.url);
        let others = self.canonical.iter().chain(&self.next).chain(&self.prev);
        let files = self.files.iter().map(|file| &file.url);
        others.chain(alternates).chain(files).map(String::as_str)
    }
}

/// What is kept of one answer.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Record {
    /// The URL, without its fragment.
    pub url: String,
    /// Why it was requested.
    pub kind: Kind,
    /// Whether the crawl began here.
    pub is_start: bool,
    /// Whether only the headers were asked for.
    pub is_head: bool,
    /// The status; `None` if there was no answer.
    pub status: Option<u16>,
    /// The kind of failure, such as `dns`; `None` if there was an answer.
    pub error: Option<String>,
    /// What the failure says, or why a redirect leads nowhere.
    pub detail: Option<String>,
    /// The kind of failure, such as `connect`, that kept the robots.txt of the host away, if the URL was not asked for because of that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub robots_error: Option<String>,
    /// The line of robots.txt that allows the URL, if one is about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub robots_line: Option<String>,
    /// The target of a redirect, without its fragment.
    pub redirect: Option<String>,
    /// Whether the server says that it answers by a challenge to browsers.
    pub is_challenge: bool,
    /// Whether the body ended before its length or its compression did.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_cut_short: bool,
    /// Media type without parameters.
    pub content_type: Option<String>,
    /// Bytes of the decoded body.
    pub bytes: u64,
    /// Bytes on the wire; for a HEAD the stated length.
    pub wire_bytes: u64,
    /// Milliseconds from sending the request to the first byte.
    pub ttfb_ms: f64,
    /// Milliseconds from sending the request to the last byte.
    pub total_ms: f64,
    /// The protocol of the answer, such as `HTTP/1.1` or `h2`; empty if there was none.
    pub protocol: String,
    /// Seconds for which the answer may be kept; `None` if the headers do not say so.
    pub max_age: Option<u64>,
    /// What the content is, if that contradicts the media type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contradiction: Option<String>,
    /// Name and missing flags of each cookie that was set.
    pub cookies: Vec<(String, String)>,
    /// Headers that tell a version: name and value.
    pub versions: Vec<(String, String)>,
    /// What an error page tells of the program that made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leak: Option<String>,
    /// `Last-Modified` as sent.
    pub last_modified: Option<String>,
    /// Headers that say how a page is kept, protected and found, as sent: name and value. Only pages have them.
    pub headers: Vec<(String, String)>,
    /// What its lines say, if it is a robots.txt that was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub robots: Option<RobotsFile>,
    /// Why programs cannot read it as a feed, if it is XML or JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feed_fault: Option<String>,
    /// What reading it told, if it is a sitemap.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sitemap: Option<SitemapFile>,
    /// The certificate of the host, at the first answer that shows it.
    pub tls: Option<TlsRecord>,
    /// What the page says, if it is HTML that was received whole with a status of 2xx.
    pub html: Option<HtmlRecord>,
    /// What it says, if it is a document that is no HTML.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub document: Option<Box<Document>>,
    /// What fields and searches of the user found in the page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom: Option<Box<Custom>>,
}

/// Whether an answer of this status sends readers to another URL.
pub(crate) fn is_redirect(status: u16) -> bool {
    matches!(status, 301 | 302 | 303 | 307 | 308)
}

impl Record {
    /// Whether it is a redirect without a URL that browsers go to; `detail` says why.
    pub(crate) fn leads_nowhere(&self) -> bool {
        let is_redirect = self.status.is_some_and(is_redirect);
        is_redirect && self.error.is_none() && self.redirect.is_none() && self.detail.is_some()
    }

    /// Each page with a page in another language that the answer names for it: a page for itself, and a sitemap for its entries.
    pub(crate) fn translations(&self) -> impl Iterator<Item = (&str, &Alternate)> {
        let of_page =
            self.html.iter().flat_map(|html| &html.alternates).map(move |found| (self.url.as_str(), found));
        let entries = self.sitemap.iter().flat_map(|file| &file.translations);
        of_page.chain(
            entries.flat_map(|entry| {
                entry.alternates.iter().map(move |alternate| (entry.url.as_str(), alternate))
            }),
        )
    }
}

/// All that a crawl finds in one answer; the item of [`AuditSpider`](crate::AuditSpider).
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Answered {
    /// What is kept of the answer itself.
    pub record: Record,
    /// What the page refers to.
    pub edges: Vec<Edge>,
    /// What rules found on the page alone.
    pub findings: Vec<Finding>,
    /// Numbers of the page that limits are compared with.
    pub measures: Vec<Measure>,
}

impl From<Record> for Answered {
    fn from(record: Record) -> Self {
        Self { record, ..Self::default() }
    }
}

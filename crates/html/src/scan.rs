//! The result of one pass over a page, as ranges of the document.

use std::fmt;

use crate::blocks::Path;
use crate::facts::{FactSink, PageFacts};
use crate::foreign::Foreign;
use crate::link::{Link, LinkTag, ResourceKind, ResourceLink, has_word};
use crate::meta::{LinkElement, Meta, MetaRefresh};
use crate::region::{Region, Regions};
use crate::sink::PageSink;
use crate::tags::name_of;
use crate::text::TextBuffer;
use crate::tokenizer::{MAX_DOCUMENT, Span, tokenize};
use crate::value::Value;

/// What a scan collects. The default is links, head and text, as a reader without script sees them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanOptions {
    /// Links with anchor text. Default: true.
    pub links: bool,
    /// The full text; about doubles the time of a scan. Default: true.
    pub text: bool,
    /// The blocks of the text with their tag paths, and the path of each link; implies text. Default: false.
    pub blocks: bool,
    /// Addresses of images, scripts, frames, media and forms. Default: false.
    pub resources: bool,
    /// Maximum number of links, and separately of resources, that are kept; further ones are only counted. Default:
    /// 50,000.
    pub max_links: usize,
    /// Whether `noscript` is ignored, as in a browser with script. Default: false: its links and metas are kept and
    /// marked. Its text is never kept.
    pub scripting: bool,
    /// What an audit judges besides: headings, images, fields, ids, names of links ([`Scan::facts`]). Default: false.
    pub audit: bool,
}

impl Default for ScanOptions {
    fn default() -> Self {
        Self {
            links: true,
            text: true,
            blocks: false,
            resources: false,
            max_links: 50_000,
            scripting: false,
            audit: false,
        }
    }
}

impl ScanOptions {
    /// Links and head only: the cheapest scan.
    pub fn links_only() -> Self {
        Self { text: false, ..Self::default() }
    }

    /// Everything that a scan can collect.
    pub fn everything() -> Self {
        Self { blocks: true, resources: true, audit: true, ..Self::default() }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct RawLink {
    pub(crate) href: Value,
    pub(crate) rel: Value,
    pub(crate) text: Span,
    pub(crate) offset: u32,
    pub(crate) tag: LinkTag,
    pub(crate) is_xlink: bool,
    pub(crate) in_noscript: bool,
    pub(crate) region: Region,
}

const _: () = assert!(size_of::<RawLink>() == 32, "the documentation of `Scan` says so");

#[derive(Clone, Copy, Debug)]
pub(crate) struct RawResource {
    pub(crate) url: Value,
    pub(crate) offset: u32,
    pub(crate) kind: ResourceKind,
    pub(crate) in_noscript: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct RawMeta {
    pub(crate) name: Value,
    pub(crate) http_equiv: Value,
    pub(crate) property: Value,
    pub(crate) charset: Value,
    pub(crate) content: Value,
    pub(crate) offset: u32,
    pub(crate) in_noscript: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct RawLinkElement {
    pub(crate) rel: Value,
    pub(crate) href: Value,
    pub(crate) hreflang: Value,
    pub(crate) media_type: Value,
    pub(crate) media: Value,
    pub(crate) destination: Value,
    pub(crate) offset: u32,
    pub(crate) in_noscript: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct RawBlock {
    pub(crate) text: Span,
    pub(crate) path: u64,
    pub(crate) index: u8,
}

/// A block of text: the text between two boundaries of block elements.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Block<'a> {
    /// The text; a line feed in it comes from `br`.
    pub text: &'a str,
    /// Its range in [`Scan::text`].
    pub span: Span,
    /// Hash of the tag path from the body: block elements only, no sibling index. A container (`div`, `section`,
    /// `nav`, `header`, `footer`, `main`, `aside`, `article`, `ul`, `table`, `form`) counts with its id if that has no
    /// digit, everything else with its first class, runs of digits as one 0. Equal on all pages of a template.
    pub path: u64,
    /// Name of the innermost block element; `body` outside of any.
    pub tag: &'static str,
}

/// The result of one pass over a page.
///
/// A scan stores ranges, not text: its accessors take the document that was scanned (with another one the results are
/// meaningless, but there is no panic). The buffers are meant to be reused for many pages:
///
/// ```
/// use huntsman_html::{Scan, ScanOptions};
///
/// let page = r#"<title>Moths</title><p>See <a href="/hawk?a=1&amp;b=2" rel=nofollow>hawk <b>moths</b></a>."#;
/// let options = ScanOptions::default();
/// let mut scan = Scan::new();
/// scan.run(page, &options);
/// let link = scan.links(page).next().unwrap();
/// assert_eq!((link.href, link.text, link.nofollow()), ("/hawk?a=1&b=2", "hawk moths", true));
/// assert_eq!(scan.title(page), Some("Moths"));
/// assert_eq!(scan.text(), "See hawk moths.");
/// ```
///
/// Time is linear in the document, whatever it contains. Memory: the text is at most about the size of the document,
/// links take 32 bytes each, and both buffers are kept for the next page (see [`Scan::shrink_to`]).
#[derive(Default)]
pub struct Scan {
    pub(crate) arena: String,
    pub(crate) text: TextBuffer,
    pub(crate) has_text: bool,
    pub(crate) links: Vec<RawLink>,
    /// One per link with blocks on, else empty.
    pub(crate) link_paths: Vec<u64>,
    pub(crate) resources: Vec<RawResource>,
    pub(crate) metas: Vec<RawMeta>,
    pub(crate) link_elements: Vec<RawLinkElement>,
    pub(crate) blocks: Vec<RawBlock>,
    pub(crate) base: Option<(Value, u32)>,
    pub(crate) title: Value,
    pub(crate) lang: Value,
    pub(crate) counts: Cut,
    pub(crate) is_truncated: bool,
    pub(crate) foreign: Foreign,
    pub(crate) regions: Regions,
    /// The length of the text at each change of region, with the new region.
    pub(crate) region_starts: Vec<(u32, Region)>,
    pub(crate) path: Path,
    facts: Option<Box<PageFacts>>,
}

/// How much of a page was left out because of limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cut {
    /// Links beyond [`ScanOptions::max_links`].
    pub links: usize,
    /// Resources beyond the same number.
    pub resources: usize,
    /// `meta` and `link` elements beyond 4,096 each.
    pub head: usize,
    /// Blocks beyond 200,000.
    pub blocks: usize,
}

impl Scan {
    /// An empty scan; allocates nothing until it runs.
    pub fn new() -> Self {
        Self::default()
    }

    /// Scans one document.
    pub fn of(doc: &str, options: &ScanOptions) -> Self {
        let mut scan = Self::new();
        scan.run(doc, options);
        scan
    }

    /// Scans a document; the previous results are discarded, and the buffers are reused.
    ///
    /// A document of 4 GiB or more is read up to that size only; see [`Scan::is_truncated`].
    pub fn run(&mut self, doc: &str, options: &ScanOptions) {
        self.clear();
        self.is_truncated = doc.len() > MAX_DOCUMENT;
        self.has_text = options.text || options.blocks;
        let mut sink = PageSink::new(doc, self, options);
        if options.audit {
            let mut sink = FactSink::new(doc, sink);
            tokenize(doc, &mut sink);
            let facts = sink.finish();
            self.facts = Some(Box::new(facts));
        } else {
            tokenize(doc, &mut sink);
            sink.finish();
        }
        self.is_truncated |= self.text.is_cut();
    }

    fn clear(&mut self) {
        self.arena.clear();
        self.text.clear();
        self.links.clear();
        self.link_paths.clear();
        self.resources.clear();
        self.metas.clear();
        self.link_elements.clear();
        self.blocks.clear();
        self.base = None;
        self.title = Value::NONE;
        self.lang = Value::NONE;
        self.counts = Cut::default();
        self.foreign.clear();
        self.regions.clear();
        self.region_starts.clear();
        self.path.clear();
        self.facts = None;
    }

    /// The links, in document order, repetitions included.
    pub fn links<'a>(&'a self, doc: &'a str) -> impl ExactSizeIterator<Item = Link<'a>> + Clone {
        self.links.iter().enumerate().map(move |(index, link)| Link {
            href: link.href.get(doc, &self.arena).unwrap_or_default(),
            text: link.text.of(self.text.as_str()),
            rel: link.rel.get(doc, &self.arena),
            tag: link.tag,
            attribute: if link.is_xlink { "xlink:href" } else { "href" },
            index: index as u32,
            offset: link.offset,
            in_noscript: link.in_noscript,
            region: link.region,
            path: self.link_paths.get(index).copied().unwrap_or_default(),
        })
    }

    /// What the page loads or submits to, in document order; empty without [`ScanOptions::resources`].
    pub fn resources<'a>(&'a self, doc: &'a str) -> impl ExactSizeIterator<Item = ResourceLink<'a>> + Clone {
        self.resources.iter().map(move |resource| ResourceLink {
            url: resource.url.get(doc, &self.arena).unwrap_or_default(),
            kind: resource.kind,
            offset: resource.offset,
            in_noscript: resource.in_noscript,
        })
    }

    /// The `href` of the first `base` that has one, stripped, not resolved. The `base` may come after the first link.
    pub fn base_href<'a>(&'a self, doc: &'a str) -> Option<&'a str> {
        self.base.and_then(|(href, _)| href.get(doc, &self.arena))
    }

    /// Offset in bytes of that `base`.
    pub fn base_offset(&self) -> Option<u32> {
        self.base.map(|(_, offset)| offset)
    }

    /// The text of the first `title`, white space collapsed; not that of an SVG.
    pub fn title<'a>(&'a self, doc: &'a str) -> Option<&'a str> {
        self.title.get(doc, &self.arena)
    }

    /// The `lang` of the `html` element, stripped.
    pub fn html_lang<'a>(&'a self, doc: &'a str) -> Option<&'a str> {
        self.lang.get(doc, &self.arena)
    }

    /// The `meta` elements that have at least one of the attributes of [`Meta`].
    pub fn metas<'a>(&'a self, doc: &'a str) -> impl ExactSizeIterator<Item = Meta<'a>> + Clone {
        self.metas.iter().map(move |meta| Meta {
            name: meta.name.get(doc, &self.arena),
            http_equiv: meta.http_equiv.get(doc, &self.arena),
            property: meta.property.get(doc, &self.arena),
            charset: meta.charset.get(doc, &self.arena),
            content: meta.content.get(doc, &self.arena),
            offset: meta.offset,
            in_noscript: meta.in_noscript,
        })
    }

    /// The `link` elements that have a `rel` or `href`.
    pub fn link_elements<'a>(
        &'a self,
        doc: &'a str,
    ) -> impl ExactSizeIterator<Item = LinkElement<'a>> + Clone {
        self.link_elements.iter().map(move |link| LinkElement {
            rel: link.rel.get(doc, &self.arena),
            href: link.href.get(doc, &self.arena),
            hreflang: link.hreflang.get(doc, &self.arena),
            media_type: link.media_type.get(doc, &self.arena),
            media: link.media.get(doc, &self.arena),
            destination: link.destination.get(doc, &self.arena),
            offset: link.offset,
            in_noscript: link.in_noscript,
        })
    }

    /// The address of the first `link rel=canonical`, not resolved.
    pub fn canonical<'a>(&'a self, doc: &'a str) -> Option<&'a str> {
        self.link_elements(doc).find(|link| link.has_rel("canonical")).and_then(|link| link.href)
    }

    /// The contents of `meta name=robots`, for example `noindex, nofollow`; those for one robot are in
    /// [`Scan::metas`].
    pub fn meta_robots<'a>(&'a self, doc: &'a str) -> impl Iterator<Item = &'a str> + Clone {
        self.metas(doc)
            .filter(|meta| meta.name.is_some_and(|name| has_word(name, "robots")))
            .filter_map(|meta| meta.content)
    }

    /// The first valid `meta http-equiv=refresh` that is not in `noscript` and begins within the first 4,096
    /// characters (the limit of Scrapy's w3lib).
    pub fn meta_refresh<'a>(&'a self, doc: &'a str) -> Option<MetaRefresh<'a>> {
        const LIMIT: usize = 4096;
        let is_near = |offset: u32| {
            let before = doc.get(..offset as usize).unwrap_or_default();
            before.len() < LIMIT || (before.len() < 4 * LIMIT && before.chars().count() < LIMIT)
        };
        self.metas(doc)
            .filter(|meta| meta.http_equiv.is_some_and(|name| has_word(name, "refresh")))
            .filter(|meta| !meta.in_noscript && is_near(meta.offset))
            .find_map(|meta| MetaRefresh::parse(meta.content?))
    }

    /// The text of the page: one line per block, white space collapsed, without title, script, style, template and
    /// noscript. Empty unless [`ScanOptions::text`] or [`ScanOptions::blocks`] is on.
    pub fn text(&self) -> &str {
        if self.has_text { self.text.as_str() } else { "" }
    }

    /// The blocks of the text, in order, without gaps but the line feeds between them; empty without
    /// [`ScanOptions::blocks`].
    pub fn blocks(&self) -> impl ExactSizeIterator<Item = Block<'_>> + Clone {
        self.blocks.iter().map(|block| Block {
            text: block.text.of(self.text.as_str()),
            span: block.text,
            path: block.path,
            tag: if block.index == u8::MAX { "body" } else { name_of(block.index) },
        })
    }

    /// The text in order, in pieces, each with the [`Region`] it is in. There are at most 65,536 pieces; the last one
    /// has the rest.
    pub fn regions(&self) -> impl Iterator<Item = (&str, Region)> + Clone {
        let text = self.text.as_str();
        let ends = self.region_starts.iter().skip(1).map(|start| start.0 as usize).chain([text.len()]);
        let first = self.region_starts.first().map_or(text.len(), |start| start.0 as usize);
        let landmarks = self.region_starts.iter().zip(ends);
        let pieces = landmarks.map(|(&(start, region), end)| (&text[start as usize..end], region));
        [(&text[..first], Region::None)]
            .into_iter()
            .chain(pieces)
            .filter(|(piece, _)| !piece.trim().is_empty())
    }

    /// The main content of the page, in pieces: the text of `main`; without one, the text outside menus, headers,
    /// footers and asides; and if that is empty, the whole text.
    ///
    /// A page without landmarks gives its whole text as one piece.
    pub fn content(&self) -> impl Iterator<Item = &str> + Clone {
        self.pieces().filter(|(_, is_content)| *is_content).map(|(text, _)| text)
    }

    /// The text in order, in pieces, and for each whether it belongs to the [`content`](Self::content).
    pub fn pieces(&self) -> impl Iterator<Item = (&str, bool)> + Clone {
        let has = |wanted: Region| self.regions().any(|(_, region)| region == wanted);
        let wanted = [Region::Main, Region::None].into_iter().find(|wanted| has(*wanted));
        self.regions().map(move |(text, region)| (text, wanted.is_none_or(|wanted| region == wanted)))
    }

    /// What an audit judges besides links, head and text; `None` without [`ScanOptions::audit`].
    pub fn facts(&self) -> Option<&PageFacts> {
        self.facts.as_deref()
    }

    /// What was left out because of limits.
    pub fn cut(&self) -> Cut {
        self.counts
    }

    /// How many links were beyond [`ScanOptions::max_links`].
    pub fn links_cut(&self) -> usize {
        self.counts.links
    }

    /// Whether the document was too long for 32-bit offsets, so that its end was not read.
    pub fn is_truncated(&self) -> bool {
        self.is_truncated
    }

    /// Capacity of the buffers in bytes.
    pub fn heap_bytes(&self) -> usize {
        self.arena.capacity()
            + self.text.capacity()
            + self.links.capacity() * size_of::<RawLink>()
            + self.link_paths.capacity() * size_of::<u64>()
            + self.resources.capacity() * size_of::<RawResource>()
            + self.metas.capacity() * size_of::<RawMeta>()
            + self.link_elements.capacity() * size_of::<RawLinkElement>()
            + self.blocks.capacity() * size_of::<RawBlock>()
            + self.region_starts.capacity() * size_of::<(u32, Region)>()
    }

    /// Discards the results, and also the buffers if they hold more than `bytes`, so that a worker does not keep the
    /// memory of a huge page.
    pub fn shrink_to(&mut self, bytes: usize) {
        if self.heap_bytes() > bytes {
            *self = Self::new();
        }
    }
}

impl fmt::Debug for Scan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scan")
            .field("links", &self.links.len())
            .field("resources", &self.resources.len())
            .field("metas", &self.metas.len())
            .field("link_elements", &self.link_elements.len())
            .field("blocks", &self.blocks.len())
            .field("text_bytes", &self.text.len())
            .field("cut", &self.counts)
            .field("is_truncated", &self.is_truncated)
            .finish_non_exhaustive()
    }
}

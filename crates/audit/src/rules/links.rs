//! Links: their number, their names, their targets.

use std::collections::BTreeSet;

use percent_encoding::percent_decode_str;
use url::Url;

use super::language::primary;
use super::weak_names::is_weak;
use crate::code::Code;
use crate::code::PageClass::Any;
use crate::code::Severity::Error;
use crate::finding::{Finding, Findings};
use crate::measure::{Measure, Measured};
use crate::page::AuditedPage;
use crate::record::{EdgeKind, Kind};
use crate::rule::Rule;
use crate::site::Site;
use crate::spider::is_public;

/// A page with fewer words of its own and with scripts may be made by the scripts.
const MIN_WORDS: usize = 20;

const fn code(name: &'static str) -> Code {
    Code::new("links", name)
}

const CODES: &[Code] = &[
    code("too-many-links")
        .headline("Pages with too many links")
        .text("A page links to more different URLs than [links_max].", "None of them stands out.", "Group them on several pages.")
        .source("Google Search Central: site structure").example("a menu of 300 links", "a menu of 20 links"),
    code("localhost-link")
        .headline("Links to this very machine")
        .text("A link or a loaded file is on this computer or in a private network, and that host is not the one that is audited.", "It is dead for readers.", "Name the public URL.")
        .source("RFC 6761, RFC 1918").example("<a href=\"http://localhost:3000/\">", "<a href=\"https://example.org/\">"),
    code("anchor-weak")
        .headline("Links that say nothing")
        .text("The name of a link to another page says nothing of it: \"click here\", \"read more\" and the like in several languages.", "Out of their context such links are alike.", "Name the target.")
        .source("WCAG 2.4.4").example("<a href=/moths>Read more</a>", "<a href=/moths>Hawk moths</a>"),
    code("fragment-broken")
        .headline("Links to places that do not exist").severity(Error).of_site().judges(Any)
        .text("The fragment of a link is neither an id nor the name of an a element of the target, as it is or decoded. Targets without text that have scripts are not judged.", "The link jumps nowhere.", "Correct the fragment, or add the id.")
        .source("HTML: navigating to a fragment").example("<a href=#prices> without id=prices", "<h2 id=prices>"),
    code("link-javascript")
        .headline("Links that are scripts")
        .text("The address of a link begins with `javascript:`.", "Robots and new tabs cannot follow it.", "Use a button, or a real URL.")
        .source("Google Search Central: crawlable links").example("<a href=\"javascript:open()\">", "<button onclick=\"open()\">"),
    code("link-http-on-https")
        .headline("Links from https to http")
        .text("A page that came by https links to an http URL of its site.", "It takes readers out of the secure connection.", "Use https.")
        .source("RFC 9110").example("<a href=\"http://example.org/a\">", "<a href=\"https://example.org/a\">"),
    code("link-empty")
        .headline("Links without a name")
        .text("A link has no text, no alternative text and no label, and is not hidden from readers.", "Screen readers cannot name it.", "Give it a text or an aria-label.")
        .source("WCAG 2.4.4").example("<a href=/><img src=a.png alt=\"\"></a>", "<a href=/><img src=a.png alt=Home></a>"),
];

pub(super) struct Links;

impl Rule for Links {
    fn codes(&self) -> &[Code] {
        CODES
    }

    fn page(&self, page: &AuditedPage<'_>, findings: &mut Findings) {
        let mut targets = BTreeSet::new();
        let own = crate::page::without_fragment(page.url());
        let lang = primary(&page.lang().unwrap_or_default());
        for (link, fact) in
            page.page().anchors().zip(&page.facts().links).filter(|(link, _)| !link.in_noscript)
        {
            let place = || page.place(link.offset);
            if link.href.trim().to_ascii_lowercase().starts_with("javascript:") {
                findings.add(Finding::of("link-javascript").value(link.href).at(place()));
                continue;
            }
            let Some(url) = page.page().join(link.href) else { continue };
            let address = crate::page::without_fragment(&url);
            let is_within = address == own;
            private(page, &url, link.offset, findings);
            if page.url().scheme() == "https"
                && url.scheme() == "http"
                && url.host_str() == page.url().host_str()
            {
                findings.add(Finding::of("link-http-on-https").target(&address).at(place()));
            }
            if !fact.is_hidden && fact.name.is_empty() && !fact.is_named_otherwise {
                findings.add(Finding::of("link-empty").target(&address).at(place()));
            }
            if !fact.is_hidden && !is_within && !fact.is_named_otherwise && is_weak(&fact.name, &lang) {
                findings
                    .add(Finding::of("anchor-weak").target(&address).value(fact.name.as_str()).at(place()));
            }
            targets.insert(address);
        }
        for resource in page.page().resources().filter(|resource| !resource.in_noscript) {
            let is_loaded = crate::page::resource_kind(resource.kind).is_some();
            if let Some(url) = page.page().join(resource.url).filter(|_| is_loaded) {
                private(page, &url, resource.offset, findings);
            }
        }
        findings.measure(Measure::new(Measured::Links, targets.len()));
    }

    fn site(&self, site: &Site, findings: &mut Findings) {
        let pages = site.records().filter(|record| record.kind == Kind::Page);
        let links = pages.flat_map(|source| source.edges.iter().map(move |edge| (source, edge)));
        let mut broken = std::collections::BTreeMap::new();
        for (source, edge) in links.filter(|(_, edge)| edge.kind == EdgeKind::Link) {
            let Some(fragment) = edge.fragment.as_deref().filter(|fragment| is_named(fragment)) else {
                continue;
            };
            let Some(target) = site.get(&edge.to).filter(|record| record.kind == Kind::Page) else {
                continue;
            };
            let Some(html) = &target.html else { continue };
            let decoded = percent_decode_str(fragment).decode_utf8_lossy();
            let is_there = html.anchors.iter().any(|anchor| anchor == fragment || *anchor == *decoded);
            let may_be_made = html.words < MIN_WORDS && html.has_scripts;
            if !is_there && !may_be_made {
                let finding = broken.entry((edge.to.as_str(), fragment)).or_insert_with(|| {
                    Finding::of("fragment-broken")
                        .url(&source.url)
                        .target(&format!("{}#{fragment}", edge.to))
                        .value(fragment)
                });
                *finding = site.told(std::mem::take(finding), std::iter::once((source, edge)));
            }
        }
        broken.into_values().for_each(|finding| findings.add(finding));
    }
}

/// Whether a fragment names a place of the page: the others are for the browser or for scripts.
fn is_named(fragment: &str) -> bool {
    let folded = fragment.to_ascii_lowercase();
    folded != "top" && !folded.contains(":~:") && !fragment.starts_with(['!', '/'])
}

fn private(page: &AuditedPage<'_>, url: &Url, offset: u32, findings: &mut Findings) {
    let is_same_host = url.host_str() == page.url().host_str();
    if !is_same_host && !is_public(url) {
        findings.add(Finding::of("localhost-link").target(url.as_str()).at(page.place(offset)));
    }
}

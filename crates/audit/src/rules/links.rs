//! Links: their number, their names, their targets.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use huntsman_html::LinkTag;
use url::Url;

use super::addresses;
use super::language::primary;
use super::weak_names::is_weak;
use crate::code::Code;
use crate::code::PageClass::Any;
use crate::code::Severity::{Error, Notice};
use crate::finding::{Finding, Findings, Place};
use crate::measure::{Measure, Measured};
use crate::page::{AuditedPage, leads_to};
use crate::record::Kind;
use crate::rule::Rule;
use crate::site::{Address, Site};

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
        .text("A page that came by https links to an http URL. Of another site it is a notice.", "It takes readers out of the secure connection.", "Use https. Of another site, look whether it answers by https.")
        .source("RFC 9110").example("<a href=\"http://example.org/a\">", "<a href=\"https://example.org/a\">"),
    code("link-empty")
        .headline("Links without a name")
        .text("A link has no text, no alternative text and no label, and is not hidden from readers.", "Screen readers cannot name it.", "Give it a text or an aria-label.")
        .source("WCAG 2.4.4").example("<a href=/><img src=a.png alt=\"\"></a>", "<a href=/><img src=a.png alt=Home></a>"),
    code("link-malformed")
        .headline("Links whose address is not a valid URL").severity(Error)
        .text("The address of a link cannot be read as a URL, has a misspelled scheme (`htttp:`), or two schemes (`http://https://`).", "The link leads nowhere.", "Correct the address.")
        .source("URL Standard").example("<a href=\"http://https://example.org/\">", "<a href=\"https://example.org/\">"),
    code("mailto-invalid")
        .headline("Links to e-mail addresses that are not valid")
        .text("A `mailto:` link has neither an address nor fields, or an address without a name, an @ or a domain.", "Mail cannot be sent.", "Correct the address.")
        .source("RFC 6068").example("<a href=\"mailto:info.example.org\">", "<a href=\"mailto:info@example.org\">"),
    code("same-text-other-target")
        .headline("Links with one name and several targets").severity(Notice)
        .text("Two or three links of a page have the same name and lead to different pages. What is repeated more often, such as a command in each row of a list, is not meant.", "In a list of links they cannot be told apart.", "Name the targets.")
        .source("WCAG 2.4.9").example("<a href=/a>Prices</a> <a href=/b>Prices</a>", "<a href=/a>Prices of boats</a> <a href=/b>Prices of sails</a>"),
    code("file-link")
        .headline("Links to files of somebody's computer")
        .text("A link or a loaded file has a `file:` URL, or begins with the letter of a drive.", "It works on one computer alone.", "Put the file on the site, and link to it there.")
        .source("RFC 8089").example("<a href=\"file:///C:/prices.pdf\">", "<a href=\"/prices.pdf\">"),
    code("link-not-crawlable")
        .headline("Links without an address").severity(Notice)
        .text("An a element has no href and no role other than link, and a script acts when it is clicked.", "Robots, keyboards and new tabs cannot follow it.", "Give it an href, or use a button.")
        .source("Google Search Central: crawlable links").example("<a onclick=\"open('/prices')\">Prices</a>", "<a href=/prices>Prices</a>"),
];

pub(super) struct Links;

impl Rule for Links {
    fn codes(&self) -> &[Code] {
        CODES
    }

    fn page(&self, page: &AuditedPage<'_>, findings: &mut Findings) {
        let mut targets = BTreeSet::new();
        let mut names = Names::default();
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
            let fault = addresses::fault(page.page(), link.href);
            if let Some(code) = fault {
                findings.add(Finding::of(code).target(link.href).at(place()));
            }
            let Some(url) = page.page().join(link.href) else { continue };
            let address = crate::page::without_fragment(&url);
            let is_within = address == own;
            private(page, &url, link.offset, findings);
            // A malformed address has no scheme to speak of.
            if fault.is_none() {
                insecure(page, &url, &place, findings);
            }
            // Those of image maps have a code of their own.
            let is_nameless = fact.name.is_empty() && !fact.is_named_otherwise && link.tag != LinkTag::Area;
            if !fact.is_hidden && is_nameless {
                findings.add(Finding::of("link-empty").target(&address).at(place()));
            }
            if !fact.is_hidden && !is_within && !fact.is_named_otherwise && is_weak(&fact.name, &lang) {
                findings
                    .add(Finding::of("anchor-weak").target(&address).value(fact.name.as_str()).at(place()));
            }
            if !fact.is_hidden && !fact.is_named_otherwise && !is_weak(&fact.name, &lang) {
                names.add(&fact.name, &url, link.offset);
            }
            targets.insert(address);
        }
        names.tell(page, findings);
        for offset in &page.facts().semantics.scripted_links {
            findings.add(Finding::of("link-not-crawlable").at(page.place(*offset)));
        }
        for resource in page.page().resources().filter(|resource| !resource.in_noscript) {
            let is_loaded = crate::page::resource_kind(resource.kind).is_some();
            if is_loaded && addresses::fault(page.page(), resource.url) == Some("file-link") {
                let finding = Finding::of("file-link").target(resource.url);
                findings.add(finding.at(page.place(resource.offset)));
            }
            if let Some(url) = page.page().join(resource.url).filter(|_| is_loaded) {
                private(page, &url, resource.offset, findings);
            }
        }
        findings.measure(Measure::new(Measured::Links, targets.len() as u64));
    }

    fn site(&self, site: &Site, findings: &mut Findings) {
        // Fragments stand in the order of their targets, so the places of each target are read once.
        let mut places: Option<(Address<'_>, Places)> = None;
        site.each_fragment(|target, fragment, links| {
            if places.as_ref().is_none_or(|(known, _)| *known != target) {
                places = Some((target, Places::of(target)));
            }
            let Some((_, places)) = &places else { return };
            if places.may_have(fragment) {
                return;
            }
            let Some(first) = links.first() else { return };
            let url = first.edge().map_or_else(|| target.url(), |edge| edge.to);
            let finding = Finding::of("fragment-broken").url(&first.source().url());
            let finding = finding.target(&format!("{url}#{fragment}")).value(fragment);
            findings.add(site.told(finding, links.iter().copied()));
        });
    }
}

/// The links of a page by what they are called.
#[derive(Default)]
struct Names(BTreeMap<String, BTreeMap<String, u32>>);

impl Names {
    /// More targets of one name are a command that is repeated.
    const MAX_TARGETS: usize = 3;

    fn add(&mut self, name: &str, url: &Url, offset: u32) {
        let letters = name.chars().filter(|c| c.is_alphabetic()).count();
        if letters < 2 {
            return;
        }
        let targets = self.0.entry(name.to_lowercase()).or_default();
        if targets.len() <= Self::MAX_TARGETS {
            targets.entry(addresses::folded(url)).or_insert(offset);
        }
    }

    /// One issue for the page: a table of contents repeats many names.
    fn tell(self, page: &AuditedPage<'_>, findings: &mut Findings) {
        let repeated = self.0.iter().filter(|(_, targets)| (2..=Self::MAX_TARGETS).contains(&targets.len()));
        let (names, targets): (Vec<_>, Vec<_>) =
            repeated.map(|(name, targets)| (name.clone(), targets)).unzip();
        if names.is_empty() {
            return;
        }
        let places = targets.into_iter().flat_map(BTreeMap::values).map(|offset| page.place(*offset));
        findings.add(places.fold(Finding::of("same-text-other-target").value(names), Finding::at));
    }
}

/// The places of a page to which fragments may lead.
enum Places {
    Known(HashSet<String>),
    /// The target is no page of the site, or scripts may make further places.
    Unknown,
}

impl Places {
    fn of(target: Address<'_>) -> Self {
        let answer = target.answer().filter(|answer| answer.kind == Kind::Page);
        match answer.as_ref().and_then(|answer| answer.html.as_ref()) {
            Some(html) if html.words >= MIN_WORDS || !html.has_scripts => {
                Self::Known(html.anchors.iter().cloned().collect())
            }
            _ => Self::Unknown,
        }
    }

    fn may_have(&self, fragment: &str) -> bool {
        match self {
            Self::Known(places) => leads_to(fragment, |id| places.contains(id)),
            Self::Unknown => true,
        }
    }
}

/// Tells a link that leads from https to http. What other sites offer is not in the hands of this one, so a link to them is only a notice; one to this
/// computer or a private network is told as that.
fn insecure(page: &AuditedPage<'_>, url: &Url, place: &dyn Fn() -> Place, findings: &mut Findings) {
    if page.url().scheme() != "https" || url.scheme() != "http" {
        return;
    }
    let finding = Finding::of("link-http-on-https").target(&crate::page::without_fragment(url));
    if page.is_of_site(url) {
        findings.add(finding.at(place()));
    } else if page.is_for_others(url) {
        findings.add(finding.severity(Notice).at(place()));
    }
}

fn private(page: &AuditedPage<'_>, url: &Url, offset: u32, findings: &mut Findings) {
    let is_same_host = url.host_str() == page.url().host_str();
    if !is_same_host && !page.is_for_others(url) {
        findings.add(Finding::of("localhost-link").target(url.as_str()).at(page.place(offset)));
    }
}

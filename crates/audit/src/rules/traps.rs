//! URLs without an end, and parameters of URLs that change nothing.

use std::collections::{BTreeMap, HashMap};

use huntsman_crawler::Timestamp;
use huntsman_detect::avoid::{Options, PageText, Predictor};
use huntsman_text::urlparts::guard::{template_into, years};
use url::{Position, Url};
use xxhash_rust::xxh3::{xxh3_64_with_seed, xxh3_128};

use crate::code::Code;
use crate::code::PageClass::{Any, Indexable};
use crate::code::Severity::Notice;
use crate::finding::{Finding, Findings, Place};
use crate::record::EdgeKind;
use crate::rule::Rule;
use crate::site::{Address, Answer, Site, front_of};

/// URLs of one template with a date far ahead from which on a calendar seems to have no end.
const MIN_DATES: usize = 10;
/// Years that a date may be ahead: events are announced in advance. The guards of a crawl allow as many.
const MAX_YEARS_AHEAD: i32 = 2;
/// Pages of a group whose texts are compared, and the least number of them.
const COMPARED: usize = 2_000;
const MIN_COMPARED: usize = 8;
/// Pages with parameters that are learnt from; each takes about a kilobyte while the site is judged.
const MAX_LEARNT: usize = 50_000;
/// Words of a page's own text below which its equality says nothing.
const MIN_WORDS: usize = 20;
/// Words that stand for the text of a page.
const WORDS: u64 = 40;

const fn code(family: &'static str, name: &'static str) -> Code {
    Code::new(family, name).of_site().severity(Notice)
}

const CODES: &[Code] = &[
    code("status", "trap-suspect")
        .headline("URLs that seem to have no end").judges(Any)
        .text("Links lead to more than [query_variants_max] query strings of one path or to more than [template_urls_max] URLs of one template, more than half of whose pages have the text of another one of them; or to 10 or more URLs of one template with a date more than two years ahead.", "Robots get lost there, and do not come to the pages that matter.", "Let the links end (no next month without events, no combination of filters without a page of its own), or disallow them in robots.txt.")
        .source("Google Search Central: faceted navigation, URL structure").example("/events/2061/07/ linked from /events/2061/06/", "no link to the next month after the last event"),
    code("url", "url-equivalent")
        .headline("Parameters that change nothing").judges(Indexable)
        .text("A parameter of the URLs of a host never mattered: at least 20 pages that differ from another one in it had the same text, and none had another. It is learnt as by `avoid_dup_content_enabled`, from at most 50,000 pages that may be indexed.", "Each page is crawled and indexed several times.", "Leave the parameter out of links, or name the URL without it as canonical.")
        .source("Google Search Central: duplicate URLs").example("/item?id=7&ref=list and /item?id=7&ref=home", "/item?id=7"),
];

pub(super) struct Traps;

impl Rule for Traps {
    fn codes(&self) -> &[Code] {
        CODES
    }

    fn site(&self, site: &Site, findings: &mut Findings) {
        let linked = || {
            let targets = site.targets(|kind| kind == EdgeKind::Link).filter(|target| target.is_own());
            targets.filter_map(|target| Some((Url::parse(&target.url()).ok()?, target)))
        };
        let limits = site.limits();
        let queries = linked().filter(|(url, _)| url.query().is_some());
        let queries = queries.map(|(url, target)| (xxh3_128(url[..Position::AfterPath].as_bytes()), target));
        site.each_group(queries, |group| {
            let path = |url: &Url| url[..Position::AfterPath].to_owned();
            repeating(group, limits.audit_query_variants_max, "query strings", path, findings);
        });
        let templates = linked().map(|(url, target)| (xxh3_128(template(&url).as_bytes()), target));
        site.each_group(templates, |group| {
            repeating(group, limits.audit_template_urls_max, "URLs", template, findings);
        });
        let ahead = linked().filter(|(url, _)| is_far_ahead(url));
        let ahead = ahead.map(|(url, target)| (xxh3_128(template(&url).as_bytes()), target));
        site.each_group(ahead, |group| {
            if group.len() >= MIN_DATES {
                let what = format!("{} URLs with a date far ahead", group.len());
                findings.add(told(group, what, MIN_DATES, template));
            }
        });
        equivalents(site, findings);
    }
}

/// Host and path of a URL without the parts by which the URLs of one kind of page differ.
fn template(url: &Url) -> String {
    let mut template = url[..Position::BeforePath].to_owned();
    template_into(url.path(), &mut template);
    template
}

fn is_far_ahead(url: &Url) -> bool {
    let this_year = Timestamp::wall().to_rfc3339().get(..4).and_then(|year| year.parse::<i32>().ok());
    let latest = this_year.unwrap_or(i32::MAX).saturating_add(MAX_YEARS_AHEAD);
    years(&url[Position::BeforePath..Position::AfterQuery]).any(|year| i32::from(year) > latest)
}

/// Tells a group of URLs if there are too many of them and their pages repeat each other.
fn repeating(
    group: &[Address<'_>],
    limit: usize,
    what: &str,
    name: fn(&Url) -> String,
    findings: &mut Findings,
) {
    if group.len() > limit && pages_repeat(group) {
        findings.add(told(group, format!("{} {what}", group.len()), limit, name));
    }
}

fn told(group: &[Address<'_>], what: String, limit: usize, name: fn(&Url) -> String) -> Finding {
    let first = group[0].url();
    let name = Url::parse(&first).map(|url| name(&url)).unwrap_or_default();
    let finding = Finding::of("trap-suspect").url(&first).group(name).value(what).limit(limit);
    group.iter().fold(finding, |finding, address| {
        finding.at_made(|| Place { page: Some(address.url()), ..Place::default() })
    })
}

/// Whether more than half of the pages of a group have the text of an earlier one; of a large group a sample is read.
fn pages_repeat(group: &[Address<'_>]) -> bool {
    let step = group.len().div_ceil(COMPARED);
    let texts = group
        .iter()
        .step_by(step)
        .filter_map(|address| address.answer()?.html.as_ref().map(|html| html.text_key.clone()));
    let (mut known, mut compared) = (HashMap::new(), 0);
    for text in texts {
        compared += 1;
        *known.entry(text).or_insert(0) += 1;
    }
    compared >= MIN_COMPARED && (compared - known.len()) * 2 > compared
}

/// Parameters that never mattered.
fn equivalents(site: &Site, findings: &mut Findings) {
    let learnt = || {
        let pages = site.pages(Indexable).filter(|page| page.url.contains('?'));
        pages.filter(|page| page.html.as_ref().is_some_and(|html| html.words >= MIN_WORDS)).take(MAX_LEARNT)
    };
    let mut predictor = Predictor::new(Options::default());
    for page in learnt() {
        learn(&mut predictor, &page);
    }
    let idle = predictor.idle_parameters();
    if idle.is_empty() {
        return;
    }
    let mut told: BTreeMap<(String, String), Finding> = BTreeMap::new();
    for idle in idle {
        let pages = idle.evidence.dup.round();
        let finding = Finding::of("url-equivalent").url(&idle.site).group(idle.parameter.as_str());
        let value = format!("{} never mattered in {pages} pages", idle.parameter);
        told.insert((idle.site, idle.parameter), finding.value(value));
    }
    for page in learnt() {
        let Ok(url) = Url::parse(&page.url) else { continue };
        let front = front_of(&page.url);
        for (name, _) in url.query_pairs() {
            if let Some(finding) = told.get_mut(&(front.clone(), name.into_owned())) {
                let place = || Place { page: Some(page.url.clone()), ..Place::default() };
                *finding = std::mem::take(finding).at_made(place);
            }
        }
    }
    told.into_values().for_each(|finding| findings.add(finding));
}

/// Learns a page. Of its text only the hash is known, so words that stand for it are compared: as many for each text, and others for each.
fn learn(predictor: &mut Predictor, page: &Answer<'_>) {
    let (Ok(url), Some(html)) = (Url::parse(&page.url), &page.html) else { return };
    let letters = |hash: u64| -> String {
        (0..12).map(|at| char::from(b'a' + (hash >> (5 * at) & 0xF) as u8)).collect()
    };
    let word = |number: u64| letters(xxh3_64_with_seed(html.text_key.as_bytes(), number));
    let text = (0..WORDS).map(word).collect::<Vec<_>>().join(" ");
    let front = front_of(&page.url);
    predictor.discover(&front, &url, None);
    predictor.learn(&front, &url, PageText::of([(1, text.as_str())]));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_dates_far_ahead_are_those_of_calendars_without_end() {
        let is = |path: &str| is_far_ahead(&Url::parse(&format!("https://a.example{path}")).unwrap());
        assert!(is("/events/2999/05/") && is("/events?month=2999-05"));
        assert!(!is("/events/1891/05/") && !is("/item/2999") && !is("/events/"));
        let next = Timestamp(Timestamp::wall().0 + 31_536_000_000_000).to_rfc3339();
        assert!(!is(&format!("/events/{}/", &next[..7])), "next year is announced");
    }
}

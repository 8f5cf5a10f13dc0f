//! Spelling of URLs.

use huntsman_text::urlparts::guard::repeated_sequence;
use url::Url;
use xxhash_rust::xxh3::xxh3_128;

use crate::code::Code;
use crate::code::PageClass::{Any, Indexable};
use crate::code::Severity::Notice;
use crate::finding::{Finding, Findings};
use crate::measure::{Measure, Measured};
use crate::page::AuditedPage;
use crate::record::EdgeKind;
use crate::rule::Rule;
use crate::site::{Address, Site, fold};

const SOURCE: &str = "Google Search Central: URL structure";

const fn code(name: &'static str) -> Code {
    Code::new("url", name).judges(Indexable).source(SOURCE)
}

const CODES: &[Code] = &[
    code("url-upper")
        .headline("URLs with capital letters")
        .text("The path has upper-case letters outside of percent codes.", "Some servers answer both spellings, and links break on others.", "Use lower case.")
        .example("/About", "/about"),
    code("url-underscore")
        .headline("URLs with underscores").severity(Notice)
        .text("The path has an underscore.", "Search engines do not see two words.", "Use hyphens.").example("/hawk_moths", "/hawk-moths"),
    code("url-space")
        .headline("URLs with spaces")
        .text("The path has a space (%20).", "Such links break when they are copied.", "Use hyphens.").example("/hawk%20moths", "/hawk-moths"),
    code("url-non-ascii")
        .headline("URLs with letters outside of ASCII")
        .text("The path has characters outside of ASCII, as percent codes.", "It is long and hard to read when it is copied.", "Use ASCII letters, if the readers do.")
        .example("/caf%C3%A9", "/cafe"),
    code("url-double-slash")
        .headline("URLs with double slashes")
        .text("The path has two slashes in a row.", "Relative links lead elsewhere.", "Use one.").example("/a//b", "/a/b"),
    code("url-repeating")
        .headline("URLs that repeat themselves")
        .text("A run of segments stands three times or more in a row.", "It is the sign of a trap for robots, made by relative links.", "Use links that begin with a slash.")
        .example("/a/b/a/b/a/b", "/a/b"),
    code("url-long")
        .headline("URLs that are too long")
        .text("The URL has more characters than [url_max].", "It is hard to share.", "Shorten it.").example("(200 characters)", "(60 characters)"),
    code("url-parameters")
        .headline("URLs with many parameters").severity(Notice)
        .text("The URL has more parameters than [url_parameters_max].", "Each order and choice of them is another URL for one page.", "Use fewer.")
        .example("/list?a=1&b=2&c=3&d=4", "/list?a=1"),
    code("url-session")
        .headline("URLs with session ids").of_site().judges(Any)
        .text("A link within the site has the id of a session in its URL.", "Each visit makes new URLs, and a shared link shares the session.", "Keep sessions in cookies.")
        .example("/a?PHPSESSID=0123456789abcdef", "/a"),
    code("url-technical-duplicate")
        .headline("URLs that are spelled in several ways").of_site().judges(Any)
        .text("Links within the site spell one URL in two ways: another order of parameters, or needless percent codes.", "One page is crawled twice.", "Use one spelling.")
        .example("/a?x=1&y=2 and /a?y=2&x=1", "/a?x=1&y=2"),
];

pub(super) struct UrlRules;

impl Rule for UrlRules {
    fn codes(&self) -> &[Code] {
        CODES
    }

    fn page(&self, page: &AuditedPage<'_>, findings: &mut Findings) {
        let url = page.url();
        let path = url.path();
        let plain = without_percent_codes(path);
        let has_code = |test: fn(u8) -> bool| percent_codes(path).any(test);
        let checks = [
            ("url-upper", plain.bytes().any(|byte| byte.is_ascii_uppercase())),
            ("url-underscore", path.contains('_')),
            ("url-space", has_code(|byte| byte == b' ')),
            ("url-non-ascii", has_code(|byte| byte >= 0x80)),
            ("url-double-slash", path.contains("//")),
            ("url-repeating", repeated_sequence(path).is_some_and(|found| found.times >= 3)),
        ];
        for (code, _) in checks.into_iter().filter(|(_, is_wrong)| *is_wrong) {
            findings.add(Finding::of(code).value(path));
        }
        let length = crate::page::without_fragment(url).chars().count();
        findings.measure(Measure::new(Measured::Url, length as u64));
        findings.measure(Measure::new(Measured::UrlParameters, url.query_pairs().count() as u64));
    }

    fn site(&self, site: &Site, findings: &mut Findings) {
        let linked = || site.targets(|kind| kind == EdgeKind::Link).filter(|target| target.is_own());
        for target in linked() {
            let url = target.url();
            if let Some(name) = session(&url) {
                findings.add(site.told(Finding::of("url-session").url(&url).value(name), target.links()));
            }
        }
        let forms = linked().map(|target| (xxh3_128(fold(&target.url()).as_bytes()), target));
        site.each_group(forms, |targets| several_spellings(site, targets, findings));
    }
}

fn several_spellings(site: &Site, targets: &[Address<'_>], findings: &mut Findings) {
    let canonical =
        |target: &Address<'_>| target.answer().and_then(|answer| answer.html.as_ref()?.canonical.clone());
    let first = canonical(&targets[0]);
    if first.is_some() && targets.iter().all(|target| canonical(target) == first) {
        return;
    }
    // Which canonical URL the pages name is not known of a crawl that ended before it came there.
    if !site.is_complete() && targets.iter().all(|target| target.answer().is_none()) {
        return;
    }
    let form = fold(&targets[0].url());
    for target in targets {
        let finding = Finding::of("url-technical-duplicate").url(&target.url()).group(form.as_str());
        findings.add(site.told(finding.value(targets.len()), target.links()));
    }
}

fn percent_codes(path: &str) -> impl Iterator<Item = u8> {
    path.split('%').skip(1).filter_map(|rest| u8::from_str_radix(rest.get(..2)?, 16).ok())
}

fn without_percent_codes(path: &str) -> String {
    let mut parts = path.split('%');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.get(2..).unwrap_or_default())
}

/// The parameter of a URL that holds the id of a session.
fn session(url: &str) -> Option<String> {
    const ALWAYS: [&str; 7] =
        ["phpsessid", "jsessionid", "asp.net_sessionid", "cfid", "cftoken", "oscsid", "zenid"];
    const IF_LONG: [&str; 4] = ["sid", "session", "sessionid", "session_id"];
    let url = Url::parse(url).ok()?;
    let in_path = url.path().split(';').skip(1).filter_map(|part| part.split_once('='));
    let in_path = in_path.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let pairs = url.query_pairs().map(|(name, value)| (name.into_owned(), value.into_owned())).chain(in_path);
    pairs.into_iter().find_map(|(name, value)| {
        let folded = name.to_ascii_lowercase();
        let is_id = value.len() >= 16
            && value.bytes().all(|byte| byte.is_ascii_alphanumeric())
            && value.bytes().any(|byte| byte.is_ascii_digit());
        let is_session = ALWAYS.contains(&folded.as_str())
            || folded.starts_with("aspsessionid")
            || (IF_LONG.contains(&folded.as_str()) && is_id);
        is_session.then_some(name)
    })
}

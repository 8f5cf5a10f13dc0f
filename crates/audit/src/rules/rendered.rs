//! What scripts change of a page, and what goes wrong in them: the page as it was sent, against the page as it is rendered.

use crate::code::Code;
use crate::code::Severity::Notice;
use crate::finding::Findings;
use crate::page::AuditedPage;
use crate::rule::Rule;

const fn code(name: &'static str) -> Code {
    Code::new("rendered", name)
}

const CODES: &[Code] = &[
    code("render-title-differs")
        .headline("Titles that scripts change")
        .text(
            "The title of the page as it was sent and that of the rendered page differ, or only one of them has one. White space does not count.",
            "Robots that run no scripts, and previews, show another title than browsers.",
            "Send the final title with the page.",
        )
        .source("Google Search Central: JavaScript SEO basics")
        .example(
            "<title>Shop</title>, and document.title = 'Hawk moths'",
            "<title>Hawk moths</title>",
        ),
    code("render-canonical-differs")
        .headline("Canonical URLs that scripts change")
        .text(
            "The canonical URL of the page as it was sent and that of the rendered page differ, or only one of them has one.",
            "Search engines see two answers to one question, and may take either.",
            "Send the canonical URL with the page, and leave it as it is.",
        )
        .source("Google Search Central: JavaScript SEO basics")
        .example(
            "<link rel=canonical href=/moths>, which a script sets to /moths?page=1",
            "<link rel=canonical href=/moths>, which no script touches",
        ),
    code("render-noindex-differs")
        .headline("Pages of which scripts change whether they may be indexed")
        .text(
            "Only one of the page as it was sent and the rendered page says noindex.",
            "Where the page says noindex, search engines do not render it, so that a script cannot take it back; and robots that run no scripts do not see one that a script adds.",
            "Decide it on the server.",
        )
        .source("Google Search Central: JavaScript SEO basics")
        .example(
            "<meta name=robots content=noindex>, which a script removes",
            "no such element, or one that stays",
        ),
    code("render-links-only")
        .headline("Links that only scripts make")
        .severity(Notice)
        .text(
            "The rendered page links to URLs of its host that the page as it was sent does not link to.",
            "Robots that run no scripts do not find them.",
            "Send the links with the page.",
        )
        .source("Google Search Central: crawlable links")
        .example(
            "<ul id=list></ul>, which a script fills",
            "<ul><li><a href=/moths>Moths</a></ul>",
        ),
    code("console-error")
        .headline("Pages whose scripts fail")
        .severity(Notice)
        .text(
            "A script of the rendered page throws an error that nothing catches, writes an error to the console, or asks for something that answers 4xx (other than 401, 403, 406, 407, 429, 451) or 5xx, or that cannot be reached. What stands in the page itself is `resource-broken`. Pages from which the crawl kept something back, as robots.txt or a limit wants it, are not told.",
            "A part of the page may be missing or dead.",
            "Correct the script, or what it asks for.",
        )
        .source("Lighthouse: errors in console")
        .example("menu.open() where menu is undefined", "menu?.open()"),
];

pub(super) struct RenderedRules;

impl Rule for RenderedRules {
    fn codes(&self) -> &[Code] {
        CODES
    }

    #[cfg(feature = "render")]
    fn page(&self, page: &AuditedPage<'_>, findings: &mut Findings) {
        compared::page(page, findings);
    }

    #[cfg(not(feature = "render"))]
    fn page(&self, _: &AuditedPage<'_>, _: &mut Findings) {}
}

#[cfg(feature = "render")]
mod compared {
    use std::collections::HashSet;

    use huntsman_middleware::Rendered;
    use huntsman_middleware::browser::{Kind, SubRequest};

    use crate::finding::{Finding, Findings};
    use crate::page::{AuditedPage, collapsed, without_fragment};
    use crate::record::EdgeKind;
    use crate::rendering::source_of;
    use crate::site::Fault;

    /// Lines of the console that an issue shows.
    const MAX_LINES: usize = 5;
    /// Maximum number of characters of such a line.
    const MAX_LINE: usize = 300;

    pub(super) fn page(page: &AuditedPage<'_>, findings: &mut Findings) {
        let Some((source, rendered)) = source_of(page.page()) else { return };
        console(page, rendered, findings);
        // What is missing of a page that was cut may still come.
        if rendered.is_incomplete {
            return;
        }
        let Some(source) = page.other_form(&source) else { return };
        title(&source, page, findings);
        canonical(&source, page, findings);
        if source.is_noindex() != page.is_noindex() {
            let only = if source.is_noindex() { "as sent" } else { "rendered" };
            findings.add(Finding::of("render-noindex-differs").value(format!("noindex only {only}")));
        }
        links(&source, page, findings);
    }

    fn title(source: &AuditedPage<'_>, page: &AuditedPage<'_>, findings: &mut Findings) {
        let of = |page: &AuditedPage<'_>| page.title().map(collapsed).unwrap_or_default();
        let (sent, shown) = (of(source), of(page));
        if sent != shown {
            findings.add(Finding::of("render-title-differs").value(shown).limit(sent));
        }
    }

    fn canonical(source: &AuditedPage<'_>, page: &AuditedPage<'_>, findings: &mut Findings) {
        let of = |page: &AuditedPage<'_>| {
            let mut urls: Vec<String> =
                page.canonicals().iter().filter_map(|canonical| canonical.url.clone()).collect();
            urls.sort_unstable();
            urls.dedup();
            urls
        };
        let (sent, shown) = (of(source), of(page));
        if sent != shown {
            let finding = Finding::of("render-canonical-differs").value(shown).limit(sent);
            let place = page.canonicals().iter().find_map(|canonical| canonical.offset);
            findings.add(match place {
                Some(offset) => finding.at(page.place(offset)),
                None => finding,
            });
        }
    }

    fn links(source: &AuditedPage<'_>, page: &AuditedPage<'_>, findings: &mut Findings) {
        // Robots that run no scripts read the links of `noscript`.
        let sent: HashSet<String> =
            source.page().anchors().filter_map(|link| source.resolved(link.href)).collect();
        let own = [without_fragment(page.url()), without_fragment(page.page().url())];
        let host = page.url().host_str();
        let mut made: HashSet<String> = HashSet::new();
        let mut finding = Finding::of("render-links-only");
        for edge in page.edges().into_iter().filter(|edge| edge.kind == EdgeKind::Link) {
            let is_own_host = url::Url::parse(&edge.to).is_ok_and(|url| url.host_str() == host);
            if is_own_host && !own.contains(&edge.to) && !sent.contains(&edge.to) && made.insert(edge.to) {
                finding = finding.at_made(|| edge.place);
            }
        }
        if !made.is_empty() {
            findings.add(finding.value(made.len()));
        }
    }

    fn console(page: &AuditedPage<'_>, rendered: &Rendered, findings: &mut Findings) {
        let asked = || rendered.requests.iter().filter(|request| request.kind.is_some());
        let is_kept_back = |request: &SubRequest| {
            let fault = request.answer.as_ref().err().map(|reason| Fault::of_error(reason));
            matches!(fault, Some(Fault::Unverified | Fault::Timeout))
        };
        if asked().any(is_kept_back) {
            return;
        }
        let errors = rendered.console.iter().filter(|line| matches!(line.level.as_str(), "error" | "assert"));
        let mut lines: Vec<String> =
            errors.map(|line| line.text.chars().take(MAX_LINE).collect()).take(MAX_LINES).collect();
        let mut broken = asked().filter_map(|request| Some((request, broken(request)?))).peekable();
        if broken.peek().is_some() {
            let in_page: HashSet<String> = page.edges().into_iter().map(|edge| edge.to).collect();
            for (request, why) in broken {
                let line: String = format!("{}: {why}", request.url).chars().take(MAX_LINE).collect();
                // A page that asks again and again is told once.
                if lines.len() < MAX_LINES && !in_page.contains(&request.url) && !lines.contains(&line) {
                    lines.push(line);
                }
            }
        }
        if !lines.is_empty() {
            findings.add(Finding::of("console-error").value(lines));
        }
    }

    /// Why a request of a script failed, unless it is a frame; `None` if it did not.
    fn broken(request: &SubRequest) -> Option<String> {
        if request.kind == Some(Kind::Document) {
            return None;
        }
        match &request.answer {
            Ok(status) => match Fault::of_status(*status)? {
                Fault::Client(status) | Fault::Server(status) => Some(status.to_string()),
                _ => None,
            },
            Err(reason) => Some(reason.replace('_', " ")),
        }
    }
}

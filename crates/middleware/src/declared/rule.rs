//! Rules of a declared spider: which links are followed, and what their pages are called.

use std::collections::HashSet;

use huntsman_crawler::meta::MetaKey;
use huntsman_crawler::{FoundBy, LinkExtractor, Page, PageKind, Request, Result};

/// The label of pages whose rule has no callback. They are only a way to others.
pub(super) const FOLLOWED: &str = "follow";

/// Set to false on a request whose page must not be searched for links.
const FOLLOW: MetaKey<bool> = MetaKey::new("declared_follow");

/// One rule of a file.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) extractor: LinkExtractor,
    pub(super) callback: Option<String>,
    pub(super) follow: bool,
    /// Whether the file says which links these are. The guards against traps let such links pass: a list may have more pages than
    /// links may be deep. A rule for all links is as blind as a crawl of a whole site.
    pub(super) is_chosen: bool,
}

impl Rule {
    /// The label of the requests of this rule.
    pub(super) fn label(&self) -> &str {
        self.callback.as_deref().unwrap_or(FOLLOWED)
    }
}

/// Requests for the links of a page; the first rule that takes a link gives it its label.
pub(super) fn links(rules: &[Rule], page: &Page) -> Result<Vec<Request>> {
    let mut requests = Vec::new();
    if rules.is_empty() || page.kind() != PageKind::Html || page.request().meta_value(FOLLOW) == Some(false) {
        return Ok(requests);
    }
    let mut taken = HashSet::new();
    for rule in rules {
        for mut link in rule.extractor.links(page)? {
            link.url.set_fragment(None);
            if !taken.insert(link.url.clone()) {
                continue;
            }
            let mut request = link.request().callback(rule.label());
            if rule.is_chosen {
                request.found_by = FoundBy::Spider;
            }
            requests.push(if rule.follow { request } else { request.with_meta(FOLLOW, false) });
        }
    }
    Ok(requests)
}

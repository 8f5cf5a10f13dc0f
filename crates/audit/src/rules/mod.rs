//! The built-in rules, a file for each family. Each file begins with its codes.

mod access;
mod addresses;
mod answers;
mod aria;
mod autocomplete;
mod canonical;
mod content;
mod csp;
mod data;
mod document;
mod hreflang;
mod images;
mod index;
mod language;
mod leaks;
mod links;
mod near_duplicates;
mod parameters;
mod performance;
mod rendered;
mod robots;
mod security;
mod semantics;
mod sitemaps;
mod status;
mod transport;
mod traps;
mod url;
mod url_contents;
mod weak_names;

use crate::rule::Rule;

pub(crate) use data::json_ld_text;
pub(crate) use leaks::of_error_page;
pub(crate) use security::OF_HEADERS;

/// All of them.
pub(crate) fn built_in() -> Vec<Box<dyn Rule>> {
    vec![
        Box::new(status::Status),
        Box::new(answers::Answers),
        Box::new(index::Index),
        Box::new(canonical::CanonicalRules),
        Box::new(robots::RobotsRules),
        Box::new(sitemaps::Sitemaps),
        Box::new(content::Content),
        Box::new(document::DocumentRules),
        Box::new(near_duplicates::NearDuplicates),
        Box::new(url::UrlRules),
        Box::new(url_contents::UrlContents),
        Box::new(traps::Traps),
        Box::new(parameters::Parameters),
        Box::new(hreflang::Hreflang),
        Box::new(links::Links),
        Box::new(images::Images),
        Box::new(security::Security),
        Box::new(transport::Transport),
        Box::new(performance::Performance),
        Box::new(access::Access),
        Box::new(data::Data),
        Box::new(rendered::RenderedRules),
    ]
}

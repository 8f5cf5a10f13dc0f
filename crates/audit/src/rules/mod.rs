//! The built-in rules, a file for each family. Each file begins with its codes.

mod access;
mod content;
mod hreflang;
mod images;
mod index;
mod language;
mod links;
mod performance;
mod security;
mod status;
mod transport;
mod url;
mod weak_names;

use crate::rule::Rule;

pub(crate) use security::OF_HEADERS;

/// All of them.
pub(crate) fn built_in() -> Vec<Box<dyn Rule>> {
    vec![
        Box::new(status::Status),
        Box::new(index::Index),
        Box::new(content::Content),
        Box::new(url::UrlRules),
        Box::new(hreflang::Hreflang),
        Box::new(links::Links),
        Box::new(images::Images),
        Box::new(security::Security),
        Box::new(transport::Transport),
        Box::new(performance::Performance),
        Box::new(access::Access),
    ]
}

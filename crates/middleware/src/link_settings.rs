//! The settings of a check of links (`[links]` in a settings file). They are declared here for the reason for which those of an audit are.

use huntsman_crawler::settings;
use serde::{Deserialize, Serialize};

settings! {
    /// What a check of links accepts and leaves out. In a settings file they stand in the table `[links]`, there without `links_`.
    pub struct LinkSettings {
        /// Status codes of good answers: codes, ranges (200-299) and classes (2xx).
        links_accept: Vec<String> = vec!["2xx".to_owned()];
        /// URLs that are not asked for: globs, or regular expressions after `re:`.
        links_exclude: Vec<String> = Vec::new();
        /// Other status codes for some URLs, or none of their links; the first rule that matches a URL decides.
        links_rules: Vec<LinkRule> = Vec::new();
        /// A fragment has to lead to an id or a heading.
        links_fragments: bool = true;
        /// E-mail addresses have to be well-formed.
        links_mail: bool = true;
        /// Seconds for which a good answer in the cache holds.
        links_max_age: f64 = 86_400.0;
    }
}

/// What is accepted of some URLs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkRule {
    /// Pattern of the URL: a glob, or a regular expression after `re:`.
    pub url: String,
    /// Status codes of good answers; without them those of the setting `links_accept`.
    #[serde(default)]
    pub accept: Vec<String>,
    /// Whether these URLs are not asked for.
    #[serde(default)]
    pub skip: bool,
}

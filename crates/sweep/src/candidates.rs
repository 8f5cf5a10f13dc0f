//! The sources of candidates for an article.

use std::collections::HashSet;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use huntsman_detect::copyvio::{
    Dates, QueryLimits, Text, cut_sentences, mirror_hints, pick_queries, sentences,
};

use serde::{Deserialize, Serialize};
use url::Url;

use super::reading::Reading;

/// The article of a check, with its metadata.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Subject {
    /// Its URL, if it is on the web: it is never a source of itself.
    pub url: Option<String>,
    /// Its text.
    pub text: Text,
    /// Pages of other sites that it links to.
    pub links: Vec<String>,
    /// Dates at which it existed.
    pub dates: Dates,
    /// URL parts by which mirrors of its wiki are recognised: sources with links that contain one are excluded.
    #[serde(default)]
    pub mirror_hints: Arc<[String]>,
}

impl Subject {
    /// An article with only a text.
    pub fn new(text: Text) -> Self {
        Self { text, ..Self::default() }
    }

    /// A page that was read, with its links to other sites. A page of a wiki is recognised by its URL:
    /// `.../wiki/Title`, or `index.php`.
    pub fn of_page(url: impl Into<String>, reading: Reading, links: Vec<String>) -> Self {
        let (Reading { text, dates, .. }, url) = (reading, url.into());
        let mirror_hints = Url::parse(&url).map_or_else(|_| Arc::default(), |url| wiki_hints(&url).into());
        Self { url: Some(url), text, links, dates, mirror_hints }
    }

    /// Phrases to search for, at most `most`, chosen as in the reference: whole sentences of up to 128 characters,
    /// spread over the text.
    pub fn phrases(&self, most: usize) -> Vec<String> {
        let sentences = sentences(self.text.exact());
        pick_queries(cut_sentences(sentences, QueryLimits::default()), most)
    }
}

/// URL parts that mirrors of a wiki have in their links, derived from the URL of one of its pages; empty if it is not a
/// MediaWiki, whose scripts are next to `wiki/`, in `w/` or in the same folder, unless the URL names one.
fn wiki_hints(url: &Url) -> Vec<String> {
    let Some(host) = url.host_str() else { return Vec::new() };
    let host = url.port().map_or(host.to_owned(), |port| format!("{host}:{port}"));
    let path = url.path();
    let scripts = match (path.split_once("/wiki/"), path.strip_suffix("/index.php")) {
        (_, Some(folder)) => vec![folder.to_owned()],
        (Some((folder, title)), None) if !title.is_empty() => vec![format!("{folder}/w"), folder.to_owned()],
        _ => return Vec::new(),
    };
    let mut hints: Vec<String> =
        scripts.iter().flat_map(|script| mirror_hints(&host, script, path)).collect();
    let mut seen = HashSet::new();
    hints.retain(|hint| seen.insert(hint.clone()));
    hints
}

/// A page that may be a source of an article.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its address.
    pub url: String,
    /// Its text, if the candidate source has it; otherwise it is fetched.
    pub text: Option<Text>,
    /// Dates at which that text existed, if the candidate source knows them.
    pub dates: Dates,
}

impl Candidate {
    /// A candidate with only a URL.
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), text: None, dates: Dates::default() }
    }
}

/// Why a query for candidates failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum CandidateError {
    /// The search engine needs a key, and there is none.
    NoKey {
        /// The engine.
        engine: &'static str,
        /// The environment variable that should have it.
        variable: &'static str,
    },
    /// The engine refuses further queries because its quota is used up.
    Quota(String),
    /// The engine or the index could not be queried, or its response was not as documented.
    Failed(String),
}

impl fmt::Display for CandidateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CandidateError::NoKey { engine, variable } => {
                write!(f, "{engine} is asked with a key: set the environment variable {variable}")
            }
            CandidateError::Quota(why) | CandidateError::Failed(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for CandidateError {}

/// The future of a query: candidates, the most likely first.
pub type FindFuture<'a> = Pin<Box<dyn Future<Output = Result<Vec<Candidate>, CandidateError>> + Send + 'a>>;

/// Finds pages that an article may be taken from.
///
/// A check sends its queries one after the other and reads the pages that were found meanwhile; when it ends, the query in
/// progress is dropped and no more are sent.
///
/// ```
/// use huntsman_sweep::{Candidate, CandidateSource, FindFuture, Subject};
///
/// /// The same paths on a site that is known to be copied from.
/// #[derive(Debug)]
/// struct Library;
///
/// impl CandidateSource for Library {
///     fn name(&self) -> &str {
///         "library"
///     }
///
///     fn queries(&self, _: &Subject) -> Vec<String> {
///         vec!["mills".to_owned(), "rivers".to_owned()]
///     }
///
///     fn find<'a>(&'a self, _: &'a Subject, query: &'a str) -> FindFuture<'a> {
///         let candidates = vec![Candidate::new(format!("https://library.example/{query}"))];
///         Box::pin(async { Ok(candidates) })
///     }
/// }
/// ```
pub trait CandidateSource: fmt::Debug + Send + Sync + 'static {
    /// The name of the candidate source in results and messages.
    fn name(&self) -> &str;

    /// The candidate source's part of the key of cached results: sources that give other results need other keys.
    /// Default: the name.
    fn key(&self) -> String {
        self.name().to_owned()
    }

    /// The queries for an article, in order. The empty string is not counted as a query; sources that need none (links,
    /// given URLs) return it.
    fn queries(&self, subject: &Subject) -> Vec<String>;

    /// The candidates for one of its queries. The future is dropped when the time of the check is over.
    fn find<'a>(&'a self, subject: &'a Subject, query: &'a str) -> FindFuture<'a>;
}

/// The links of the article to other sites.
#[derive(Clone, Copy, Debug, Default)]
pub struct Links;

impl CandidateSource for Links {
    fn name(&self) -> &str {
        "links"
    }

    fn queries(&self, subject: &Subject) -> Vec<String> {
        if subject.links.is_empty() { Vec::new() } else { vec![String::new()] }
    }

    fn find<'a>(&'a self, subject: &'a Subject, _: &'a str) -> FindFuture<'a> {
        Box::pin(std::future::ready(Ok(subject.links.iter().map(Candidate::new).collect())))
    }
}

/// Given URLs, the same for every article.
#[derive(Clone, Debug, Default)]
pub struct GivenUrls(Vec<String>);

impl GivenUrls {
    /// Creates a list of these URLs without repetitions.
    pub fn new(urls: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let mut seen = HashSet::new();
        Self(urls.into_iter().map(Into::into).filter(|url: &String| seen.insert(url.clone())).collect())
    }
}

impl CandidateSource for GivenUrls {
    fn name(&self) -> &str {
        "given"
    }

    fn key(&self) -> String {
        format!("given {}", self.0.join(" "))
    }

    fn queries(&self, _: &Subject) -> Vec<String> {
        if self.0.is_empty() { Vec::new() } else { vec![String::new()] }
    }

    fn find<'a>(&'a self, _: &'a Subject, _: &'a str) -> FindFuture<'a> {
        Box::pin(std::future::ready(Ok(self.0.iter().map(Candidate::new).collect())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_a_wiki_is_known_by_its_address_and_others_have_no_mirrors() {
        let hints = |url: &str| wiki_hints(&Url::parse(url).unwrap());
        let pretty = hints("https://en.wiki.example/wiki/Old_mill");
        for hint in
            ["en.wiki.example/wiki/Old_mill", "en.m.wiki.example/wiki/Old_mill", "en.wiki.example/w/api.php"]
        {
            assert!(pretty.contains(&hint.to_owned()), "{hint}: {pretty:?}");
        }
        assert!(hints("http://127.0.0.1:8000/wiki/A").contains(&"127.0.0.1:8000/wiki/A".to_owned()));
        let plain = hints("https://a.example/docs/index.php?title=A");
        assert!(plain.contains(&"a.example/docs/load.php".to_owned()), "{plain:?}");
        for url in [
            "https://a.example/",
            "https://a.example/wiki/",
            "https://a.example/wikis/a",
            "https://a.example/index.html",
        ] {
            assert_eq!(hints(url), [] as [&str; 0], "{url}");
        }
    }
}

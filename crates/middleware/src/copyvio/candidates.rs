//! Where the sources of an article are looked for.

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

/// What is checked: an article, and what is known of it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Subject {
    /// Where it stands, if on the web: it is never a source of itself.
    pub url: Option<String>,
    /// What it says.
    pub text: Text,
    /// Pages of other sites that it links to.
    pub links: Vec<String>,
    /// When it was there.
    pub dates: Dates,
    /// What mirrors of its wiki have in their links: sources that have one are excluded.
    #[serde(default)]
    pub mirror_hints: Arc<[String]>,
}

impl Subject {
    /// A text of which nothing else is known.
    pub fn new(text: Text) -> Self {
        Self { text, ..Self::default() }
    }

    /// A page that was read, with its links to others. A page of a wiki is known by its address: `.../wiki/Title`, or `index.php`.
    pub fn of_page(url: impl Into<String>, reading: Reading, links: Vec<String>) -> Self {
        let (Reading { text, dates, .. }, url) = (reading, url.into());
        let mirror_hints = Url::parse(&url).map_or_else(|_| Arc::default(), |url| wiki_hints(&url).into());
        Self { url: Some(url), text, links, dates, mirror_hints }
    }

    /// Phrases to search for, at most `most`, as the reference picks them: whole sentences of up to 128 characters, from all over the
    /// text.
    pub fn phrases(&self, most: usize) -> Vec<String> {
        let sentences = sentences(self.text.exact());
        pick_queries(cut_sentences(sentences, QueryLimits::default()), most)
    }
}

/// What mirrors of a wiki have in their links, by the address of one of its pages; nothing if it is none of MediaWiki, whose scripts lie
/// beside `wiki/`, in `w/` or in the same folder, unless the address names one.
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

/// A page that an article may be taken from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its address.
    pub url: String,
    /// What it says, if whoever found it knows; it is fetched otherwise.
    pub text: Option<Text>,
    /// When that text was there, as far as whoever found it knows.
    pub dates: Dates,
}

impl Candidate {
    /// A page of which only the address is known.
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), text: None, dates: Dates::default() }
    }
}

/// Why candidates could not be looked for.
#[derive(Debug)]
#[non_exhaustive]
pub enum CandidateError {
    /// A search engine is asked with a key, and there is none.
    NoKey {
        /// The engine.
        engine: &'static str,
        /// The environment variable that is looked at.
        variable: &'static str,
    },
    /// The engine refuses to answer as often as it was asked.
    Quota(String),
    /// The engine or the index could not be asked, or did not answer as documented.
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

/// What is being found: candidates, the likeliest first.
pub type Finding<'a> = Pin<Box<dyn Future<Output = Result<Vec<Candidate>, CandidateError>> + Send + 'a>>;

/// Finds pages that an article may be taken from.
///
/// A check asks its sources of candidates one after the other, question by question, while what was found is read; when it is over
/// it asks no more.
///
/// ```
/// use huntsman_middleware::copyvio::{Candidate, CandidateSource, Finding, Subject};
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
///     fn questions(&self, _: &Subject) -> Vec<String> {
///         vec!["mills".to_owned(), "rivers".to_owned()]
///     }
///
///     fn find<'a>(&'a self, _: &'a Subject, question: &'a str) -> Finding<'a> {
///         let candidates = vec![Candidate::new(format!("https://library.example/{question}"))];
///         Box::pin(async { Ok(candidates) })
///     }
/// }
/// ```
pub trait CandidateSource: fmt::Debug + Send + Sync + 'static {
    /// Its name in results and messages.
    fn name(&self) -> &str;

    /// What results of checks are kept under: sources with other answers have other keys. The name unless said otherwise.
    fn key(&self) -> String {
        self.name().to_owned()
    }

    /// What it asks for an article, in order. The empty question is no query: what needs none (links, given addresses) asks that.
    fn questions(&self, subject: &Subject) -> Vec<String>;

    /// The answer to one of its questions. Dropped when the time of the check is over.
    fn find<'a>(&'a self, subject: &'a Subject, question: &'a str) -> Finding<'a>;
}

/// The links of the article to other sites.
#[derive(Clone, Copy, Debug, Default)]
pub struct Links;

impl CandidateSource for Links {
    fn name(&self) -> &str {
        "links"
    }

    fn questions(&self, subject: &Subject) -> Vec<String> {
        if subject.links.is_empty() { Vec::new() } else { vec![String::new()] }
    }

    fn find<'a>(&'a self, subject: &'a Subject, _: &'a str) -> Finding<'a> {
        Box::pin(std::future::ready(Ok(subject.links.iter().map(Candidate::new).collect())))
    }
}

/// Addresses that somebody named, the same for every article.
#[derive(Clone, Debug, Default)]
pub struct Given(Vec<String>);

impl Given {
    /// These addresses, each once.
    pub fn new(urls: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let mut seen = HashSet::new();
        Self(urls.into_iter().map(Into::into).filter(|url: &String| seen.insert(url.clone())).collect())
    }
}

impl CandidateSource for Given {
    fn name(&self) -> &str {
        "given"
    }

    fn key(&self) -> String {
        format!("given {}", self.0.join(" "))
    }

    fn questions(&self, _: &Subject) -> Vec<String> {
        if self.0.is_empty() { Vec::new() } else { vec![String::new()] }
    }

    fn find<'a>(&'a self, _: &'a Subject, _: &'a str) -> Finding<'a> {
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

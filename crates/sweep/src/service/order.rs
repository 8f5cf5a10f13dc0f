//! Orders: the work that a caller asks a checker for.

use huntsman_detect::copyvio::Degree;
use url::Url;

use super::wiki::Wiki;

/// An article, by one of the ways to name it.
#[derive(Clone, Debug, PartialEq)]
pub enum ArticleOrder {
    /// The text itself.
    Text(String),
    /// The URL of a page, which is fetched.
    Page(Url),
    /// A page of a wiki; at least one of `title` and `oldid` is given, and `oldid` takes precedence.
    Wiki {
        /// The wiki.
        wiki: Wiki,
        /// The normalised title of the page; see [`Wiki::title`].
        title: Option<String>,
        /// The id of a revision.
        oldid: Option<u64>,
        /// Whether a redirect to another page of the wiki is followed, once.
        follows: bool,
    },
}

/// A source, by one of the ways to name it.
#[derive(Clone, Debug, PartialEq)]
pub enum SourceOrder {
    /// The text itself.
    Text(String),
    /// The URL of a page, which is fetched.
    Page(String),
}

/// An order to compare an article with one source.
#[derive(Clone, Debug, PartialEq)]
pub struct CompareOrder {
    /// The article.
    pub article: ArticleOrder,
    /// The source.
    pub source: SourceOrder,
    /// Words per window of the confidence.
    pub degree: Degree,
}

/// An order to find the sources of an article.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchOrder {
    /// The article.
    pub article: ArticleOrder,
    /// Whether search engines and indexes are queried.
    pub use_engine: bool,
    /// Whether pages are checked that the article links to.
    pub use_links: bool,
    /// URLs of pages to check in addition to those that are found.
    pub sources: Vec<String>,
    /// Whether cached results of earlier checks are ignored.
    pub nocache: bool,
    /// Whether all sources are read, even after a violation was found.
    pub noskip: bool,
}

impl SearchOrder {
    /// An order that uses all candidate sources and cached results, and stops at a violation.
    pub fn of(article: ArticleOrder) -> Self {
        Self {
            article,
            use_engine: true,
            use_links: true,
            sources: Vec::new(),
            nocache: false,
            noskip: false,
        }
    }
}

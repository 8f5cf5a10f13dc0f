//! Answers of servers, and what they mean for a link.

use huntsman_crawler::Page;
use serde::{Deserialize, Serialize};
use url::Url;

use super::options::LinkOptions;
use crate::answer_record::record_of;
use crate::page::without_fragment;
use crate::refusals::is_refusal;

/// Ids of a page that are kept.
const MAX_ANCHORS: usize = 100_000;

/// What became of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LinkState {
    /// It leads nowhere.
    Broken,
    /// It could not be found out: the server refuses robots, robots.txt forbids it, or there was no answer in time.
    Unverified,
    /// It leads to a page by way of a permanent redirect.
    Redirected,
    /// It leads to a page, a file or an address that can exist.
    Good,
    /// It was left out by a setting, or is of a kind that is not checked.
    Skipped,
}

impl LinkState {
    /// The name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Broken => "broken",
            Self::Unverified => "unverified",
            Self::Redirected => "redirected",
            Self::Good => "good",
            Self::Skipped => "skipped",
        }
    }
}

/// The result of checking a link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LinkOutcome {
    /// What became of it.
    pub state: LinkState,
    /// The status of the last answer, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Why, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Where redirects led to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}

impl LinkOutcome {
    pub(crate) fn of(state: LinkState) -> Self {
        Self { state, status: None, reason: None, to: None }
    }

    pub(crate) fn because(state: LinkState, reason: impl Into<String>) -> Self {
        Self { reason: Some(reason.into()), ..Self::of(state) }
    }
}

/// The answer to a URL.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Answer {
    /// The URL that was asked for, without its fragment.
    pub(crate) url: String,
    pub(crate) status: u16,
    /// The target of a redirect, without its fragment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) redirect: Option<String>,
    /// Whether it is a test of the browser.
    #[serde(default)]
    pub(crate) is_challenge: bool,
    /// Names to which fragments may lead; `None` if the page was not read, or is made by scripts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) anchors: Option<Vec<String>>,
}

impl Answer {
    pub(crate) fn of(page: &Page, anchors: Option<Vec<String>>) -> Self {
        let record = record_of(page);
        Self {
            // Redirects are followed by the crawl only if the links of the page are checked.
            url: Url::parse(page.request().requested_url()).map_or(record.url, |url| without_fragment(&url)),
            status: page.response().status.as_u16(),
            redirect: record.redirect,
            is_challenge: record.is_challenge,
            anchors: anchors.map(|mut anchors| {
                anchors.truncate(MAX_ANCHORS);
                anchors
            }),
        }
    }

    /// What it means for a link to `url` if it is the last answer.
    pub(crate) fn outcome(&self, url: &Url, options: &LinkOptions) -> LinkOutcome {
        let outcome = |state: LinkState, reason: Option<String>| LinkOutcome {
            state,
            status: Some(self.status),
            reason,
            to: None,
        };
        if options.accepts(url, self.status) {
            let missing =
                url.fragment().filter(|_| options.fragments).filter(|fragment| !self.has_anchor(fragment));
            return match missing {
                Some(fragment) => {
                    outcome(LinkState::Broken, Some(format!("the page has nothing named #{fragment}")))
                }
                None => outcome(LinkState::Good, None),
            };
        }
        if self.is_challenge {
            return outcome(LinkState::Unverified, Some("the server asks for a browser".to_owned()));
        }
        if is_refusal(self.status) {
            return outcome(LinkState::Unverified, Some("the server refuses to answer robots".to_owned()));
        }
        outcome(LinkState::Broken, Some(format!("the server answers {}", self.status)))
    }

    fn has_anchor(&self, fragment: &str) -> bool {
        self.anchors.as_ref().is_none_or(|anchors| is_there(anchors, fragment))
    }
}

/// Whether a fragment leads somewhere: to a name as it is written or after percent-decoding, to the top, or to what is no name of an element.
pub(crate) fn is_there(anchors: &[String], fragment: &str) -> bool {
    let decoded = percent_encoding::percent_decode_str(fragment).decode_utf8_lossy();
    let is_no_name = fragment.is_empty()
        || fragment.eq_ignore_ascii_case("top")
        || fragment.starts_with(":~:")
        || fragment.starts_with('!')
        || fragment.starts_with('/');
    // GitHub puts this before the ids of a file.
    is_no_name
        || anchors.iter().any(|anchor| {
            let own = anchor.strip_prefix("user-content-").unwrap_or(anchor);
            [anchor.as_str(), own].iter().any(|name| *name == fragment || *name == decoded)
        })
}

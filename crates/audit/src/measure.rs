//! Numbers of a page that limits of the settings are compared with.
//!
//! They are noted while the site is crawled and compared afterwards, so that a finished audit can be judged again with other limits.

use huntsman_middleware::AuditSettings;
use serde::{Deserialize, Serialize};

use crate::finding::{Finding, Place};

/// Alternative texts of images with fewer characters are not noted: no limit below it makes sense.
pub(crate) const MIN_ALT: usize = 40;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Measured {
    /// Characters of the title; wide ones count twice.
    Title,
    /// Characters of the description; wide ones count twice.
    Description,
    /// Characters of the main heading; wide ones count twice.
    H1,
    /// Words of the own text.
    Words,
    /// Characters of the URL.
    Url,
    /// Parameters of the URL.
    UrlParameters,
    /// Different URLs that the page links to.
    Links,
    /// Characters of one alternative text; wide ones count twice.
    Alt,
    /// Bytes of the HTML, decoded.
    PageBytes,
    /// Elements of the page.
    Elements,
    /// Different files that the page loads.
    Requests,
}

/// A number of a page.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Measure {
    /// What was measured.
    pub of: Measured,
    /// The number.
    pub value: u64,
    /// Where, if it is at one place of the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Place>,
}

impl Measure {
    /// A number of the page as a whole.
    pub fn new(of: Measured, value: u64) -> Self {
        Self { of, value, at: None }
    }

    /// Says where it is.
    pub(crate) fn at(mut self, place: Option<Place>) -> Self {
        self.at = place;
        self
    }
}

/// The limits of the settings that a code compares with.
enum Bound {
    Least(fn(&AuditSettings) -> u64),
    Most(fn(&AuditSettings) -> u64),
}

use Bound::{Least, Most};

/// For each code with a limit what it measures, and the limit.
const LIMITED: &[(&str, Measured, Bound)] = &[
    ("title-short", Measured::Title, Least(|limits| limits.audit_title_min as u64)),
    ("title-long", Measured::Title, Most(|limits| limits.audit_title_max as u64)),
    ("description-short", Measured::Description, Least(|limits| limits.audit_description_min as u64)),
    ("description-long", Measured::Description, Most(|limits| limits.audit_description_max as u64)),
    ("h1-long", Measured::H1, Most(|limits| limits.audit_h1_max as u64)),
    ("thin", Measured::Words, Least(|limits| limits.audit_words_min as u64)),
    ("url-long", Measured::Url, Most(|limits| limits.audit_url_max as u64)),
    ("url-parameters", Measured::UrlParameters, Most(|limits| limits.audit_url_parameters_max as u64)),
    ("too-many-links", Measured::Links, Most(|limits| limits.audit_links_max as u64)),
    ("img-alt-long", Measured::Alt, Most(|limits| limits.audit_alt_max as u64)),
    ("page-heavy", Measured::PageBytes, Most(|limits| limits.audit_page_bytes_max)),
    ("dom-large", Measured::Elements, Most(|limits| limits.audit_dom_max as u64)),
    ("too-many-requests", Measured::Requests, Most(|limits| limits.audit_requests_max as u64)),
];

/// The findings about the numbers of a page that are outside of the limits.
pub(crate) fn findings<'a>(
    measures: &'a [Measure],
    limits: &'a AuditSettings,
) -> impl Iterator<Item = Finding> + 'a {
    measures.iter().flat_map(move |measure| {
        LIMITED.iter().filter(|(_, of, _)| *of == measure.of).filter_map(move |(code, _, bound)| {
            let (limit, is_outside) = match bound {
                Least(limit) => (limit(limits), measure.value < limit(limits)),
                Most(limit) => (limit(limits), measure.value > limit(limits)),
            };
            let found = || Finding::of(code).value(measure.value).limit(limit);
            is_outside.then(|| measure.at.iter().cloned().fold(found(), Finding::at))
        })
    })
}

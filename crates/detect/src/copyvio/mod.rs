//! Measures how likely it is that a text copies another. The numbers are exactly those of Earwig's Copyvio Detector.
//!
//! The reference is `earwigbot` 0.4.1 (MIT). An article and a source are each a multiset of windows of five words ([`Chain`], [`Windows`]);
//! the number of windows that they share gives a [`Confidence`]; a [`Check`] ranks many sources. The rest of the reference is here too: the
//! text of wiki pages and its sentences for queries, the text of HTML pages, exclusions, mirrors, and two texts with their shared words
//! marked.
//!
//! The numbers equal the reference's. If an item differs on purpose, its documentation says so with "deliberately different".
//!
//! In addition, there is [`Evidence`], which never changes these numbers: an [`Article`] compared with a [`Document`] gives the passages
//! that both have, with their positions, even if words were changed, moved or disguised; the reasons that excuse them; and a calibrated
//! [`Score`] and [`Verdict`].
//!
//! A [`WindowIndex`] finds which of many texts are worth comparing.
//!
//! Nothing here fetches anything: the functions take texts and addresses and return values.

mod chain;
mod check;
mod confidence;
mod evidence;
mod exclusions;
mod highlight;
mod html;
mod menus;
mod plain;
mod sentences;
mod text;
mod wikitext;
mod window_index;
mod words;

pub use chain::{Chain, Degree, DegreeError, Delta, Windows};
pub use check::{Check, CheckOptions, CheckResult, Source, SourceStatus, sort_sources};
pub use confidence::{Band, Confidence};
pub use evidence::{
    Article, Boilerplate, Dates, Direction, Disguise, Document, Evidence, LicenceHint, LicenceKind,
    MAX_DOCUMENT, Passage, Score, Span, Verdict, licence_hint,
};
pub use exclusions::{ExclusionList, Exclusions, InvalidRule, mirror_hints};
pub use highlight::highlight_html;
pub use html::{Addresses, MirrorHint, html_text, html_text_and_addresses};
pub use plain::plain_text;
pub use sentences::{QueryLimits, cut_sentences, pick_queries, sentences};
pub use text::Text;
pub use wikitext::{MAX_WIKITEXT, Wikitext};
pub use window_index::{Candidate, Candidates, WindowIndex};
pub use words::for_each_word;

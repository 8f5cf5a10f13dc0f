//! How sure one can be that a text copies another: the numbers of Earwig's Copyvio Detector, exactly.
//!
//! The reference is `earwigbot` 0.4.1 (MIT). An article and a source are each a multiset of windows of five words
//! ([`Chain`], [`Windows`]); how many windows they share gives a [`Confidence`]; a [`Check`] puts many sources in order.
//! Around that lies what the reference has: the text of wiki pages and its sentences for queries, the text of HTML pages,
//! exclusions, mirrors, and two texts with what they share marked.
//!
//! Numbers equal the reference's. Where we differ on purpose, the item says so, with "deliberately different".
//!
//! Beside that, and never changing it, lies [`Evidence`]: an [`Article`] compared with a [`Document`] gives the passages that
//! both have, with their places, also where words were changed, moved or disguised; what excuses them; a [`Score`] and a
//! [`Verdict`] that are calibrated.
//!
//! Which of many texts are worth comparing is told by a [`WindowIndex`].
//!
//! Nothing here fetches anything: texts and addresses in, values out.

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

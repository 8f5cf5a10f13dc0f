//! Explanations: what the model knows about a URL or a rule, in numbers and in words.

use std::fmt;

use serde::Serialize;

use super::site::Kinship;

/// What the model knows about a URL, and what it would decide: [`Predictor::explain_url`](super::Predictor::explain_url).
///
/// Its text has several lines, in which the parts of the URL are escaped as in a string.
#[derive(Clone, Debug, Serialize)]
pub struct Explanation {
    /// The URL.
    pub url: String,
    /// The site: a host, or the name that the caller uses for it.
    pub site: String,
    /// The number of pages of the site that were learnt.
    pub pages: u32,
    /// The number of pages of a site that are learnt before anything is skipped.
    pub warmup: u32,
    /// A URL is skipped if the probability that its content is known is greater than this.
    pub threshold: f64,
    /// What would be decided.
    pub verdict: Verdict,
    /// The same in one sentence, with the reason.
    pub decision: String,
    /// The template of the URL: `/wiki/{name}?do={choice}`.
    pub template: String,
    /// The parts of the URL as the model sees them.
    pub slots: Vec<ExplainedSlot>,
    /// All relations of the URL to pages that were fetched, the most probable first. The first one decides.
    pub relations: Vec<Relation>,
}

/// What would be decided about a URL, if nothing was in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// A page with this URL, or one to which it redirects, was fetched.
    Fetched,
    /// Skip: its content is known.
    Skip,
    /// Fetch, although its content is known, to test the rule.
    Explore,
    /// Fetch: it was skipped before, and the rule was contradicted since.
    Reopened,
    /// Fetch: too few pages of the site were learnt.
    WarmUp,
    /// Fetch: it may be a copy, but that is not certain enough.
    NotYet,
    /// Fetch: nothing ties it to a page that was fetched.
    Unknown,
}

/// A part of a URL.
#[derive(Clone, Debug, Serialize)]
pub struct ExplainedSlot {
    /// The name of a parameter, the number of a path segment from 0 (`/0`), or `host`.
    pub name: String,
    /// Its value.
    pub value: String,
    /// What it is: `constant`, `choice`, `free`, `pinned`, or `forbidden`.
    pub kind: &'static str,
    /// The number of values of a choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub choices: Option<u8>,
    /// What orders its values: `number`, `date`, `version`, or `identifier` (by discovery).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<&'static str>,
}

/// A relation of a URL to pages that were fetched, with what the belief in it rests on.
#[derive(Clone, Debug, Serialize)]
pub struct Relation {
    /// The kind of relation.
    pub kind: Kinship,
    /// The rule in words: `"sid" does not matter`.
    pub rule: String,
    /// The slots that the rule ignores.
    pub ignores: Vec<String>,
    /// The probability that the content of the URL is known.
    pub probability: f64,
    /// The probability that is needed.
    pub threshold: f64,
    /// Whether the rule decides: it is believed, and the warm-up of the site is over.
    pub active: bool,
    /// Why it does not decide yet; empty if it does.
    pub obstacles: Vec<Obstacle>,
    /// The number of further pages that would have to come out the same until the rule is believed; `None` if it is, or if no number would
    /// do.
    pub needs: Option<u32>,
    /// Why it decides, or why not, in words.
    pub why: String,
    /// The pages that tested it.
    pub evidence: Evidence,
    /// What decides: `sisters` (none of its tests failed, so similar rules say how many it needs), `tests` (its own), `templates` (one test in
    /// each template), or `pinned`.
    pub basis: &'static str,
    /// Similar rules; `None` if they do not count.
    pub sisters: Option<Sisters>,
    /// The ranges within which ordered values were tested.
    pub tested: Vec<TestedRange>,
    /// A page that probably has the same content.
    pub equals: Option<String>,
    /// The number of different contents that it may equal.
    pub contents: usize,
    #[serde(skip)]
    pub(super) key: u64,
}

/// The pages that tested a rule.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Evidence {
    /// The number of pages that were the same.
    pub dup: f64,
    /// The number of pages that were different.
    pub nodup: f64,
    /// Whether old tests count less: then the numbers are less than those of the pages.
    pub decayed: bool,
}

/// Similar rules: what share of them always holds says how many tests a new one needs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sisters {
    /// The number of rules of the kind that always held in two tests or more.
    pub pure: u32,
    /// The number of those that failed at least once.
    pub mixed: u32,
    /// The share of pure rules that is assumed, from all groups.
    pub share: f64,
    /// The groups from general to specific, each of which refines the share.
    pub groups: Vec<SisterGroup>,
}

/// A group of similar rules; the rule itself is among them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SisterGroup {
    /// What they have in common: `kind`, `names` (they ignore the same slots), `template`, or `choice`.
    pub of: &'static str,
    /// The number of them that always held in two tests or more.
    pub pure: u32,
    /// The number of those that failed at least once.
    pub mixed: u32,
}

/// The range of the values of a slot with an order within which a rule was tested.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TestedRange {
    /// The name of the slot.
    pub slot: String,
    /// The lowest and the highest value or distance at which the rule held.
    pub low: String,
    /// See [`low`](Self::low).
    pub high: String,
    /// The same in words, and how far beyond it the rule is believed.
    pub words: String,
    /// Whether the value of the URL is too far outside.
    pub outside: bool,
}

/// Why a rule does not decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Obstacle {
    /// Too few pages of the site were learnt.
    WarmUp,
    /// Too few pages tested the rule: [`Relation::needs`].
    TooFewTests,
    /// An ordered value is too far from those that tested it.
    OutsideRange,
    /// No page with the value of a choice tested it; of what lies between two pages, no page of this form of addresses.
    UntestedValue,
    /// The page is smaller than all that tested it.
    SmallPage,
    /// Pages that tested it were different.
    Contradicted,
}

impl Relation {
    /// `41 same, 0 different`.
    fn tests(&self) -> String {
        let Evidence { dup, nodup, decayed } = self.evidence;
        let decayed = if decayed { ", old ones counted less" } else { "" };
        format!("{} same, {} different{decayed}", short(dup), short(nodup))
    }
}

/// A number with a decimal if it needs one.
pub(super) fn short(number: f64) -> String {
    let tenths = (number * 10.0).round() / 10.0;
    if tenths.fract() == 0.0 { format!("{tenths:.0}") } else { format!("{tenths:.1}") }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quoted = |text: &str| text.escape_debug().to_string();
        writeln!(f, "{}", quoted(&self.url))?;
        writeln!(f, "{}", self.decision)?;
        writeln!(f, "\nThe address as the model sees it, {}:", quoted(&self.template))?;
        let width = |text: &dyn Fn(&ExplainedSlot) -> usize| self.slots.iter().map(text).max().unwrap_or(0);
        let name = width(&|slot| quoted(&slot.name).chars().count());
        let value = width(&|slot| quoted(&slot.value).chars().count()).min(40);
        for slot in &self.slots {
            let (named, valued) = (quoted(&slot.name), quoted(&slot.value));
            writeln!(f, "  {named:name$}  {valued:value$}  {}", slot.in_words())?;
        }
        if self.relations.is_empty() {
            return writeln!(f, "\nNothing ties it to a page of {} that were learnt.", self.pages);
        }
        writeln!(f, "\nWhat ties it to pages that were fetched, the most probable first:")?;
        for (number, relation) in self.relations.iter().enumerate() {
            let kind = format!("{:?}", relation.kind).to_lowercase();
            writeln!(f, "{:3}. {} ({kind})", number + 1, relation.rule)?;
            writeln!(f, "     probability  {:.3}: {}", relation.probability, relation.why)?;
            if relation.basis != "pinned" {
                writeln!(f, "     tests        {}", relation.tests())?;
            }
            if let Some(Sisters { pure, mixed, share, .. }) = &relation.sisters {
                let all = pure + mixed;
                writeln!(
                    f,
                    "     similar      {pure} of {all} rules of this kind always held; share {share:.2} assumed here"
                )?;
            }
            for range in &relation.tested {
                writeln!(f, "     range        {}", range.words)?;
            }
            if let Some(equals) = &relation.equals {
                let more = match relation.contents {
                    0 | 1 => String::new(),
                    2 => " or one other content".to_owned(),
                    many => format!(" or one of {} other contents", many - 1),
                };
                writeln!(f, "     would equal  {}{more}", quoted(equals))?;
            }
        }
        Ok(())
    }
}

impl ExplainedSlot {
    fn in_words(&self) -> String {
        match (self.kind, self.choices, self.order) {
            ("constant", ..) => "always the same".to_owned(),
            ("choice", Some(values), _) => format!("one of {values} choices"),
            ("free", _, Some("identifier")) => "an identifier, in the order of discovery".to_owned(),
            ("free", _, Some(order)) => format!("any {order}"),
            ("free", ..) => "any text".to_owned(),
            ("pinned", ..) => "never matters, as was said".to_owned(),
            ("forbidden", ..) => "always matters, as was said".to_owned(),
            (kind, ..) => kind.to_owned(),
        }
    }
}

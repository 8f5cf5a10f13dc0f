//! Explanations of URLs and of rules.

use hashbrown::HashMap;
use smallvec::SmallVec;
use url::Url;
use xxhash_rust::xxh3::xxh3_64;

use super::{MAX_RULES, Predictor, Rule, hash_of, in_words, is_explored};
use crate::avoid::explanation::{
    Evidence, ExplainedSlot, Explanation, Obstacle, Relation, SisterGroup, Sisters, TestedRange, Verdict,
    short,
};
use crate::avoid::order::Sort;
use crate::avoid::rows::{Basis, Grounds, MOST_TESTS, Row, Sisterhood};
use crate::avoid::shape::{HOST, Name, raw_slots};
use crate::avoid::site::{Kinship, LinkContext, Part, PartKind, Prediction, Relationship, Site, template};

/// The most characters of an example.
const EXAMPLE: usize = 2_000;

impl Predictor {
    /// What the model knows about a URL: its parts, all that ties it to pages that were fetched, and what would be decided if nothing was in
    /// flight. Nothing is changed.
    pub fn explain_url(&self, site: &str, url: &Url) -> Explanation {
        let unknown = Site::default();
        let model = self.sites.get(site).unwrap_or(&unknown);
        let raw = raw_slots(url, &self.overrides);
        let parts = model.parts(&raw);
        let relations = self.relations(site, model, url);
        let is_fetched = model.knows(&raw) && model.pinned_to(&raw).is_none();
        let verdict = match relations.first() {
            _ if is_fetched => Verdict::Fetched,
            None => Verdict::Unknown,
            Some(best) if best.kind == Kinship::Pinned => Verdict::Skip,
            Some(_) if model.is_reopened(&raw) => Verdict::Reopened,
            Some(best) if best.active => {
                let share = self.share_explored((xxh3_64(site.as_bytes()), best.key));
                if is_explored(url, self.options.seed, share) { Verdict::Explore } else { Verdict::Skip }
            }
            Some(best) if best.probability > self.options.threshold => Verdict::WarmUp,
            Some(_) => Verdict::NotYet,
        };
        Explanation {
            url: url.to_string(),
            site: site.to_owned(),
            pages: model.pages(),
            warmup: self.options.warmup,
            threshold: self.options.threshold,
            verdict,
            decision: decision(verdict, relations.first()),
            template: template(&parts),
            slots: parts.iter().map(explained).collect(),
            relations,
        }
    }

    /// How a rule stands now, for its example. `None` if the example is seen otherwise by now, so that the rule does not speak about it.
    pub fn explain_rule(&self, rule: &Rule) -> Option<Relation> {
        let model = self.sites.get(&rule.site)?;
        let url = Url::parse(&rule.example).ok()?;
        let mut relations = self.relations(&rule.site, model, &url);
        let same = relations.iter().position(|relation| relation.key == rule.key);
        // The keys of rows change with what is known of the slots.
        let same = same.or_else(|| {
            let is_same = |other: &Relation| other.kind == rule.kinship && other.ignores == rule.dropped;
            relations.iter().position(is_same)
        })?;
        Some(relations.swap_remove(same))
    }

    /// Rules that tied requests to known pages and were not believed, so that the requests were fetched: those of most requests first, and at
    /// most 5,000. Their [`fetched`](Rule::fetched) says of how many.
    pub fn rules_not_believed(&self) -> Vec<Rule> {
        let rules = self.rules.values().filter(|rule| !rule.is_used() && rule.fetched > 0);
        let mut rules: Vec<Rule> = rules.cloned().collect();
        rules.sort_by(|a, b| {
            b.fetched.cmp(&a.fetched).then_with(|| (&a.rule, &a.example).cmp(&(&b.rule, &b.example)))
        });
        rules
    }

    /// Records that a request is fetched although its best relation, that of the row with this key, ties it to a known page.
    pub(super) fn count_not_believed(&mut self, site: &str, url: &Url, row: u64) {
        let key = (xxh3_64(site.as_bytes()), row);
        if let Some(rule) = self.rules.get_mut(&key) {
            rule.fetched += 1;
            return;
        }
        if row == 0 || self.rules.len() >= MAX_RULES / 2 || url.as_str().len() > EXAMPLE {
            return;
        }
        let links = self.links.get(&hash_of(url)).map(SmallVec::as_slice).unwrap_or_default();
        let Some(model) = self.sites.get(site) else { return };
        let raw = raw_slots(url, &self.overrides);
        let prediction = model.predict(&raw, &model.target(&raw), links, self.is_warm(model));
        if prediction.key == row && prediction.kinship.is_some() {
            let reason = self.reason(site, url, &prediction);
            if let Some(rule) = self.rule(site, url, key, &prediction, &reason) {
                rule.fetched += 1;
            }
        }
    }

    fn relations(&self, site: &str, model: &Site, url: &Url) -> Vec<Relation> {
        let raw = raw_slots(url, &self.overrides);
        let names: HashMap<Name, String> =
            model.parts(&raw).iter().map(|part| (part.name, name_of(part))).collect();
        if let Some(page) = model.pinned_to(&raw) {
            let names =
                raw.iter().filter(|slot| slot.prior == crate::avoid::overrides::PriorKnowledge::Pinned);
            let dropped: SmallVec<[Name; 4]> = names.map(|slot| slot.name).collect();
            return vec![self.pinned(site, url, dropped, page)];
        }
        let links: &[LinkContext] = self.links.get(&hash_of(url)).map(SmallVec::as_slice).unwrap_or_default();
        let found = model.relationships(&raw, links, self.options.threshold);
        found.iter().map(|found| self.relation(site, model, url, found, &names)).collect()
    }

    fn pinned(&self, site: &str, url: &Url, dropped: SmallVec<[Name; 4]>, page: u32) -> Relation {
        let prediction = Prediction {
            probability: 1.0,
            kinship: Some(Kinship::Pinned),
            dropped,
            page: Some(page),
            ..Prediction::default()
        };
        let reason = self.reason(site, url, &prediction);
        Relation {
            kind: Kinship::Pinned,
            rule: reason.rule,
            ignores: prediction.dropped.iter().map(|name| self.name(*name)).collect(),
            probability: 1.0,
            threshold: self.options.threshold,
            active: true,
            obstacles: Vec::new(),
            needs: None,
            why: "believed without tests".to_owned(),
            evidence: Evidence { dup: 0.0, nodup: 0.0, decayed: false },
            basis: "pinned",
            sisters: None,
            tested: Vec::new(),
            equals: reason.equals,
            contents: 1,
            key: 0,
        }
    }

    fn relation(
        &self,
        site: &str,
        model: &Site,
        url: &Url,
        found: &Relationship,
        names: &HashMap<Name, String>,
    ) -> Relation {
        let grounds = &found.grounds;
        // After it was fetched, its own content is among those that it may equal.
        let is_other = |page: &u32| model.url_of(*page).is_some_and(|known| known != url.as_str());
        let threshold = self.options.threshold;
        let prediction = Prediction {
            probability: grounds.probability,
            kinship: Some(found.kinship),
            dropped: found.dropped.clone(),
            scope: found.scope,
            row: grounds.row,
            page: found.pages.iter().copied().find(is_other).or(found.pages.first().copied()),
            ..Prediction::default()
        };
        let reason = self.reason(site, url, &prediction);
        let name = |name: Name| names.get(&name).cloned().unwrap_or_else(|| self.name(name));
        let tested = tested(found, name);
        let is_believed = grounds.probability > threshold;
        let is_warm = self.is_warm(model);
        let mut obstacles = Vec::new();
        if !is_warm {
            obstacles.push(Obstacle::WarmUp);
        }
        if !is_believed {
            let is_outside = tested.iter().any(|range| range.outside);
            let of = [
                (grounds.is_contradicted, Obstacle::Contradicted),
                (is_outside, Obstacle::OutsideRange),
                (grounds.is_untested_value && !grounds.has_few_tests(), Obstacle::UntestedValue),
                (found.is_small, Obstacle::SmallPage),
            ];
            let before = obstacles.len();
            obstacles.extend(of.into_iter().filter_map(|(is, obstacle)| is.then_some(obstacle)));
            if grounds.has_few_tests() || obstacles.len() == before {
                obstacles.push(Obstacle::TooFewTests);
            }
        }
        let needs = grounds.lacks.filter(|_| !is_believed);
        let why = match obstacles.is_empty() {
            true => "believed".to_owned(),
            false => {
                let words = obstacles.iter().map(|obstacle| match obstacle {
                    Obstacle::WarmUp => format!(
                        "nothing is skipped before {} pages of the site came, and {} came",
                        self.options.warmup,
                        model.pages()
                    ),
                    Obstacle::TooFewTests => too_few(grounds),
                    Obstacle::OutsideRange => {
                        let ranges = tested.iter().filter(|range| range.outside);
                        let slots: Vec<String> =
                            ranges.map(|range| format!("\"{}\"", range.slot.escape_debug())).collect();
                        format!("the value of {} is far from those that were tested", slots.join(", "))
                    }
                    Obstacle::UntestedValue if found.kinship == Kinship::Between => {
                        "no page of this form tested it".to_owned()
                    }
                    Obstacle::UntestedValue => "no page with this value tested it".to_owned(),
                    Obstacle::SmallPage => {
                        "the page is smaller than all that tested it, so that only tests of small pages count"
                            .to_owned()
                    }
                    Obstacle::Contradicted => format!(
                        "{} of {} pages that tested it were different",
                        short(f64::from(grounds.row.nodup)),
                        short(grounds.row.total())
                    ),
                });
                let words: Vec<String> = words.collect();
                format!("{}{}", words.join("; "), further(is_believed, needs, threshold))
            }
        };
        let ignores: Vec<String> = found.dropped.iter().map(|dropped| name(*dropped)).collect();
        Relation {
            kind: found.kinship,
            rule: in_words(found.kinship, found.scope, &ignores, url),
            ignores,
            probability: grounds.probability,
            threshold,
            active: is_believed && is_warm,
            obstacles,
            needs,
            why,
            evidence: evidence(grounds.row, grounds.is_decayed),
            basis: match grounds.basis {
                Basis::Sisters => "sisters",
                Basis::OwnTests => "tests",
                Basis::Templates => "templates",
            },
            sisters: sisters(grounds),
            tested,
            equals: reason.equals,
            contents: found.pages.len(),
            key: found.key,
        }
    }
}

fn evidence(row: Row, decayed: bool) -> Evidence {
    let rounded = |number: f32| (f64::from(number) * 100.0).round() / 100.0;
    Evidence { dup: rounded(row.dup), nodup: rounded(row.nodup), decayed }
}

/// Similar rules, where they decide.
fn sisters(grounds: &Grounds) -> Option<Sisters> {
    if grounds.basis != Basis::Sisters {
        return None;
    }
    let of = |sisterhood: Sisterhood| match sisterhood {
        Sisterhood::Kind => "kind",
        Sisterhood::Names => "names",
        Sisterhood::Template => "template",
        Sisterhood::Choice => "choice",
    };
    let kind = grounds.sisters.iter().find(|(sisterhood, ..)| *sisterhood == Sisterhood::Kind);
    let (pure, mixed) = kind.map_or((0, 0), |(_, pure, mixed)| (*pure, *mixed));
    let groups = grounds.sisters.iter();
    let groups = groups.map(|(is, pure, mixed)| SisterGroup { of: of(*is), pure: *pure, mixed: *mixed });
    Some(Sisters { pure, mixed, share: grounds.purity, groups: groups.collect() })
}

fn tested(found: &Relationship, name: impl Fn(Name) -> String) -> Vec<TestedRange> {
    let mut ranges = Vec::new();
    for ((slot, sort), span) in found.ordered.iter().zip(&found.grounds.spans) {
        let Some(span) = span else { continue };
        let [low, high] = [span.tested.0, span.tested.1].map(|at| sort.name(at));
        let [from, to] = [span.believed.0, span.believed.1].map(|at| sort.name(at));
        let slot = name(*slot);
        let order = if *sort == Sort::Identifier { ", by the order of discovery," } else { "" };
        let words = format!(
            "\"{}\" was tested{order} from {low} to {high}, and is believed from {from} to {to}; this one is {}",
            slot.escape_debug(),
            sort.name(span.at)
        );
        ranges.push(TestedRange { slot, low, high, words, outside: span.is_beyond() });
    }
    if let (Some(gap), Some(slot)) = (found.gap.filter(|gap| *gap > 0), found.dropped.first()) {
        // The rows are those of neighbours whose distance has the same binary logarithm.
        let low = 1u64 << gap.ilog2();
        let high = low.saturating_mul(2).saturating_sub(1);
        let slot = name(*slot);
        let words = format!(
            "tested between neighbours of \"{}\" that are {low} to {high} apart; these are {gap} apart",
            slot.escape_debug()
        );
        let (low, high) = (low.to_string(), high.to_string());
        ranges.push(TestedRange { slot, low, high, words, outside: false });
    }
    ranges
}

fn too_few(grounds: &Grounds) -> String {
    match grounds.row.total() {
        0.0 => "no page tested it".to_owned(),
        tests if grounds.row.nodup == 0.0 => format!(
            "{} page{} tested it, none of them different, which is too few",
            short(tests),
            if tests == 1.0 { "" } else { "s" }
        ),
        tests => format!("{} pages tested it, which is too few", short(tests)),
    }
}

fn further(is_believed: bool, needs: Option<u32>, threshold: f64) -> String {
    match needs {
        _ if is_believed => String::new(),
        Some(1) => "; one more page that is the same would do".to_owned(),
        Some(more) => format!("; {more} more pages that are the same would do"),
        None => format!(
            "; not even {MOST_TESTS} further pages that are the same would bring it above {threshold}"
        ),
    }
}

fn decision(verdict: Verdict, best: Option<&Relation>) -> String {
    let Some(best) = best.filter(|_| !matches!(verdict, Verdict::Fetched | Verdict::Unknown)) else {
        return match verdict {
            Verdict::Fetched => "It was fetched, or leads to a page that was.".to_owned(),
            _ => "It would be fetched, because nothing ties it to a page that was fetched.".to_owned(),
        };
    };
    let Relation { rule, probability, threshold, .. } = best;
    let like =
        best.equals.as_ref().map(|url| format!(", that of {}", url.escape_debug())).unwrap_or_default();
    let known = format!("{rule}, so its content{like}, is known with probability {probability:.3}");
    let known = if like.is_empty() { known.replace("content, is", "content is") } else { known };
    match verdict {
        Verdict::Skip if best.kind == Kinship::Pinned => format!("It would be skipped: {known}."),
        Verdict::Skip => format!("It would be skipped: {known}, and more than {threshold} is enough."),
        Verdict::Explore => {
            format!("It would be fetched to check the rule by which others are skipped: {known}.")
        }
        Verdict::Reopened => {
            "It would be fetched: it was skipped once, and the rule was contradicted since.".to_owned()
        }
        Verdict::WarmUp => format!("It would be fetched, and skipped later on: {}. Then {known}.", best.why),
        _ => format!(
            "It would be fetched: the best of what ties it, {rule}, has probability {probability:.3}, and more than \
             {threshold} is needed: {}.",
            best.why
        ),
    }
}

/// The name of the slot of the first part of a parameter whose values are split.
pub(super) fn first_part(parameter: &str) -> String {
    format!("{parameter} (first part)")
}

fn name_of(part: &Part) -> String {
    match part.name {
        name if name == HOST => "host".to_owned(),
        name if name.is_parameter() => match part.label.strip_suffix('<') {
            Some(label) => first_part(label),
            None => part.label.clone(),
        },
        name => match name.segments_above() {
            Some(above) => format!("/{above}/..."),
            None => format!("/{}", name.0),
        },
    }
}

fn explained(part: &Part) -> ExplainedSlot {
    let (kind, choices) = match part.kind {
        _ if part.is_forbidden => ("forbidden", None),
        PartKind::Constant => ("constant", None),
        PartKind::Choice(values) => ("choice", Some(values)),
        PartKind::Free => ("free", None),
        PartKind::Pinned => ("pinned", None),
    };
    let order = match part.sort {
        Sort::None => None,
        Sort::Number | Sort::OpenNumber => Some("number"),
        Sort::Date | Sort::OpenDate => Some("date"),
        Sort::Version => Some("version"),
        Sort::Identifier => Some("identifier"),
    };
    ExplainedSlot { name: name_of(part), value: part.value.clone(), kind, choices, order }
}

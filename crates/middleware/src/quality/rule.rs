//! One rule: `NAME COMPARISON NUMBER`, or with `previous` in place of the number or beside it.

use std::fmt;

use huntsman_crawler::{FailedRule, nearest};

use super::figures::{COVERED_ITEMS, Figures, Kept};
use super::names;

/// A rule on one stat.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Rule {
    /// As it was given.
    text: String,
    stat: String,
    comparison: Comparison,
    bound: Bound,
}

/// What the stat is compared with.
#[derive(Clone, Debug, PartialEq)]
enum Bound {
    Number(f64),
    /// So many times the number of the last good crawl.
    Previous(f64),
    /// A word, such as a finish reason.
    Word(String),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Comparison {
    AtLeast,
    AtMost,
    Equal,
    Unequal,
    More,
    Less,
}

/// Longer ones come first, because `>=` begins as `>` does.
const COMPARISONS: [(&str, Comparison); 6] = [
    (">=", Comparison::AtLeast),
    ("<=", Comparison::AtMost),
    ("==", Comparison::Equal),
    ("!=", Comparison::Unequal),
    (">", Comparison::More),
    ("<", Comparison::Less),
];

/// How a rule is written, for messages.
const FORM: &str =
    "a rule is a stat, one of >= <= == != > <, and a number, such as item_scraped_count >= 100";
/// The only stat that is a word.
const WORD: &str = "finish_reason";
/// How many characters of a value are shown.
const SHOWN: usize = 60;

/// Why a text is no rule.
#[derive(Debug, PartialEq)]
pub(super) struct RuleError {
    /// Number of characters before the place.
    at: usize,
    what: String,
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at character {}: {}", self.at + 1, self.what)
    }
}

impl Rule {
    /// The rule of the setting `min_items`.
    pub(super) fn min_items(least: u64) -> Self {
        let bound = Bound::Number(least as f64);
        Self {
            text: format!("min_items = {least}"),
            stat: names::ITEMS.into(),
            comparison: Comparison::AtLeast,
            bound,
        }
    }

    /// The rule of the setting `max_error_rate`.
    pub(super) fn max_error_rate(most: f64) -> Self {
        let (stat, comparison) = (names::ERROR_RATE.into(), Comparison::AtMost);
        Self { text: format!("max_error_rate = {most}"), stat, comparison, bound: Bound::Number(most) }
    }

    /// Reads a rule. A name in quotation marks is not looked up among the known stats, for those that a program counts itself.
    pub(super) fn parse(text: &str) -> Result<Self, RuleError> {
        let error = |byte: usize, what: String| RuleError { at: text[..byte].chars().count(), what };
        let (stat, rest) = match text.trim_start().strip_prefix('"') {
            Some(quoted) => {
                let begin = text.len() - quoted.len();
                let Some(length) = quoted.find('"') else {
                    return Err(error(begin - 1, "the quotation mark is not closed".to_owned()));
                };
                (quoted[..length].to_owned(), begin + length + 1)
            }
            None => {
                let end = text.find(['<', '>', '=', '!']).unwrap_or(text.len());
                let name = text[..end].trim();
                let begin = text.len() - text.trim_start().len();
                (names::resolve(name).map_err(|what| error(begin, what))?, end)
            }
        };
        let at = text.len() - text[rest..].trim_start().len();
        let Some((sign, comparison)) = COMPARISONS.iter().find(|(sign, _)| text[at..].starts_with(sign))
        else {
            let what = match text[at..].chars().next() {
                Some('=') => "use == to compare".to_owned(),
                Some(_) => format!("a comparison is expected; {FORM}"),
                None => format!("the comparison is missing; {FORM}"),
            };
            return Err(error(at, what));
        };
        let right = &text[at + sign.len()..];
        let begin = text.len() - right.trim_start().len();
        let bound = bound(&stat, *comparison, right.trim()).map_err(|what| error(begin, what))?;
        Ok(Self { text: text.trim().to_owned(), stat, comparison: *comparison, bound })
    }

    pub(super) fn compares_with_previous(&self) -> bool {
        matches!(self.bound, Bound::Previous(_))
    }

    pub(super) fn is_about_coverage(&self) -> bool {
        self.stat.starts_with(names::COVERAGE)
    }

    /// The failure, if the rule does not hold. A rule that compares with a crawl that is not known holds.
    pub(super) fn judge(&self, figures: &Figures, earlier: Option<&Kept>) -> Option<FailedRule> {
        let failed = |why: String| Some(FailedRule { rule: self.text.clone(), why });
        if self.is_about_coverage() {
            match figures.covered_items() {
                Some(items) if items > 0.0 => {}
                Some(_) => return failed("no item was looked at".to_owned()),
                None => {
                    return failed(format!(
                        "the coverage of fields was not counted ({COVERED_ITEMS} is missing); add the pipeline ItemChecks"
                    ));
                }
            }
        }
        if let Bound::Word(word) = &self.bound {
            let holds = (figures.finish_reason == *word) == (self.comparison == Comparison::Equal);
            return if holds { None } else { failed(format!("{} is {}", self.stat, figures.finish_reason)) };
        }
        let value = figures.get(&self.stat);
        let (bound, note) = match self.bound {
            Bound::Number(number) => (number, String::new()),
            Bound::Previous(factor) => {
                let before = earlier?.get(&self.stat);
                (factor * before, format!(", it was {} in the last good crawl", shown(before)))
            }
            Bound::Word(_) => return None,
        };
        if self.comparison.holds(value, bound) {
            return None;
        }
        failed(format!("{} is {}{note}", self.stat, shown(value)))
    }
}

impl Comparison {
    fn holds(self, value: f64, bound: f64) -> bool {
        match self {
            Self::AtLeast => value >= bound,
            Self::AtMost => value <= bound,
            Self::Equal => value == bound,
            Self::Unequal => value != bound,
            Self::More => value > bound,
            Self::Less => value < bound,
        }
    }
}

/// Reads the right side of a comparison.
fn bound(stat: &str, comparison: Comparison, text: &str) -> Result<Bound, String> {
    if stat == WORD {
        let is_word =
            !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        return match comparison {
            Comparison::Equal | Comparison::Unequal if is_word => Ok(Bound::Word(text.to_owned())),
            _ => Err(format!("{WORD} is a word: compare it by == or !=, such as {WORD} == finished")),
        };
    }
    if text.is_empty() {
        return Err(format!("the number is missing; {FORM}"));
    }
    let (mut factor, mut has_previous) = (1.0, false);
    for part in text.split('*').map(str::trim) {
        match part.parse::<f64>() {
            Ok(number) if number.is_finite() => factor *= number,
            Err(_) if part == "previous" && !has_previous => has_previous = true,
            _ => {
                let hint = nearest(part, ["previous"].into_iter())
                    .map_or(String::new(), |_| "; did you mean previous?".to_owned());
                let part: String = part.chars().take(SHOWN).flat_map(char::escape_debug).collect();
                return Err(format!("{part} is no number{hint}; use a number, previous, or 0.8 * previous"));
            }
        }
    }
    Ok(if has_previous { Bound::Previous(factor) } else { Bound::Number(factor) })
}

/// A number for people: whole ones without a fraction, others with at most four digits of it.
fn shown(value: f64) -> String {
    if value.fract() == 0.0 {
        return format!("{value:.0}");
    }
    format!("{value:.4}").trim_end_matches('0').to_owned()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn figures(values: &[(&str, f64)]) -> Figures {
        Figures {
            numbers: values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
            finish_reason: "finished".to_owned(),
        }
    }

    /// Why a rule fails; `None` if it holds.
    fn judged(rule: &str, values: &[(&str, f64)], before: Option<f64>) -> Option<String> {
        let earlier = before.map(|number| Kept {
            finished_at: String::new(),
            stats: BTreeMap::from([("item_scraped_count".to_owned(), number)]),
        });
        Rule::parse(rule).unwrap().judge(&figures(values), earlier.as_ref()).map(|failed| failed.why)
    }

    #[test]
    fn rules_compare_stats_with_numbers_and_with_the_crawl_before() {
        let items = [("item_scraped_count", 80.0)];
        for (rule, before, expected) in [
            ("item_scraped_count >= 80", None, None),
            ("item_scraped_count>80", None, Some("item_scraped_count is 80")),
            ("item_scraped_count < 80.5", None, None),
            ("item_scraped_count != 80", None, Some("item_scraped_count is 80")),
            ("item_scraped_count == 80", None, None),
            ("item_scraped_count <= 1e1", None, Some("item_scraped_count is 80")),
            // A counter that never counted is 0.
            ("retry/count == 0", None, None),
            (
                "downloader/response_status_count/503 > 0",
                None,
                Some("downloader/response_status_count/503 is 0"),
            ),
            ("finish_reason == finished", None, None),
            ("finish_reason != finished", None, Some("finish_reason is finished")),
            ("item_scraped_count >= 0.8 * previous", Some(100.0), None),
            (
                "item_scraped_count >= previous*0.9",
                Some(100.0),
                Some("item_scraped_count is 80, it was 100 in the last good crawl"),
            ),
            ("item_scraped_count >= previous", None, None),
            ("\"my/own stat\" >= 0", None, None),
        ] {
            assert_eq!(judged(rule, &items, before).as_deref(), expected, "{rule}");
        }
    }

    #[test]
    fn coverage_that_was_not_counted_satisfies_no_rule() {
        let rule = "coverage.price >= 0.95";
        let why = judged(rule, &[], None).unwrap();
        assert!(why.contains("not counted") && why.contains("ItemChecks"), "{why}");
        assert_eq!(judged(rule, &[(COVERED_ITEMS, 0.0)], None).as_deref(), Some("no item was looked at"));
        let counted = |share: f64| [(COVERED_ITEMS, 40.0), ("coverage/price", share)];
        assert_eq!(judged(rule, &counted(0.95), None), None);
        assert_eq!(judged(rule, &counted(0.925), None).as_deref(), Some("coverage/price is 0.925"));
        // No item has the field at all.
        assert_eq!(
            judged("coverage.seller.name > 0", &counted(1.0), None).as_deref(),
            Some("coverage/seller.name is 0")
        );
    }

    #[test]
    fn what_is_no_rule_is_refused_with_its_place_and_advice() {
        for (text, place, advice) in [
            ("item_scrapd_count >= 1", 1, "did you mean item_scraped_count?"),
            ("  items_scraped >= 1", 3, "unknown stat items_scraped"),
            ("item_scraped_count = 1", 20, "use =="),
            ("item_scraped_count", 19, "comparison is missing"),
            ("item_scraped_count >=", 22, "number is missing"),
            ("item_scraped_count >= many", 23, "many is no number"),
            ("item_scraped_count >= 0.8 * previus", 23, "did you mean previous?"),
            ("item_scraped_count >= previous * previous", 23, "no number"),
            ("item_scraped_count >= NaN", 23, "no number"),
            ("finish_reason >= finished", 18, "== or !="),
            ("finish_reason == 'all done'", 18, "word"),
            ("\"my/stat >= 1", 1, "not closed"),
            ("\"my/stat\" 1", 11, "comparison is expected"),
            (">= 1", 1, "name of a stat"),
            ("coverage. >= 1", 1, "name of a field"),
            ("", 1, "name of a stat"),
        ] {
            let error = Rule::parse(text).unwrap_err();
            assert_eq!(error.at + 1, place, "{text}: {error}");
            assert!(error.to_string().contains(advice), "{text}: {error}");
        }
    }
}

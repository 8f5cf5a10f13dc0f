//! What is believed of each shape of URLs: whether its pages need a browser.

use std::collections::{HashMap, HashSet};

use huntsman_crawler::Change;
use huntsman_text::urlparts::Parts;
use huntsman_text::urlparts::guard::template_into;
use serde::{Deserialize, Serialize};
use url::Url;

use super::looks::Looks;

/// Pages of a new shape whose two forms are compared before anything is believed of it.
const FIRST: u32 = 3;
/// Comparisons that said nothing, after which no further page waits for a result.
const UNCLEAR: u32 = 6;
/// Of the pages that are believed to be whole without a browser, one in so many is checked at first.
const FIRST_CHECKS: u32 = 20;
/// And at last.
const LAST_CHECKS: u32 = 200;
/// Shapes of one site; what comes then shares the shapes that have only its numbers of segments.
const SHAPES_PER_SITE: usize = 64;
/// Shapes in the report.
const REPORTED: usize = 50;

/// The shape of a page: its site, the template of its address, and how its static form looks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Shape {
    site: String,
    template: String,
    looks: Looks,
}

/// What is believed of a shape.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Belief {
    /// Pages whose two forms were compared.
    pub(super) seen: u32,
    /// Those of them that needed the browser.
    pub(super) needed: u32,
    /// Pages that were left as they were.
    pub(super) left_static: u64,
    /// Pages that would have been left so and turned out to need the browser.
    pub(super) wrong: u32,
    /// Checks in a row that found nothing wrong.
    confirmed: u32,
    /// Comparisons that said nothing.
    unclear: u32,
    /// First pages that are being compared.
    #[serde(skip)]
    pending: u32,
    /// Checks under way. They count as if they had found nothing, so that it does not matter how long they take.
    #[serde(skip)]
    checking: u32,
}

/// What is done with a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    Render(Why),
    Static,
    /// The first pages of its shape are being compared.
    Wait,
}

/// What a page taught.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lesson {
    /// It was left as it is.
    Static,
    /// It was rendered for this reason; whether it needed the browser, or `None` if that is not known.
    Rendered(Why, Option<bool>),
}

/// Why a page is rendered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// It is among the first of its shape.
    First,
    /// It likely needs it.
    Likely,
    /// It likely does not need it; that is checked.
    Check,
}

/// Sums over the settled pages of all shapes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    pub(super) shapes: usize,
    pub(super) compared: u64,
    pub(super) needed: u64,
    pub(super) left_static: u64,
    pub(super) wrong: u64,
}

/// The beliefs of a crawl. Each page teaches twice: as soon as something is known of it, which is what decisions stand on, and again when it
/// is settled, which is what the job keeps. So a crawl that goes on after a kill knows what the pages taught that it has, and nothing of those
/// that it will fetch again: these teach once in all.
#[derive(Debug, Default)]
pub(super) struct Beliefs {
    of: HashMap<Shape, Taught>,
    /// Shapes of each site.
    sites: HashMap<String, usize>,
    changed: HashSet<Shape>,
}

/// What the pages of a shape taught.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Taught {
    /// All of them.
    by_all: Belief,
    /// Those that are settled.
    by_settled: Belief,
}

impl Shape {
    pub(super) fn of(url: &Url, looks: Looks) -> Self {
        let parts = Parts::of(url);
        let mut template = String::new();
        template_into(url.path(), &mut template);
        let mut names: Vec<String> = parts.pairs().map(|pair| pair.name().into_owned()).collect();
        names.sort_unstable();
        names.dedup();
        if !names.is_empty() {
            template.push('?');
            template.push_str(&names.join("&"));
        }
        Self { site: parts.authority().rsplit('@').next().unwrap_or_default().to_owned(), template, looks }
    }

    /// The shape that has only the number of segments.
    fn folded(&self) -> Self {
        let path = self.template.split('?').next().unwrap_or_default();
        let template = "/*".repeat(path.matches('/').count());
        Self { template, ..self.clone() }
    }

    pub(super) fn site(&self) -> &str {
        &self.site
    }

    pub(super) fn template(&self) -> &str {
        &self.template
    }

    pub(super) fn looks(&self) -> Looks {
        self.looks
    }

    fn to_key(&self) -> Vec<u8> {
        format!("{}\n{}\n{}", self.site, self.looks.name(), self.template).into_bytes()
    }

    fn of_key(key: &[u8]) -> Option<Self> {
        let mut parts = std::str::from_utf8(key).ok()?.splitn(3, '\n');
        let site = parts.next()?.to_owned();
        let looks = Looks::of_name(parts.next()?)?;
        Some(Self { site, looks, template: parts.next()?.to_owned() })
    }
}

impl Belief {
    /// The probability that a page of the shape needs the browser.
    fn probability(&self, looks: Looks) -> f64 {
        let prior = u32::from(looks == Looks::Empty);
        f64::from(self.needed + prior + 1) / f64::from(self.seen + prior + 2)
    }

    /// Whether its pages are rendered.
    pub(super) fn renders(&self, looks: Looks) -> bool {
        self.probability(looks) >= 0.5
    }

    /// The share of pages that is checked.
    fn checks(&self) -> f64 {
        let checks = self.confirmed.saturating_add(self.checking);
        let one_in = FIRST_CHECKS.saturating_mul(checks.saturating_add(1)).min(LAST_CHECKS);
        1.0 / f64::from(one_in)
    }

    fn choose(&mut self, looks: Looks, chance: f64) -> Choice {
        if self.seen < FIRST && self.unclear < UNCLEAR {
            if self.seen + self.pending < FIRST {
                self.pending += 1;
                return Choice::Render(Why::First);
            }
            // What looks empty is rendered in any case, until that turns out to be of no use.
            if looks == Looks::Full {
                return Choice::Wait;
            }
        }
        if self.renders(looks) {
            return Choice::Render(Why::Likely);
        }
        if chance < self.checks() {
            self.checking += 1;
            return Choice::Render(Why::Check);
        }
        Choice::Static
    }

    fn learn(&mut self, lesson: Lesson) {
        let Lesson::Rendered(why, verdict) = lesson else {
            self.left_static += 1;
            return;
        };
        match why {
            Why::First => self.pending = self.pending.saturating_sub(1),
            Why::Check => self.checking = self.checking.saturating_sub(1),
            Why::Likely => {}
        }
        let Some(is_needed) = verdict else {
            self.unclear = self.unclear.saturating_add(1);
            return;
        };
        self.seen = self.seen.saturating_add(1);
        self.needed = self.needed.saturating_add(is_needed.into());
        match (why, is_needed) {
            (Why::Check, true) => {
                self.wrong = self.wrong.saturating_add(1);
                self.confirmed = 0;
            }
            (Why::Check, false) => self.confirmed = self.confirmed.saturating_add(1),
            _ => {}
        }
    }
}

impl Beliefs {
    /// What is done with a page of this shape; `chance` is from 0 to 1. Folds the shape if its site has too many.
    pub(super) fn choose(&mut self, shape: &mut Shape, chance: f64) -> Choice {
        let shapes = self.sites.get(&shape.site).copied().unwrap_or(0);
        if shapes >= SHAPES_PER_SITE && !self.of.contains_key(shape) {
            *shape = shape.folded();
        }
        if !self.of.contains_key(shape) {
            self.insert(shape.clone(), Taught::default());
        }
        let taught = self.of.get_mut(shape).expect("it was inserted above");
        taught.by_all.choose(shape.looks, chance)
    }

    /// Learns from a page of this shape.
    pub(super) fn learn(&mut self, shape: &Shape, lesson: Lesson) {
        if let Some(taught) = self.of.get_mut(shape) {
            taught.by_all.learn(lesson);
        }
    }

    /// The page that taught this is settled.
    pub(super) fn settle(&mut self, shape: &Shape, lesson: Lesson) {
        if let Some(taught) = self.of.get_mut(shape) {
            taught.by_settled.learn(lesson);
            self.changed.insert(shape.clone());
        }
    }

    fn insert(&mut self, shape: Shape, taught: Taught) {
        *self.sites.entry(shape.site.clone()).or_default() += 1;
        self.of.insert(shape, taught);
    }

    /// What settled pages taught of each shape that has any.
    fn settled(&self) -> impl Iterator<Item = (&Shape, &Belief)> {
        let nothing = Belief::default();
        let all = self.of.iter().map(|(shape, taught)| (shape, &taught.by_settled));
        all.filter(move |(_, belief)| **belief != nothing)
    }

    /// The shapes of which most is known, by their settled pages; first those with most of them.
    pub(super) fn most_seen(&self) -> impl Iterator<Item = (&Shape, &Belief)> {
        let mut all: Vec<_> = self.settled().collect();
        all.sort_by_key(|(shape, belief)| {
            (std::cmp::Reverse(u64::from(belief.seen) + belief.left_static), *shape)
        });
        all.into_iter().take(REPORTED)
    }

    pub(super) fn totals(&self) -> Totals {
        self.settled().fold(Totals::default(), |totals, (_, belief)| Totals {
            shapes: totals.shapes + 1,
            compared: totals.compared + u64::from(belief.seen),
            needed: totals.needed + u64::from(belief.needed),
            left_static: totals.left_static + belief.left_static,
            wrong: totals.wrong + u64::from(belief.wrong),
        })
    }

    pub(super) fn load(&mut self, key: &[u8], value: &[u8]) -> Result<(), String> {
        let shape = Shape::of_key(key).ok_or("a shape cannot be read")?;
        let belief: Belief = serde_json::from_slice(value).map_err(|error| error.to_string())?;
        self.insert(shape, Taught { by_all: belief.clone(), by_settled: belief });
        Ok(())
    }

    /// What settled pages taught since the last call.
    pub(super) fn changes(&mut self) -> Vec<Change> {
        let changed = std::mem::take(&mut self.changed);
        let value = |shape: &Shape| serde_json::to_vec(&self.of.get(shape)?.by_settled).ok();
        changed.iter().map(|shape| (shape.to_key(), value(shape))).collect()
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;

    fn shape(url: &str, looks: Looks) -> Shape {
        Shape::of(&Url::parse(url).unwrap(), looks)
    }

    fn learn_all(beliefs: &mut Beliefs, shape: &Shape, verdicts: &[bool]) {
        for verdict in verdicts {
            assert_eq!(beliefs.choose(&mut shape.clone(), 1.0), Choice::Render(Why::First));
            beliefs.learn(shape, Lesson::Rendered(Why::First, Some(*verdict)));
        }
    }

    #[test]
    fn pages_of_one_shape_differ_in_numbers_dates_slugs_and_values_only() {
        let key = |url| shape(url, Looks::Full);
        assert_eq!(
            key("http://a.test/blog/why-we-like-rust?b=1&a=2"),
            key("http://a.test/blog/how-it-all-began?a=3&b=4")
        );
        assert_ne!(key("http://a.test/blog/1"), key("http://a.test/shop/1"));
        assert_ne!(key("http://a.test/blog/1"), key("http://b.test/blog/1"));
        assert_ne!(key("http://a.test/blog/1"), shape("http://a.test/blog/1", Looks::Empty));
        let stored = key("http://a.test:81/x/1?q=1");
        assert_eq!(Shape::of_key(&stored.to_key()), Some(stored));
    }

    #[test]
    fn three_pages_are_compared_and_the_others_wait_for_them() {
        let mut beliefs = Beliefs::default();
        let key = shape("http://a.test/p/1", Looks::Full);
        for _ in 0..3 {
            assert_eq!(beliefs.choose(&mut key.clone(), 1.0), Choice::Render(Why::First));
        }
        assert_eq!(beliefs.choose(&mut key.clone(), 1.0), Choice::Wait);
        // One that says nothing makes room for another.
        beliefs.learn(&key, Lesson::Rendered(Why::First, None));
        assert_eq!(beliefs.choose(&mut key.clone(), 1.0), Choice::Render(Why::First));
        for _ in 0..3 {
            beliefs.learn(&key, Lesson::Rendered(Why::First, Some(false)));
        }
        assert_eq!(beliefs.choose(&mut key.clone(), 1.0), Choice::Static);
        // What looks empty does not wait.
        let empty = shape("http://a.test/p/1", Looks::Empty);
        for _ in 0..3 {
            assert_eq!(beliefs.choose(&mut empty.clone(), 1.0), Choice::Render(Why::First));
        }
        assert_eq!(beliefs.choose(&mut empty.clone(), 1.0), Choice::Render(Why::Likely));
    }

    #[test]
    fn pages_that_are_never_clear_hold_up_nobody() {
        let mut beliefs = Beliefs::default();
        let key = shape("http://a.test/p/1", Looks::Full);
        for _ in 0..UNCLEAR {
            assert_eq!(beliefs.choose(&mut key.clone(), 1.0), Choice::Render(Why::First));
            beliefs.learn(&key, Lesson::Rendered(Why::First, None));
        }
        assert_eq!(beliefs.choose(&mut key.clone(), 1.0), Choice::Render(Why::Likely), "nothing is known");
    }

    #[test]
    fn checks_grow_rare_while_they_find_nothing_and_frequent_when_they_do() {
        let mut beliefs = Beliefs::default();
        let key = shape("http://a.test/p/1", Looks::Full);
        learn_all(&mut beliefs, &key, &[false; 3]);
        assert_eq!(beliefs.choose(&mut key.clone(), 0.049), Choice::Render(Why::Check));
        assert_eq!(beliefs.choose(&mut key.clone(), 0.051), Choice::Static);
        for _ in 0..50 {
            beliefs.learn(&key, Lesson::Rendered(Why::Check, Some(false)));
        }
        assert_eq!(beliefs.choose(&mut key.clone(), 0.004_9), Choice::Render(Why::Check));
        assert_eq!(beliefs.choose(&mut key.clone(), 0.005_1), Choice::Static);
        beliefs.learn(&key, Lesson::Rendered(Why::Check, Some(true)));
        assert_eq!(beliefs.choose(&mut key.clone(), 0.049), Choice::Render(Why::Check));
        assert_eq!(beliefs.of[&key].by_all.wrong, 1);
    }

    #[test]
    fn a_shape_that_turns_out_to_need_the_browser_gets_it() {
        let mut beliefs = Beliefs::default();
        let key = shape("http://a.test/p/1", Looks::Full);
        learn_all(&mut beliefs, &key, &[false; 3]);
        for _ in 0..3 {
            beliefs.learn(&key, Lesson::Rendered(Why::Check, Some(true)));
        }
        assert_eq!(beliefs.choose(&mut key.clone(), 1.0), Choice::Render(Why::Likely));
    }

    #[test]
    fn a_site_with_very_many_shapes_shares_them() {
        let mut beliefs = Beliefs::default();
        for n in 0..1_000_u32 {
            let name: String = n.to_string().bytes().map(|digit| char::from(digit - b'0' + b'a')).collect();
            beliefs.choose(&mut shape(&format!("http://a.test/{name}/x"), Looks::Full), 1.0);
        }
        assert!(beliefs.of.len() <= SHAPES_PER_SITE + 1, "{}", beliefs.of.len());
        beliefs.choose(&mut shape("http://b.test/new/x", Looks::Full), 1.0);
        assert!(beliefs.of.contains_key(&shape("http://b.test/new/x", Looks::Full)));
    }

    /// Pages of three shapes in one order, with a number from 0 to 1 each and whether the page needs the browser.
    fn pages(random: &mut Xoshiro256PlusPlus) -> Vec<(Shape, f64, Option<bool>)> {
        let page = |n: usize| {
            let key = shape(&format!("http://a.test/{}/1", ["a", "b", "c"][n % 3]), Looks::Full);
            let needed = random.random_bool([0.01, 0.3, 0.9][n % 3]);
            (key, random.random(), random.random_bool(0.9).then_some(needed))
        };
        (0..600).map(page).collect()
    }

    /// Takes a page as a crawl does; what was done with it.
    fn take(beliefs: &mut Beliefs, page: &(Shape, f64, Option<bool>)) -> (Choice, Lesson) {
        let choice = beliefs.choose(&mut page.0.clone(), page.1);
        let lesson = match choice {
            Choice::Render(why) => Lesson::Rendered(why, page.2),
            Choice::Static => Lesson::Static,
            Choice::Wait => unreachable!("one page is open at a time"),
        };
        beliefs.learn(&page.0, lesson);
        (choice, lesson)
    }

    #[test]
    fn after_a_kill_at_any_moment_the_same_pages_decide_the_same() {
        for _ in 0..20 {
            let seed = rand::random();
            println!("seed {seed}");
            let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
            let pages = pages(&mut random);
            let mut whole = Beliefs::default();
            let expected: Vec<Choice> = pages
                .iter()
                .map(|page| {
                    let (choice, lesson) = take(&mut whole, page);
                    whole.settle(&page.0, lesson);
                    choice
                })
                .collect();
            let (mut beliefs, mut choices) = (Beliefs::default(), Vec::new());
            let (mut stored, mut committed): (HashMap<Vec<u8>, Vec<u8>>, usize) = Default::default();
            while let Some(page) = pages.get(choices.len()) {
                let (choice, lesson) = take(&mut beliefs, page);
                // A commit may come after a page taught and before it is settled.
                if random.random_bool(0.1) {
                    stored.extend(beliefs.changes().into_iter().map(|(key, value)| (key, value.unwrap())));
                    committed = choices.len();
                }
                if random.random_bool(0.02) {
                    beliefs = Beliefs::default();
                    stored.iter().for_each(|(key, value)| beliefs.load(key, value).unwrap());
                    choices.truncate(committed);
                    continue;
                }
                beliefs.settle(&page.0, lesson);
                choices.push(choice);
            }
            assert_eq!(choices, expected);
            assert_eq!(beliefs.of, whole.of);
            assert!(beliefs.of.values().all(|taught| taught.by_all == taught.by_settled));
        }
    }

    /// The rule of the model as it is stated, over a plain list of what was seen.
    fn naive(history: &[(Why, bool)], left: f64) -> Choice {
        if history.len() < 3 {
            return Choice::Render(Why::First);
        }
        let needed = history.iter().filter(|(_, needed)| *needed).count();
        if (needed + 1) as f64 / (history.len() + 2) as f64 >= 0.5 {
            return Choice::Render(Why::Likely);
        }
        let checks = history.iter().rev().filter(|(why, _)| *why == Why::Check);
        let confirmed = checks.take_while(|(_, needed)| !needed).count();
        let rate = (20 * (confirmed + 1)).min(200);
        if left < 1.0 / rate as f64 { Choice::Render(Why::Check) } else { Choice::Static }
    }

    #[test]
    fn the_model_is_the_naive_one() {
        for _ in 0..20 {
            let seed = rand::random();
            println!("seed {seed}");
            let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
            let share = random.random::<f64>();
            let key = shape("http://a.test/p/1", Looks::Full);
            let (mut beliefs, mut history) = (Beliefs::default(), Vec::new());
            for _ in 0..2_000 {
                let chance = random.random();
                let choice = beliefs.choose(&mut key.clone(), chance);
                assert_eq!(choice, naive(&history, chance));
                if let Choice::Render(why) = choice {
                    let verdict = random.random_bool(share);
                    beliefs.learn(&key, Lesson::Rendered(why, Some(verdict)));
                    history.push((why, verdict));
                }
            }
        }
    }
}

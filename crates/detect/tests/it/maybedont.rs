//! Tests of the predictor and the gate: MaybeDont's own tests, a naive model, saving and restoring.

use std::collections::{BTreeMap, BTreeSet};

use huntsman_detect::lsh::{LshIndex, LshParams};
use huntsman_detect::maybedont::{
    Address, Claim, Counts, Decision, DupePredictor, Gate, GateSettings, PredictorSettings, Table,
};
use huntsman_detect::minhash::Signature;
use huntsman_detect::shingles::{ShingleSet, TooCommon};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

// The package's own tests, tests/test_predict.py and tests/test_middleware.py of MaybeDont.

#[test]
fn equal_pages_of_a_path_make_the_path_likely() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(0x5eed_0140);
    let mut predictor = DupePredictor::default();
    let url = |rng: &mut Xoshiro256PlusPlus, path| {
        let number = rng.random_range(1..=100);
        format!("http://foo.com/{path}?p{number}={number}")
    };
    for _ in 0..100 {
        predictor.update_model(&url(&mut rng, "d"), "d");
        let text = format!("d{}", rng.random_range(1..=100));
        predictor.update_model(&url(&mut rng, "nd"), &text);
    }
    assert!(predictor.duplicate_probability(&url(&mut rng, "d")) > 0.97);
    assert!(predictor.duplicate_probability(&url(&mut rng, "nd")) < 0.97);
}

/// All combinations of: whether the page number is a parameter or in the path, and the order in which pages are learned and predicted.
fn ways() -> impl Iterator<Item = (bool, bool, bool)> {
    (0..8).map(|bits| (bits & 1 != 0, bits & 2 != 0, bits & 4 != 0))
}

fn page_url(is_param: bool, page: &str, start: Option<u32>) -> String {
    match (is_param, start) {
        (true, None) => format!("http://foo.com/?page={page}"),
        (true, Some(start)) => format!("http://foo.com/?page={page}&start={start}"),
        (false, None) => format!("http://foo.com/{page}"),
        (false, Some(start)) => format!("http://foo.com/{page}?start={start}"),
    }
}

#[test]
fn a_parameter_that_changes_nothing_is_found_from_both_sides() {
    for (is_param, reverse_update, reverse_test) in ways() {
        let mut predictor = DupePredictor::default();
        for topic in 0..100 {
            let mut starts = [None, Some(0)];
            if reverse_update {
                starts.reverse();
            }
            for start in starts {
                let url = page_url(is_param, &topic.to_string(), start);
                predictor.update_model(&url, &format!("a{topic}"));
            }
        }
        let mut starts = [None, Some(0)];
        if reverse_test {
            starts.reverse();
        }
        predictor.update_model(&page_url(is_param, "b", starts[0]), "b");
        let way = (is_param, reverse_update, reverse_test);
        assert!(predictor.duplicate_probability(&page_url(is_param, "b", starts[1])) > 0.97, "{way:?}");
        for start in starts {
            assert!(predictor.duplicate_probability(&page_url(is_param, "c", start)) < 0.1, "{way:?}");
        }
    }
}

#[test]
fn a_value_that_changes_nothing_is_found_among_others_that_do() {
    for (seed, (is_param, reverse_update, reverse_test)) in (0x5eed_0150..).zip(ways()) {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut predictor = DupePredictor::default();
        for topic in 0..100 {
            let own = format!("a{topic}");
            let other = format!("r{}", rng.random_range(1..=100));
            let start = Some(rng.random_range(1..=100));
            let mut pages = [(None, &own), (Some(0), &own), (start, &other)];
            if reverse_update {
                pages.reverse();
            }
            for (start, text) in pages {
                predictor.update_model(&page_url(is_param, &topic.to_string(), start), text);
            }
        }
        let mut starts = [None, Some(0)];
        if reverse_test {
            starts.reverse();
        }
        let random = Some(rng.random_range(1..=100));
        predictor.update_model(&page_url(is_param, "b", starts[0]), "b");
        let way = (is_param, reverse_update, reverse_test);
        assert!(predictor.duplicate_probability(&page_url(is_param, "b", starts[1])) > 0.97, "{way:?}");
        assert!(predictor.duplicate_probability(&page_url(is_param, "b", random)) < 0.3, "{way:?}");
        for start in [None, Some(0), random] {
            assert!(predictor.duplicate_probability(&page_url(is_param, "c", start)) < 0.3, "{way:?}");
        }
    }
}

fn topic(number: u32, start: bool) -> String {
    format!("http://example.com/viewtopic.php?topic_id={number}{}", if start { "&start=0" } else { "" })
}

/// Learns each topic, then decides about its variant, and learns that too if it is fetched. Returns the number of skipped variants.
fn crawl_topics(gate: &mut Gate, topics: std::ops::Range<u32>) -> usize {
    let mut dropped = 0;
    for number in topics {
        let text = format!("Topic {number}");
        gate.learn(&topic(number, false), &text);
        match gate.decide(&topic(number, true)) {
            Decision::Fetch { .. } => gate.learn(&topic(number, true), &text),
            Decision::Skip { .. } => dropped += 1,
        }
    }
    dropped
}

#[test]
fn the_gate_drops_after_five_observations_and_explores() {
    let run = |exploration| {
        let settings = GateSettings { warm_up: 1, threshold: 0.5, exploration, ..GateSettings::default() };
        let mut gate = Gate::new(settings).unwrap();
        gate.learn("http://example.com/", "");
        assert!(gate.predictor().is_some());
        let dropped = crawl_topics(&mut gate, 0..10);
        (gate, dropped)
    };
    let (mut gate, dropped) = run(0.0);
    assert_eq!(dropped, 5, "five observations give .598");
    // The same in the other order.
    gate.learn(&topic(100, true), "");
    assert!(matches!(gate.decide(&topic(200, false)), Decision::Fetch { .. }));
    let Decision::Skip { reason, probability, rows } = gate.decide(&topic(100, false)) else { panic!() };
    assert!(probability > 0.5);
    let expected = "`start` changes nothing on any path: 5 same, 0 different; \
                    `start=0` is as good as nothing on any path: 5 same, 0 different; \
                    `start` changes nothing on example.com/viewtopic.php: 5 same, 0 different; \
                    `start=0` is as good as nothing on example.com/viewtopic.php: 5 same, 0 different";
    assert_eq!(reason, expected);
    let tables: Vec<&str> = rows.iter().map(|row| row.claim.table().name()).collect();
    assert_eq!(tables, ["param", "param_value", "path_param", "path_param_value"]);

    let (mut gate, _) = run(0.5);
    let dropped = crawl_topics(&mut gate, 150..170);
    assert!(dropped > 0 && dropped < 20, "{dropped}");
}

#[test]
fn the_warm_up_only_collects() {
    let mut gate =
        Gate::new(GateSettings { warm_up: 20, threshold: 0.1, ..GateSettings::default() }).unwrap();
    for number in 0..20 {
        assert_eq!(gate.queued(), Some(number));
        assert!(gate.predictor().is_none());
        let url = format!("http://h/?n={number}");
        assert_eq!(gate.decide(&url), Decision::Fetch { explored: false, probability: None });
        gate.learn(&url, "menu of all\nsame text on all pages");
    }
    assert_eq!(gate.queued(), None);
    let predictor = gate.predictor().unwrap();
    assert_eq!((predictor.pages(), predictor.too_common().len()), (20, 3));
    assert_eq!(predictor.totals(Table::Path).counts, Counts { dup: 190, nodup: 0 });
}

#[test]
fn exploration_follows_from_seed_and_address_alone() {
    let gate = |seed| {
        let settings = GateSettings { warm_up: 1, exploration: 0.05, seed, ..GateSettings::default() };
        let mut gate = Gate::new(settings).unwrap();
        for number in 0..40 {
            gate.learn(&format!("http://h/?n={number}"), "always the same");
        }
        gate
    };
    let explored = |gate: &Gate| -> Vec<u32> {
        (1_000..5_000)
            .filter(|number| match gate.decide(&format!("http://h/?n={number}")) {
                Decision::Fetch { explored, .. } => {
                    assert!(explored);
                    true
                }
                Decision::Skip { .. } => false,
            })
            .collect()
    };
    let first = explored(&gate(1));
    // 200 are expected, with a standard deviation of 14.
    assert!((130..270).contains(&first.len()), "{}", first.len());
    assert_eq!(first, explored(&gate(1)));
    assert_ne!(first, explored(&gate(2)));
}

#[test]
fn senseless_settings_are_refused() {
    let refused = |settings: GateSettings| Gate::new(settings).unwrap_err().to_string();
    let default = GateSettings::default;
    assert_eq!(refused(GateSettings { threshold: f64::NAN, ..default() }), "threshold: not a number");
    assert_eq!(
        refused(GateSettings { exploration: 1.5, ..default() }),
        "exploration: 1.5 is not within 0 to 1"
    );
    let predictor = PredictorSettings { jaccard_threshold: -1.0, ..PredictorSettings::default() };
    assert_eq!(
        refused(GateSettings { predictor, ..default() }),
        "jaccard_threshold: the threshold -1 is not within 0 to 1"
    );
}

/// The rules of the original in their simplest form: every step scans all pages, and texts are either equal or not.
#[derive(Default)]
struct Model {
    pages: Vec<ModelPage>,
    tables: BTreeMap<Claim, Counts>,
}

#[derive(Clone)]
struct ModelPage {
    identity: String,
    path: String,
    query: BTreeMap<String, String>,
    content: BTreeSet<String>,
}

fn without(query: &BTreeMap<String, String>, param: &str) -> BTreeMap<String, String> {
    let mut rest = query.clone();
    rest.remove(param);
    rest
}

fn pairs(query: BTreeMap<String, String>) -> Vec<(String, String)> {
    query.into_iter().collect()
}

fn param_claims(path: &str, rest: BTreeMap<String, String>, param: &str) -> [Claim; 3] {
    let (path, param) = (path.to_owned(), param.to_owned());
    [
        Claim::Param { param: param.clone() },
        Claim::PathParam { path: path.clone(), param: param.clone() },
        Claim::PathQueryParam { path, rest: pairs(rest), param },
    ]
}

fn value_claims(path: &str, param: &str, value: &str) -> [Claim; 2] {
    let (path, param, value) = (path.to_owned(), param.to_owned(), value.to_owned());
    [
        Claim::ParamValue { param: param.clone(), value: value.clone() },
        Claim::PathParamValue { path, param, value },
    ]
}

impl Model {
    fn page(url: &str, text: &str) -> ModelPage {
        let address = Address::parse(url);
        ModelPage {
            identity: address.identity().to_owned(),
            path: address.path().to_owned(),
            query: address.query().iter().cloned().collect(),
            content: text.lines().map(str::to_owned).collect(),
        }
    }

    fn params(&self, path: &str) -> BTreeSet<String> {
        self.pages
            .iter()
            .filter(|page| page.path == path)
            .flat_map(|page| page.query.keys().cloned())
            .collect()
    }

    fn values(&self, path: &str, param: &str) -> BTreeSet<String> {
        let values =
            self.pages.iter().filter(|page| page.path == path).filter_map(|page| page.query.get(param));
        values.cloned().collect()
    }

    fn compare(&self, page: &ModelPage, family: impl Fn(&BTreeMap<String, String>) -> bool) -> Counts {
        let mut counts = Counts::default();
        for other in self.pages.iter().filter(|other| other.path == page.path && family(&other.query)) {
            if other.content == page.content { counts.dup += 1 } else { counts.nodup += 1 }
        }
        counts
    }

    fn add(&mut self, claim: Claim, counts: Counts) {
        let row = self.tables.entry(claim).or_default();
        row.dup += counts.dup;
        row.nodup += counts.nodup;
    }

    fn learn(&mut self, url: &str, text: &str) {
        let page = Model::page(url, text);
        let q = &page.query;
        let mut found = vec![(Claim::Path { path: page.path.clone() }, self.compare(&page, |_| true))];
        let mut note = |claims: &[Claim], counts: Counts| {
            if counts != Counts::default() {
                found.extend(claims.iter().map(|claim| (claim.clone(), counts)));
            }
        };
        let params: BTreeSet<String> = q.keys().cloned().chain(self.params(&page.path)).collect();
        for p in &params {
            let rest = without(q, p);
            let counts = self.compare(&page, |other| without(other, p) == rest);
            note(&param_claims(&page.path, rest.clone(), p), counts);
            match q.get(p) {
                Some(value) => {
                    note(&value_claims(&page.path, p, value), self.compare(&page, |other| *other == rest));
                }
                None => {
                    for value in self.values(&page.path, p) {
                        let mut with = q.clone();
                        with.insert(p.clone(), value.clone());
                        note(
                            &value_claims(&page.path, p, &value),
                            self.compare(&page, |other| *other == with),
                        );
                    }
                }
            }
        }
        for (claim, counts) in found {
            self.add(claim, counts);
        }
        self.pages.retain(|other| other.identity != page.identity);
        self.pages.push(page);
    }

    fn probability(&self, url: &str) -> f64 {
        let page = Model::page(url, "");
        let (path, q) = (&page.path, &page.query);
        let pages: Vec<_> = self.pages.iter().filter(|other| other.path == *path).collect();
        let mut claims: Vec<Claim> = Vec::new();
        if !pages.is_empty() {
            claims.push(Claim::Path { path: path.clone() });
        }
        for (p, value) in q {
            let rest = without(q, p);
            let changed = pages.iter().any(|o| o.query.contains_key(p) && without(&o.query, p) == rest);
            let removed = pages.iter().any(|o| o.query == rest);
            if changed || removed {
                claims.extend(param_claims(path, rest, p));
            }
            if removed {
                claims.extend(value_claims(path, p, value));
            }
        }
        for p in self.params(path).iter().filter(|p| !q.contains_key(*p)) {
            if pages.iter().any(|o| o.query.contains_key(p) && without(&o.query, p) == *q) {
                claims.extend(param_claims(path, q.clone(), p));
                for value in self.values(path, p) {
                    claims.extend(value_claims(path, p, &value));
                }
            }
        }
        let rows = claims.iter().filter_map(|claim| self.tables.get(claim));
        rows.map(|counts| counts.probability()).reduce(f64::max).unwrap_or(0.0)
    }
}

/// Addresses of few paths, parameters and values, so that they coincide, in odd forms too.
fn random_url(rng: &mut Xoshiro256PlusPlus) -> String {
    let scheme = ["http", "http", "https"][rng.random_range(0..3)];
    let path = ["a", "b", "c/d"][rng.random_range(0..3)];
    let mut query = Vec::new();
    for name in ["p", "q", "r", "=", "%C3%A9"] {
        if rng.random_range(0..3) == 0 {
            let value = ["1", "2", "x+y", "", "%26"][rng.random_range(0..5)];
            query.push(format!("{name}={value}"));
        }
    }
    if rng.random_range(0..10) == 0 {
        query.push("p=3".to_owned());
    }
    let fragment = ["", "", "", "#f"][rng.random_range(0..4)];
    format!("{scheme}://Host{}.example/{path}?{}{fragment}", rng.random_range(0..2), query.join("&"))
}

fn random_text(rng: &mut Xoshiro256PlusPlus) -> String {
    match rng.random_range(0..6) {
        0 => String::new(),
        number => (0..40).map(|line| format!("line {line} of text {number}\n")).collect(),
    }
}

fn assert_tables(predictor: &DupePredictor, tables: &BTreeMap<Claim, Counts>, at: &str) {
    for table in Table::ALL {
        let expected: Vec<(&Claim, Counts)> = tables
            .iter()
            .filter(|(claim, counts)| claim.table() == table && counts.total() > 0)
            .map(|(claim, counts)| (claim, *counts))
            .collect();
        let rows = predictor.rows(table);
        let found: Vec<_> = rows.iter().map(|row| (&row.claim, row.counts)).collect();
        assert_eq!(found, expected, "{at}: {table}");
        let totals = predictor.totals(table);
        assert_eq!(totals.rows, rows.len(), "{at}: {table}");
        assert_eq!(totals.counts.dup, rows.iter().map(|row| row.counts.dup).sum::<u64>(), "{at}: {table}");
    }
}

#[test]
fn tables_and_answers_are_those_of_a_naive_model() {
    for seed in 0x5eed_0160..0x5eed_0166 {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut model = Model::default();
        let mut predictor = DupePredictor::default();
        let mut answers = 0;
        for step in 0..250 {
            let at = format!("seed {seed:#x}, step {step}");
            if rng.random_range(0..3) == 0 {
                let url = random_url(&mut rng);
                let (found, expected) = (predictor.estimate(&url), model.probability(&url));
                assert!((found.probability - expected).abs() < 1e-12, "{at}, {url}: {found:?}, {expected}");
                assert_eq!(found.probability, predictor.duplicate_probability(&url), "{at}");
                for row in &found.best {
                    assert_eq!(model.tables[&row.claim], row.counts, "{at}, {url}");
                    assert_eq!(row.counts.probability(), found.probability, "{at}, {url}");
                }
                answers += usize::from(expected > 0.0);
            } else {
                let (url, text) = (random_url(&mut rng), random_text(&mut rng));
                model.learn(&url, &text);
                let learned = predictor.update_model(&url, &text);
                assert!((learned.page as usize) < predictor.pages(), "{at}");
                assert_eq!(predictor.pages(), model.pages.len(), "{at}");
            }
            if step % 50 == 49 {
                assert_tables(&predictor, &model.tables, &at);
            }
        }
        assert!(answers > 10, "seed {seed:#x}: {answers} answers say little");
    }
}

#[cfg(feature = "lsh-datasketch")]
#[test]
fn another_index_changes_no_answer() {
    use huntsman_detect::lsh::DatasketchIndex;

    let mut rng = Xoshiro256PlusPlus::seed_from_u64(0x5eed_0168);
    let mut packed = DupePredictor::default();
    let mut other = DupePredictor::default().with_index(Box::new(DatasketchIndex::new(0.9).unwrap()));
    for step in 0..300 {
        if step == 200 {
            // Moves the learned pages into a new index.
            other = other.with_index(Box::new(DatasketchIndex::new(0.9).unwrap()));
        }
        let (url, text) = (random_url(&mut rng), random_text(&mut rng));
        assert_eq!(packed.estimate(&url), other.estimate(&url), "step {step}");
        assert_eq!(packed.update_model(&url, &text), other.update_model(&url, &text), "step {step}");
    }
    for table in Table::ALL {
        assert_eq!(packed.rows(table), other.rows(table));
    }
}

/// An index that finds no candidates, so that equal pages count as neither duplicates nor different.
#[derive(Debug)]
struct Blind(usize);

impl LshIndex for Blind {
    fn params(&self) -> LshParams {
        LshParams { b: 5, r: 25 }
    }

    fn insert(&mut self, _: u32, _: &Signature) {
        self.0 += 1;
    }

    fn remove(&mut self, _: u32) -> bool {
        false
    }

    fn candidates_into(&self, _: &Signature, out: &mut Vec<u32>) {
        out.clear();
    }

    fn len(&self) -> usize {
        self.0
    }
}

#[test]
fn more_than_200_pages_are_sampled_and_scaled() {
    let counts = |seed, pages: u32| {
        let settings = PredictorSettings { seed, ..PredictorSettings::default() };
        let mut predictor =
            DupePredictor::new(settings, TooCommon::default()).unwrap().with_index(Box::new(Blind(0)));
        // Half of the pages are equal to the last one.
        for page in 0..pages {
            let text = if page % 2 == 0 { "same".to_owned() } else { format!("other {page}") };
            predictor.update_model(&format!("http://h/?n={page}"), &text);
        }
        let before = predictor.totals(Table::Path).counts;
        predictor.update_model("http://h/?n=last", "same");
        predictor.totals(Table::Path).counts.nodup - before.nodup
    };
    // Up to 200 pages, all are compared.
    assert_eq!(counts(1, 200), 100);
    let found: Vec<u64> = (0..20).map(|seed| counts(seed, 400)).collect();
    // 200 of 400 are drawn without repetition: 200 duplicates are expected, with a standard deviation of 10 after scaling by 2.
    assert!(found.iter().all(|count| count % 2 == 0 && (150..=250).contains(count)), "{found:?}");
    assert!(found.iter().any(|count| *count != found[0]), "{found:?}");
    assert_eq!(counts(3, 400), found[3]);
    let mean = found.iter().sum::<u64>() as f64 / 20.0;
    assert!((mean - 200.0).abs() < 4.0 * 10.0 / 20_f64.sqrt(), "{mean}");
}

#[test]
fn a_page_that_is_fetched_again_is_compared_with_itself() {
    let mut predictor = DupePredictor::default();
    let url = "http://h/a?p=1";
    assert_eq!(predictor.update_model(url, "one").duplicates, 0);
    assert_eq!(predictor.update_model("http://h/other", "one").duplicates, 1);
    let again = predictor.update_model(url, "one");
    assert_eq!((again.page, again.duplicates, predictor.pages()), (0, 2, 2));
    let changed = predictor.update_model(url, "two");
    assert_eq!((changed.page, changed.duplicates, predictor.pages()), (0, 0, 2));
    assert_eq!(predictor.update_model("http://h/b", "two").duplicates, 1);
    let counts = Counts { dup: 1, nodup: 1 };
    for table in [Table::Path, Table::Param, Table::PathParam, Table::PathQueryParam] {
        assert_eq!(predictor.totals(table).counts, counts, "{table}");
    }
    for table in [Table::ParamValue, Table::PathParamValue] {
        assert_eq!(predictor.totals(table).rows, 0, "{table}");
    }
}

#[test]
fn texts_without_what_is_too_common_are_compared() {
    let menu = "home news about\nlogin register help contact\n";
    let sample: Vec<ShingleSet> = (0..20).map(|n| ShingleSet::of(&format!("{menu}text {n}"))).collect();
    let mut predictor = DupePredictor::new(PredictorSettings::default(), TooCommon::among(&sample)).unwrap();
    predictor.update_model("http://h/?n=1", &format!("{menu}one text"));
    predictor.update_model("http://h/?n=2", "one text");
    assert_eq!(predictor.update_model("http://h/?n=3", &format!("{menu}another text")).duplicates, 0);
    assert_eq!(predictor.totals(Table::Path).counts, Counts { dup: 1, nodup: 2 });
    // Two pages whose shingles are all removed are equal.
    predictor.update_model("http://h/e?n=1", menu);
    assert_eq!(predictor.update_model("http://h/e?n=2", "").duplicates, 1);
}

#[test]
fn a_path_with_endless_parameters_makes_few_rows_of_each_page() {
    let mut predictor = DupePredictor::default();
    for number in 0..2_000 {
        predictor.update_model(&format!("http://h/?p{number}={number}"), &format!("text {number}"));
    }
    let before = predictor.totals(Table::PathQueryParam).rows;
    // A blank parameter makes another page with the same query: evidence for all parameters that it lacks.
    for number in 0..10 {
        predictor
            .update_model(&format!("http://h/?p{number}={number}&blank{number}="), &format!("text {number}"));
    }
    let after = predictor.totals(Table::PathQueryParam).rows;
    assert!(after - before <= 10 * 513, "{before}, {after}");
    assert!(after - before > 10 * 400, "{before}, {after}");
    // Parameters beyond the limit still count for pages that have them.
    predictor.update_model("http://h/?p1900=other", "text 1900");
    let rows = predictor.rows(Table::Param);
    let row = rows.iter().find(|row| row.claim == Claim::Param { param: "p1900".to_owned() });
    assert_eq!(row.expect("a row").counts, Counts { dup: 1, nodup: 0 });
}

fn restored<T: serde::Serialize + serde::de::DeserializeOwned>(value: &T) -> T {
    serde_json::from_str(&serde_json::to_string(value).unwrap()).unwrap()
}

#[test]
fn saving_and_restoring_changes_no_answer() {
    for seed in 0x5eed_0170..0x5eed_0174 {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let settings = GateSettings {
            warm_up: 30,
            threshold: 0.3,
            exploration: 0.2,
            seed,
            predictor: PredictorSettings { seed, ..PredictorSettings::default() },
        };
        let mut straight = Gate::new(settings).unwrap();
        let mut interrupted = restored(&straight);
        let mut skipped = 0;
        for step in 0..400 {
            if rng.random_range(0..12) == 0 {
                interrupted = restored(&interrupted);
            }
            let mut url = random_url(&mut rng);
            if rng.random_range(0..2) == 0 {
                // Many pages of one family, so that samples are drawn.
                url = format!("http://host0.example/many?n={}", rng.random_range(0..100_000));
            }
            let decision = straight.decide(&url);
            assert_eq!(decision, interrupted.decide(&url), "seed {seed:#x}, step {step}");
            let text = random_text(&mut rng);
            match decision {
                Decision::Skip { .. } => skipped += 1,
                Decision::Fetch { .. } => {
                    straight.learn(&url, &text);
                    interrupted.learn(&url, &text);
                }
            }
        }
        assert!(skipped > 0, "seed {seed:#x}");
        assert_eq!(straight.settings(), interrupted.settings());
        let (one, two) = (straight.predictor().unwrap(), interrupted.predictor().unwrap());
        for table in Table::ALL {
            assert_eq!(one.rows(table), two.rows(table));
        }
        assert_eq!(serde_json::to_string(&straight).unwrap(), serde_json::to_string(&interrupted).unwrap());
    }
}

#[test]
fn format_1_can_be_read() {
    let saved = include_str!("../data/maybedont-gate-1.json");
    let gate: Gate = serde_json::from_str(saved).unwrap();
    let answer = gate.predictor().unwrap().estimate("http://h.example/t?n=7&sid=x");
    assert_eq!(answer.best[0].to_string(), "`sid` changes nothing on any path: 5 same, 0 different");
    assert_eq!(serde_json::to_string(&gate).unwrap(), saved.trim());
}

#[test]
fn what_no_predictor_saved_is_an_error() {
    let saved: serde_json::Value =
        serde_json::from_str(include_str!("../data/maybedont-gate-1.json")).unwrap();
    let refused = |pointer: &str, value: serde_json::Value, message: &str| {
        let mut damaged = saved.clone();
        *damaged.pointer_mut(pointer).unwrap_or_else(|| panic!("no {pointer}")) = value;
        let error = serde_json::from_value::<Gate>(damaged).unwrap_err().to_string();
        assert!(error.contains(message), "{pointer}: {error}");
    };
    use serde_json::json;
    refused("/format", json!(2), "the gate was saved in format 2, this version reads format 1");
    refused("/predictor/format", json!(0), "the predictor was saved in format 0");
    refused("/queue", json!([]), "either a queue or a predictor");
    refused("/predictor", json!(null), "either a queue or a predictor");
    refused("/settings/exploration", json!(7), "exploration: 7 is not within 0 to 1");
    refused("/predictor/settings/jaccard_threshold", json!(7), "jaccard_threshold");
    refused("/predictor/symbols/1", saved["predictor"]["symbols"][0].clone(), "a name is twice");
    refused("/predictor/pages/0/path", json!(4_294_967_295_u32), "there is no name 4294967295");
    refused("/predictor/pages/1/query", json!([[2, 1], [1, 1]]), "not sorted");
    refused("/predictor/pages/1/query", json!([[1, 77_777]]), "there is no name 77777");
    refused(
        "/predictor/pages/1/identity",
        saved["predictor"]["pages"][0]["identity"].clone(),
        "a page is twice",
    );
    refused("/predictor/pages/1/signature", json!("00"), "a signature has 1024 digits");
    refused("/predictor/pages/1/signature", json!("x".repeat(1024)), "a signature is hexadecimal");
    refused("/predictor/pages/1/signature", json!("é".repeat(512)), "a signature is hexadecimal");
    refused("/predictor/param/0/0", json!(99_999), "there is no name 99999");
    refused("/predictor/paths", json!([]), "the paths of the saved predictor are not those of its pages");
    refused("/predictor/paths/0/query_param/0/0", json!([[99_999, 0]]), "there is no name 99999");
}

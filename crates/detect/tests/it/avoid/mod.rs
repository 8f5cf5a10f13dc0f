//! Tests of what the predictor skips and loses, on requests of generated sites with 16 in flight.

mod contents;
mod evidence;
mod explained;
mod run;

use huntsman_detect::avoid::Options;
use huntsman_detect::avoid::evaluation::{Case, Order, Outcome, Recording, Replay, Simulation, Truth, View};
use huntsman_detect::maybedont::GateSettings;

/// The seeds are printed with the results, so that a failure can be repeated.
const SEEDS: [u64; 3] = [1, 2, 3];

fn each(case: Case, judge: impl Fn(&Outcome)) {
    each_in_flight(case, 16, judge);
}

fn each_in_flight(case: Case, in_flight: usize, judge: impl Fn(&Outcome)) {
    for seed in SEEDS {
        let options = Options { seed, ..Options::default() };
        let outcome = Simulation::in_flight(in_flight).with_default(&case.requests(seed), options);
        println!("{} (seed {seed}, {in_flight} in flight): {outcome:?}", case.name());
        judge(&outcome);
    }
}

fn loses_nothing(outcome: &Outcome) {
    assert!(outcome.lost_share() <= 0.005, "{outcome:?}");
}

fn finds(recall: f64) -> impl Fn(&Outcome) {
    move |outcome| {
        loses_nothing(outcome);
        assert!(outcome.recall().is_some_and(|found| found >= recall), "{outcome:?}: {recall} expected");
    }
}

#[test]
fn a_forum_in_any_order() {
    each(Case::ForumRandom, finds(0.75));
    each(Case::ForumAdjacent, finds(0.75));
    each_in_flight(Case::ForumAdjacent, 0, finds(0.75));
}

#[test]
fn session_ids_in_the_path() {
    each(Case::PathSessions, finds(0.6));
}

#[test]
fn print_views_other_hosts_and_slashes() {
    each(Case::Copies, finds(0.6));
}

#[test]
fn tracking_parameters_that_change_together() {
    each(Case::Tracking, finds(0.6));
}

#[test]
fn a_parameter_that_matters_on_one_path_only() {
    each(Case::DecisivePath, finds(0.6));
}

#[test]
fn hosts_that_disagree_about_a_parameter() {
    each(Case::TwoHosts, loses_nothing);
    each(Case::SisterHosts, loses_nothing);
}

#[test]
fn a_site_that_changes() {
    each(Case::SiteChange, loses_nothing);
}

#[test]
fn a_wall_at_the_beginning_and_in_the_middle() {
    each(Case::LoginWall, loses_nothing);
    each(Case::WallInTheMiddle, loses_nothing);
}

#[test]
fn a_beginning_of_copies() {
    each(Case::WarmUpCopies, loses_nothing);
}

#[test]
fn a_site_without_copies() {
    each(Case::AllDifferent, |outcome| {
        assert_eq!((outcome.lost, outcome.skipped, outcome.recall()), (0, 0, None), "{outcome:?}");
    });
}

#[test]
fn eight_pages_behind_endless_sessions_cost_less_than_700_requests() {
    each(Case::EndlessSessions, |outcome| {
        loses_nothing(outcome);
        assert!(outcome.fetched <= 700, "{outcome:?}");
    });
}

#[test]
fn log_in_addresses_that_carry_the_way_back() {
    each(Case::LoginReturn, finds(0.9));
    each_in_flight(Case::LoginReturn, 0, finds(0.9));
}

#[test]
fn lists_in_another_order_are_all_fetched() {
    each(Case::SortSegment, |outcome| {
        assert_eq!((outcome.lost, outcome.skipped), (0, 0), "nothing tells which are the same: {outcome:?}");
    });
}

/// One page in twelve is rewritten in each version, so that rules which hold for eleven of twelve pages must be told from those that always
/// hold. A rule that skips with probability 0.98 may lose one content in fifty.
#[test]
fn versions_of_a_manual_lose_no_more_than_the_threshold_allows() {
    each(Case::ManualVersions, |outcome| {
        assert!(outcome.lost_share() <= 0.02, "{outcome:?}");
        assert!(outcome.recall().is_some_and(|found| found >= 0.2), "{outcome:?}");
    });
}

#[test]
fn facets_that_select_and_sorting_that_does_not() {
    each(Case::Facets, finds(0.8));
}

#[test]
fn twelve_filters_over_one_list_cost_less_than_700_requests() {
    for case in [Case::FiltersIdle, Case::FiltersOne] {
        for in_flight in [0, 16] {
            each_in_flight(case, in_flight, |outcome| {
                assert_eq!(outcome.lost, 0, "{outcome:?}");
                assert!(outcome.fetched < 700, "{outcome:?}");
            });
        }
    }
}

#[test]
fn spellings_short_texts_and_revisions() {
    each(Case::Spellings, finds(0.8));
    each(Case::ShortTexts, finds(0.85));
    each(Case::Revisions, |outcome| {
        assert!(outcome.lost <= 2 && outcome.recall().is_some_and(|found| found > 0.65), "{outcome:?}");
    });
}

#[test]
fn a_number_that_matters_at_one_end_only_loses_nothing() {
    for in_flight in [0, 1, 4, 16] {
        each_in_flight(Case::OneEnd, in_flight, |outcome| {
            loses_nothing(outcome);
            assert!(outcome.recall().is_some_and(|found| found > 0.25), "{outcome:?}");
        });
    }
}

/// Where the reference saves more, it loses contents for that.
fn no_case_is_worse_than_with_the_reference(in_flight: usize) {
    for case in Case::ALL {
        let requests = case.requests(1);
        let simulation = Simulation::in_flight(in_flight);
        let ours = simulation.with_default(&requests, Options { seed: 1, ..Options::default() });
        let settings = GateSettings { seed: 1, ..GateSettings::default() };
        let reference = simulation.with_reference(&requests, settings).expect("its own settings");
        let (Some(found), Some(theirs)) = (ours.recall(), reference.recall()) else { continue };
        let name = case.name();
        println!("{name}: {found:.3}, reference {theirs:.3} with {} lost", reference.lost);
        // The site that changes: the reference holds on to a rule that was contradicted.
        let may_be_less = reference.lost_share() > 0.005 || case == Case::SiteChange;
        assert!(found >= theirs - 0.03 || may_be_less, "{name}: {found:.3} < {theirs:.3}");
    }
}

#[test]
fn one_request_at_a_time_no_case_is_worse_than_with_the_reference() {
    no_case_is_worse_than_with_the_reference(0);
}

#[test]
fn with_sixteen_in_flight_no_case_is_worse_than_with_the_reference() {
    no_case_is_worse_than_with_the_reference(16);
}

#[test]
fn the_interval_of_the_estimated_loss_contains_the_truth() {
    let mut runs = 0;
    let mut contained = 0;
    for seed in 0..100 {
        let options = Options { seed, ..Options::default() };
        let outcome = Simulation::in_flight(4).with_default(&Case::ManualVersions.requests(seed), options);
        let Some((_, most)) = outcome.estimated_loss else { continue };
        runs += 1;
        contained += u32::from(outcome.lost as f64 <= most * outcome.skipped as f64);
    }
    println!("{contained} of {runs}");
    assert!(runs >= 90 && contained * 100 >= 90 * runs, "{contained} of {runs}");
}

/// Checks that the reference has the weaknesses of the original, so that a comparison with it is meaningful.
#[test]
fn the_reference_finds_and_loses_what_maybedont_does() {
    let outcome = |case: Case, in_flight: usize| {
        let settings = GateSettings { seed: 1, ..GateSettings::default() };
        let simulation = Simulation::in_flight(in_flight);
        let outcome = simulation.with_reference(&case.requests(1), settings).expect("its own settings");
        println!("{} (seed 1, {in_flight} in flight): {outcome:?}", case.name());
        outcome
    };
    let recall = |case, in_flight| outcome(case, in_flight).recall().expect("there are copies");
    assert!(recall(Case::ForumAdjacent, 0) > 0.4);
    assert!(recall(Case::ForumAdjacent, 16) < 0.15, "what is in flight is not known");
    for case in [Case::PathSessions, Case::Tracking] {
        assert_eq!(recall(case, 0), 0.0, "{case:?}: one parameter at a time");
    }
    for case in [Case::LoginWall, Case::WarmUpCopies] {
        assert!(outcome(case, 0).lost > 0, "{case:?}");
    }
}

/// A recorded forum: a list of topics, and each topic with and without a session.
fn recorded_forum(topics: usize) -> (String, String) {
    let page = |url: &str, body: &str| {
        format!("{{\"url\":\"http://h{url}\",\"status\":200,\"ctype\":\"text/html\",\"body\":\"{body}\"}}\n")
    };
    // Copies are far from each other: MaybeDont's rules say nothing of a page while the one like it is on its way.
    let plain: String = (0..topics).map(|n| format!("<a href='/t?n={n}'>a</a> ")).collect();
    let copies: String = (0..topics).map(|n| format!("<a href='/t?n={n}&sid=s{n}'>b</a> ")).collect();
    let list = plain + &copies;
    let mut crawl = page("/", &list);
    let mut truth = "0\t0\tpage\t/\n".to_owned();
    for n in 0..topics {
        let words: Vec<String> =
            (0..80).map(|word| format!("w{}", (n * 7_919 + word * 104_729) % 99_991)).collect();
        for url in [format!("/t?n={n}"), format!("/t?n={n}&sid=s{n}")] {
            crawl += &page(&url, &format!("<p>{}</p>", words.join(" ")));
            truth += &format!("{0}\t{0}\tpage\t{url}\n", n + 1);
        }
    }
    (crawl, truth)
}

#[test]
fn both_models_crawl_a_recorded_site_in_any_order() {
    let (crawl, truth) = recorded_forum(400);
    let truth = Truth::read(truth.as_bytes()).unwrap();
    let recording = Recording::read_with_texts(crawl.as_bytes(), truth).unwrap();
    for order in Order::ALL {
        let replay = Replay { order, ..Replay::with(Options::default()) };
        for (model, run) in
            [("default", replay.run(&recording)), ("reference", replay.run_reference(&recording))]
        {
            let score = run.score.view(View::Area);
            assert!(score.saved() > 0.1 && score.saved() < score.possible(), "{order:?}, {model}: {score:?}");
            assert_eq!(run.requests.len() + run.skipped, 801, "{order:?}");
            assert_eq!(run.lost.len(), score.lost(), "{order:?}");
            assert!(run.pages_learnt == run.requests.len() && run.explored > 0, "{order:?}");
        }
    }
}

#[test]
fn an_outcome_adds_up() {
    for case in [Case::PathSessions, Case::WallInTheMiddle] {
        let outcome = Simulation::in_flight(4).with_default(&case.requests(1), Options::default());
        assert_eq!(outcome.fetched + outcome.skipped, outcome.requests, "{outcome:?}");
        assert!(outcome.explored > 0 || outcome.skipped == 0, "{outcome:?}");
        assert_eq!(outcome.learning.calls, outcome.fetched, "{outcome:?}");
        assert!(outcome.asking.calls >= outcome.requests, "{outcome:?}");
    }
}

#[test]
fn a_restart_changes_no_answer() {
    for seed in SEEDS {
        let requests = Case::ForumRandom.requests(seed);
        let whole = run::decisions(&requests, seed, None);
        let cut = run::decisions(&requests, seed, Some(seed as usize * 400 + 57));
        assert_eq!(whole.len(), cut.len());
        for (at, (one, other)) in whole.iter().zip(&cut).enumerate() {
            assert_eq!(one, other, "seed {seed}, request {at}");
        }
    }
}

#[test]
fn what_is_stored_is_checked_and_damage_is_borne() {
    use huntsman_detect::avoid::{Options, Predictor};
    let restored = |batch: &[u8]| Predictor::restored(Options::default(), [batch]);
    let mut requests = Case::PathSessions.requests(1);
    requests.truncate(150);
    let batch = run::journal(&requests);
    assert!(restored(&batch).is_ok());
    assert!(restored(&batch[..batch.len() - 5]).is_err(), "its end is missing");
    assert!(restored(&[]).is_err());
    assert!(restored(&[&[9], &batch[1..]].concat()).is_err(), "another version");
    // The store verifies checksums; even so, damage that passes them must not cause a panic.
    for at in (1..batch.len()).step_by(batch.len() / 40) {
        let mut damaged = batch.clone();
        damaged[at] ^= 0xFF;
        let _ = restored(&damaged);
    }
}

#[test]
fn many_large_sites_do_not_fill_the_memory() {
    use huntsman_detect::avoid::{Options, PageText, Predictor};
    use url::Url;
    let text = |n: usize| (0..500).map(|word| format!("w{} ", word * 31 + n * 7)).collect::<String>();
    let texts: Vec<PageText> = (0..20).map(|n| PageText::of([(1, text(n).as_str())])).collect();
    let most = 1 << 20;
    let mut predictor = Predictor::new(Options { learning_bytes: most, ..Options::default() });
    for site in 0..60 {
        let host = format!("s{site}.example");
        for (n, text) in texts.iter().enumerate() {
            let url = Url::parse(&format!("http://{host}/p?id={n}")).expect("a URL");
            predictor.discover(&host, &url, None);
            predictor.learn(&host, &url, text.clone());
            assert!(predictor.relearning_bytes() <= most);
        }
    }
    assert!(predictor.relearning_bytes() > most / 2, "no more is given up than has to be");
    assert_eq!(predictor.totals().learnt, 1_200);
}

//! What the predictor skips and what it loses, over requests of made-up sites with 16 in flight.
//!
//! The cases are those on which MaybeDont was measured: half of them are sites on which it finds nothing, the others sites
//! on which it loses pages.

mod cases;
mod run;

use cases::Case;
use run::{Outcome, crawl};

/// Seeds are printed with what came of them, so a failure can be repeated.
const SEEDS: [u64; 3] = [1, 2, 3];

fn each(make: impl Fn(u64) -> Case, judge: impl Fn(&Outcome)) {
    for seed in SEEDS {
        let case = make(seed);
        let outcome = crawl(&case, 16, seed);
        println!("{} (seed {seed}): {outcome:?}", case.name);
        judge(&outcome);
    }
}

fn loses_nothing(outcome: &Outcome) {
    assert!(outcome.lost <= 0.005, "{outcome:?}");
}

fn finds(recall: f64) -> impl Fn(&Outcome) {
    move |outcome| {
        loses_nothing(outcome);
        assert!(outcome.recall >= recall, "{outcome:?}: {recall} expected");
    }
}

#[test]
fn a_forum_in_any_order() {
    each(|seed| cases::forum(seed, false), finds(0.75));
    each(|seed| cases::forum(seed, true), finds(0.75));
}

#[test]
fn session_ids_in_the_path() {
    each(cases::path_sessions, finds(0.6));
}

#[test]
fn print_views_other_hosts_and_slashes() {
    each(cases::print_www_slash, finds(0.6));
}

#[test]
fn tracking_parameters_that_change_together() {
    each(cases::tracking, finds(0.6));
}

#[test]
fn a_parameter_that_matters_on_one_path_only() {
    each(cases::decisive_on_one_list, finds(0.6));
}

#[test]
fn hosts_that_disagree_about_a_parameter() {
    each(cases::two_hosts, loses_nothing);
}

#[test]
fn a_site_that_changes() {
    each(cases::site_change, loses_nothing);
}

#[test]
fn a_wall_at_the_beginning_and_in_the_middle() {
    each(cases::login_wall, loses_nothing);
    each(cases::wall_in_the_middle, loses_nothing);
}

#[test]
fn a_beginning_of_copies() {
    each(cases::warm_up_of_copies, loses_nothing);
}

#[test]
fn a_site_without_copies() {
    each(cases::all_different, |outcome| {
        assert_eq!((outcome.lost, outcome.skipped), (0.0, 0), "{outcome:?}")
    });
}

#[test]
fn eight_pages_behind_endless_sessions_cost_less_than_700_requests() {
    each(cases::endless_sessions, |outcome| {
        loses_nothing(outcome);
        assert!(outcome.fetched <= 700, "{outcome:?}");
    });
}

#[test]
fn a_restart_changes_no_answer() {
    for seed in SEEDS {
        let case = cases::forum(seed, false);
        let whole = run::decisions(&case, seed, None);
        let cut = run::decisions(&case, seed, Some(seed as usize * 400 + 57));
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
    let mut case = cases::path_sessions(1);
    case.requests.truncate(150);
    let batch = run::journal(&case);
    assert!(restored(&batch).is_ok());
    assert!(restored(&batch[..batch.len() - 5]).is_err(), "its end is missing");
    assert!(restored(&[]).is_err());
    assert!(restored(&[&[9], &batch[1..]].concat()).is_err(), "another version");
    // Checksums are the store's: what passes them may still not bring down the process.
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
            assert!(predictor.bytes_to_learn_from() <= most);
        }
    }
    assert!(predictor.bytes_to_learn_from() > most / 2, "no more is given up than has to be");
    assert_eq!(predictor.totals().learnt, 1_200);
}

//! Tests of the pool: examples, and a naive model over random steps in virtual time.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::*;

const RULES: PoolRules = PoolRules {
    size: 3,
    max_named: 2,
    max_uses: 5,
    max_age: Duration::from_secs(100),
    max_errors: 3.0,
    header_sets: 2,
    needs_setup: false,
};

fn at(seconds: u64) -> Timestamp {
    Timestamp(1_000_000 * (1_000 + seconds))
}

fn used(grant: Grant) -> Loan {
    match grant {
        Grant::Use(loan) => loan,
        other => panic!("{other:?}"),
    }
}

/// Proxies by name, of which some are out.
struct Fixed<'a>(&'a [&'a str], RefCell<BTreeSet<String>>);

impl Proxies for Fixed<'_> {
    fn has(&self, name: &str) -> bool {
        self.0.contains(&name)
    }

    fn is_usable(&self, name: &str) -> bool {
        !self.1.borrow().contains(name)
    }

    fn choose(&self, sessions_of: &dyn Fn(&str) -> usize) -> String {
        let works = |name: &&&str| self.is_usable(name);
        let among: Vec<&&str> = match self.0.iter().any(|name| works(&name)) {
            true => self.0.iter().filter(works).collect(),
            false => self.0.iter().collect(),
        };
        (*among.into_iter().min_by_key(|name| sessions_of(name)).unwrap()).to_owned()
    }
}

#[test]
fn each_host_goes_through_the_sessions_in_turn() {
    let mut pool = Pool::new(PoolRules { max_uses: 0, ..RULES });
    (0..3).for_each(|_| drop(used(pool.grant(None, "a", at(0), None))));
    for host in ["a", "b", "c"] {
        let turn: Vec<String> = (0..6).map(|_| used(pool.grant(None, host, at(0), None)).name).collect();
        assert_eq!(turn.iter().collect::<BTreeSet<_>>().len(), 3, "{turn:?}");
        assert_eq!(turn[..3], turn[3..], "{host}");
    }
    // Two hosts in alternation would see one session each if the turns were not their own.
    let of_a: BTreeSet<String> = (0..6)
        .map(|_| {
            used(pool.grant(None, "b", at(0), None));
            used(pool.grant(None, "a", at(0), None)).name
        })
        .collect();
    assert_eq!(of_a.len(), 3);
}

#[test]
fn a_session_that_was_asked_for_is_given_while_it_lasts() {
    let mut pool = Pool::new(RULES);
    let first = used(pool.grant(None, "a", at(0), None)).name;
    for _ in 0..4 {
        assert_eq!(used(pool.grant(Some(&first), "a", at(0), None)).name, first);
    }
    let next = used(pool.grant(Some(&first), "a", at(0), None)).name;
    assert_ne!(next, first, "it has had its five uses");
    assert_eq!(pool.take_changes()[1], Change::Retired(first, Retired::Uses));
    assert_ne!(used(pool.grant(Some("#99"), "a", at(0), None)).name, "#99", "one that never was");
    let old = used(pool.grant(Some(&next), "a", at(100), None)).name;
    assert_ne!(old, next, "it is too old");
}

#[test]
fn errors_end_a_session_and_good_responses_forgive_half_of_one() {
    let mut pool = Pool::new(RULES);
    let name = used(pool.grant(None, "a", at(0), None)).name;
    let told: Vec<bool> = "bbggbgb"
        .chars()
        .map(|what| match what {
            'b' => pool.bad(&name),
            _ => {
                pool.good(&name);
                false
            }
        })
        .collect();
    assert!(told.iter().all(|ended| !ended), "2 - 1 + 1 - 0.5 + 1 = 2.5");
    assert!(pool.bad(&name) && !pool.has(&name) && !pool.bad(&name));
    let mut lenient = Pool::new(PoolRules { max_errors: 0.0, ..RULES });
    let name = used(lenient.grant(None, "a", at(0), None)).name;
    assert!((0..100).all(|_| !lenient.bad(&name)), "0 is no limit");
}

#[test]
fn a_session_is_set_up_by_one_request_while_others_wait() {
    let mut pool = Pool::new(PoolRules { size: 1, needs_setup: true, ..RULES });
    let Grant::SetUp(loan) = pool.grant(None, "a", at(0), None) else { panic!() };
    assert_eq!(pool.grant(None, "a", at(0), None), Grant::Wait);
    assert_eq!(pool.grant(Some(&loan.name), "a", at(0), None), Grant::Wait);
    pool.set_up(&loan.name, SetupEnd::Interrupted);
    assert_eq!(pool.grant(None, "a", at(0), None), Grant::SetUp(loan.clone()), "another request does it");
    pool.set_up(&loan.name, SetupEnd::Ready);
    assert_eq!(used(pool.grant(None, "a", at(0), None)), loan);
    let Grant::SetUp(ann) = pool.grant(Some("ann"), "a", at(0), None) else { panic!() };
    pool.set_up(&ann.name, SetupEnd::Failed);
    assert!(!pool.has("ann"));
}

#[test]
fn sessions_share_the_proxies_evenly_and_keep_theirs() {
    let proxies = Fixed(&["p1", "p2"], RefCell::default());
    let mut pool = Pool::new(PoolRules { size: 4, max_uses: 0, ..RULES });
    let mut of: BTreeMap<String, String> = BTreeMap::new();
    for _ in 0..20 {
        let loan = used(pool.grant(None, "a", at(0), Some(&proxies)));
        let proxy = loan.proxy.unwrap();
        assert_eq!(*of.entry(loan.name).or_insert_with(|| proxy.clone()), proxy);
    }
    assert_eq!(of.values().filter(|proxy| *proxy == "p1").count(), 2);
    proxies.1.borrow_mut().insert("p1".to_owned());
    let meanwhile: BTreeSet<String> =
        (0..8).map(|_| used(pool.grant(None, "a", at(0), Some(&proxies))).proxy.unwrap()).collect();
    assert_eq!(meanwhile, BTreeSet::from(["p2".to_owned()]), "sessions whose proxy is out are passed over");
    proxies.1.borrow_mut().insert("p2".to_owned());
    let stranded = used(pool.grant(None, "a", at(0), Some(&proxies)));
    assert!(of.contains_key(&stranded.name), "no session is thrown away if no proxy works");
    proxies.1.borrow_mut().clear();
    let back: BTreeSet<String> =
        (0..8).map(|_| used(pool.grant(None, "a", at(0), Some(&proxies))).name).collect();
    assert_eq!(back, of.into_keys().collect::<BTreeSet<_>>(), "all are used again");
}

#[test]
fn a_job_with_other_proxies_or_less_room_goes_on() {
    let before = Fixed(&["p1"], RefCell::default());
    let mut pool = Pool::new(RULES);
    (0..3).for_each(|_| drop(used(pool.grant(None, "a", at(0), Some(&before)))));
    used(pool.grant(Some("ann"), "a", at(0), Some(&before)));
    let saved = serde_json::to_vec(&pool.saved()).unwrap();
    let mut smaller = Pool::new(PoolRules { size: 2, header_sets: 1, ..RULES });
    assert_eq!(smaller.resume(serde_json::from_slice(&saved).unwrap()), ["#3"]);
    let after = Fixed(&["p2"], RefCell::default());
    let loan = used(smaller.grant(Some("#1"), "a", at(1), Some(&after)));
    assert_eq!((loan.name.as_str(), loan.proxy.as_deref(), loan.headers), ("#1", Some("p2"), 0));
    assert_eq!(used(smaller.grant(Some("ann"), "a", at(1), Some(&after))).name, "ann");
    smaller.retire("#1", Retired::Asked);
    let new = used(smaller.grant(None, "a", at(1), Some(&after))).name;
    assert_eq!(new, "#5", "numbers are not given twice");
}

/// What a person would write down of one session.
#[derive(Clone, Debug, Default, PartialEq)]
struct Note {
    created: u64,
    uses: u64,
    errors: f64,
}

/// Applies what the pool said has happened to the notes of a naive model, and checks that it had a reason.
fn follow(pool: &mut Pool, notes: &mut BTreeMap<String, Note>, allowed: &[Retired], now: u64, seed: u64) {
    for change in pool.take_changes() {
        if let Change::Retired(name, why) = change {
            let note = notes.remove(&name).unwrap_or_else(|| panic!("seed {seed}: {name} was retired twice"));
            let is_right = match why {
                Retired::Uses => note.uses >= 5,
                Retired::Age => now - note.created >= 100,
                Retired::Errors => note.errors >= 3.0,
                Retired::Evicted => name.starts_with('n'),
                _ => false,
            };
            assert!(is_right && allowed.contains(&why), "seed {seed}: {name} {why:?} {note:?}");
        }
    }
}

#[test]
fn sessions_keep_their_limits_over_random_steps() {
    let seed =
        std::env::var("HUNTSMAN_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(rand::random);
    println!("HUNTSMAN_SEED={seed}");
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    for _ in 0..200 {
        let mut pool = Pool::new(RULES);
        let mut notes: BTreeMap<String, Note> = BTreeMap::new();
        let (mut now, mut newest) = (0, 0_u64);
        for _ in 0..300 {
            now += random.random_range(0..8);
            let some =
                notes.keys().nth(random.random_range(0..notes.len().max(1))).cloned().unwrap_or_default();
            match random.random_range(0..6) {
                0 => {
                    if let Some(note) = notes.get_mut(&some) {
                        note.errors = (note.errors - 0.5).max(0.0);
                    }
                    pool.good(&some);
                }
                1 => {
                    if let Some(note) = notes.get_mut(&some) {
                        note.errors += 1.0;
                    }
                    pool.bad(&some);
                    follow(&mut pool, &mut notes, &[Retired::Errors], now, seed);
                }
                step => {
                    let wanted = match step {
                        2 => Some(some.clone()).filter(|name| !name.is_empty()),
                        3 => Some(format!("n{}", random.random_range(0..5))),
                        _ => None,
                    };
                    let loan = used(pool.grant(wanted.as_deref(), "host", at(now), None));
                    let allowed = [Retired::Uses, Retired::Age, Retired::Evicted];
                    follow(&mut pool, &mut notes, &allowed, now, seed);
                    let is_new = !notes.contains_key(&loan.name);
                    let note = notes
                        .entry(loan.name.clone())
                        .or_insert_with(|| Note { created: now, ..Note::default() });
                    note.uses += 1;
                    if let Some(number) = loan.name.strip_prefix('#') {
                        assert!(
                            note.uses <= 5 && now - note.created < 100,
                            "seed {seed}: {} {note:?}",
                            loan.name
                        );
                        let number: u64 = number.parse().unwrap();
                        assert!(!is_new || number > newest, "seed {seed}: a number came twice");
                        newest = newest.max(number);
                    } else {
                        assert_eq!(Some(&loan.name), wanted.as_ref(), "seed {seed}");
                    }
                    assert_eq!((loan.proxy, loan.headers < 2), (None, true));
                }
            }
            let pooled = notes.keys().filter(|name| name.starts_with('#')).count();
            assert!(pooled <= 3 && notes.len() - pooled <= 2, "seed {seed}: {notes:?}");
            let mut known: Vec<(String, Note)> = pool
                .members()
                .into_iter()
                .map(|member| {
                    let created = member.created / 1_000_000 - 1_000;
                    (member.name, Note { created, uses: member.uses, errors: member.errors })
                })
                .collect();
            known.sort_by(|a, b| a.0.cmp(&b.0));
            assert_eq!(known, notes.clone().into_iter().collect::<Vec<_>>(), "seed {seed}");
        }
    }
}

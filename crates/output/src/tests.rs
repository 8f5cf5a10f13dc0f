//! Tests of every state of an output directory, and of a kill between any two steps.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use huntsman_crawler::Backend;
use url::Url;

use super::directory::{Step, discarding};
use super::error::Result;
use super::*;

fn seed() -> Url {
    Url::parse("https://example.org/a").unwrap()
}

const STARTED: &str = "2026-11-21T00:00:00Z";

/// Locks a directory for a crawl whose files are created next.
fn make(path: &Path, fresh: bool, store: Backend) -> Result<OutputDir> {
    match Plan::of(path, EarlierRun::of(fresh), Run::Crawl, store)? {
        Plan::Use(plan) => plan.create(&seed(), STARTED.to_owned()),
        Plan::Finished(status) => panic!("{status:?}"),
    }
}

/// Locks a directory for a crawl and begins the run.
fn create(path: &Path, fresh: bool) -> Result<OutputDir> {
    let mut dir = make(path, fresh, Backend::Memory)?;
    dir.begin().unwrap();
    Ok(dir)
}

#[test]
fn names_from_hosts_stay_in_the_working_directory() {
    let name = |url: &str| {
        default_dir(&Url::parse(url).unwrap(), Run::Crawl).into_os_string().into_string().unwrap()
    };
    assert_eq!(name("https://Example.org:8443/x"), "example.org-crawl");
    assert_eq!(name("http://[::1]:80/"), "__1-crawl");
    assert_eq!(name("http://..../"), "-crawl");
    assert!(name(&format!("http://{}/", "a.".repeat(120))).len() <= 206);
}

#[test]
fn looking_makes_nothing_and_discarding_leaves_nothing() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("a/b");
    Plan::of(&path, EarlierRun::Continue, Run::Crawl, Backend::Memory).unwrap();
    assert!(!temp.path().join("a").exists());
    let dir = create(&path, false).unwrap();
    fs::write(dir.file(PAGES), "").unwrap();
    dir.discard();
    assert!(!temp.path().join("a").exists());
}

#[test]
fn discarding_keeps_what_was_there_before() {
    let temp = tempfile::tempdir().unwrap();
    fs::write(temp.path().join("notes.txt"), "mine").unwrap();
    create(temp.path(), false).unwrap().discard();
    assert!(temp.path().join("notes.txt").exists() && !temp.path().join(STATE).exists());
}

#[test]
fn a_finished_crawl_says_so_and_fresh_starts_anew() {
    let temp = tempfile::tempdir().unwrap();
    let mut dir = create(temp.path(), false).unwrap();
    fs::write(dir.file(PAGES), "{}\n").unwrap();
    fs::write(dir.file("notes.txt"), "mine").unwrap();
    dir.finish(State::Finished, "finished", 1, b"{}\n").unwrap();
    drop(dir);
    let Plan::Finished(status) =
        Plan::of(temp.path(), EarlierRun::Continue, Run::Crawl, Backend::Memory).unwrap()
    else {
        panic!()
    };
    assert_eq!((status.pages, status.state), (1, State::Finished));
    let dir = create(temp.path(), true).unwrap();
    assert!(!dir.file(PAGES).exists() && !dir.file(REPORT).exists() && dir.file("notes.txt").exists());
}

#[test]
fn an_interrupted_crawl_in_memory_cannot_go_on() {
    let temp = tempfile::tempdir().unwrap();
    drop(create(temp.path(), false).unwrap());
    let failure = Plan::of(temp.path(), EarlierRun::Continue, Run::Crawl, Backend::Memory).unwrap_err();
    assert!(matches!(failure, Error::QueueLost { .. }), "{failure}");
    assert!(matches!(
        Plan::of(temp.path(), EarlierRun::Delete, Run::Crawl, Backend::Memory),
        Ok(Plan::Use(_))
    ));
}

#[test]
fn a_crawl_that_failed_starts_anew_without_being_asked() {
    let temp = tempfile::tempdir().unwrap();
    create(temp.path(), false).unwrap().finish(State::Failed, "finished", 0, b"{}\n").unwrap();
    assert!(!create(temp.path(), false).unwrap().file(REPORT).exists());
}

#[test]
fn a_second_crawl_refuses_the_directory() {
    let temp = tempfile::tempdir().unwrap();
    let _first = create(temp.path(), false).unwrap();
    for fresh in [false, true] {
        let failure = Plan::of(temp.path(), EarlierRun::of(fresh), Run::Crawl, Backend::Memory).unwrap_err();
        assert!(matches!(failure, Error::InUse { .. }), "{failure}");
    }
}

#[test]
fn files_of_unknown_origin_are_not_overwritten() {
    let temp = tempfile::tempdir().unwrap();
    fs::write(temp.path().join(PAGES), "precious").unwrap();
    assert!(
        Plan::of(temp.path(), EarlierRun::Continue, Run::Crawl, Backend::Memory)
            .unwrap_err()
            .to_string()
            .contains(PAGES)
    );
}

#[test]
fn damaged_state_is_named_and_never_started_over_silently() {
    let temp = tempfile::tempdir().unwrap();
    fs::create_dir(temp.path().join(STATE)).unwrap();
    fs::write(temp.path().join(status::STATUS), "{\"format\":").unwrap();
    let failure = Plan::of(temp.path(), EarlierRun::Continue, Run::Crawl, Backend::Memory).unwrap_err();
    assert!(matches!(failure, Error::Damaged { .. }) && failure.to_string().contains("damaged"), "{failure}");
}

#[test]
fn a_file_in_place_of_a_directory_is_refused() {
    let temp = tempfile::NamedTempFile::new().unwrap();
    assert!(
        Plan::of(temp.path(), EarlierRun::Delete, Run::Crawl, Backend::Memory)
            .unwrap_err()
            .to_string()
            .contains("it is a file")
    );
    let below = Plan::of(&temp.path().join("x"), EarlierRun::Continue, Run::Crawl, Backend::Memory)
        .and_then(|_| create(&temp.path().join("x"), false));
    assert!(below.is_err());
}

/// Everything that a run created, each with some content, and a file that is not part of the run.
const THERE: [&str; 7] =
    [PAGES, DROPS, REPORT, SWEEP, "state/job/format.json", "state/articles/a", "notes.txt"];

/// A directory with a run of a kind in a state, and its files.
fn directory(state: Option<State>, run: Run) -> (tempfile::TempDir, Files) {
    let temp = tempfile::tempdir().unwrap();
    if let Some(state) = state {
        for name in THERE {
            let path = temp.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "old").unwrap();
        }
        let mut status = Status::new(run, &seed(), STARTED.to_owned(), Backend::Redb);
        status.state = state;
        status.write(temp.path()).unwrap();
    }
    let files = files(temp.path());
    (temp, files)
}

type Files = BTreeMap<String, Vec<u8>>;

/// The files of a run, except the status and the lock.
fn files(path: &Path) -> Files {
    let read = |name: &&str| Some(((*name).to_owned(), fs::read(path.join(name)).ok()?));
    THERE.iter().filter(|name| **name != "notes.txt").filter_map(read).collect()
}

/// Checks that a command finds the right state in a directory after a kill, and then does the right thing.
fn assert_goes_on(path: &Path, before: &Files, what: &str) {
    let looked = |run| Plan::of(path, EarlierRun::Continue, run, Backend::Redb);
    let there = files(path);
    for run in [Run::Crawl, Run::Sweep, Run::Demo] {
        match looked(run) {
            // The command would say that nothing is left to do, or continue the run, so all files must be there.
            Ok(Plan::Finished(_)) => assert_eq!(there, *before, "{what}: {run:?}"),
            Ok(Plan::Use(plan)) if plan.steps().is_empty() => assert_eq!(there, *before, "{what}: {run:?}"),
            Ok(Plan::Use(_)) => {}
            Err(failure) => {
                assert!(failure.is_usage(), "{what}: {failure}");
                assert_eq!(there, *before, "{what}: refused, {failure}");
            }
        }
    }
    // The same command with --fresh works, too.
    let dir = make(path, true, Backend::Redb).unwrap();
    assert_eq!(files(path), Files::new(), "{what}");
    drop(dir);
}

const STATES: [Option<State>; 7] = [
    None,
    Some(State::Making),
    Some(State::Clearing),
    Some(State::Running),
    Some(State::Interrupted),
    Some(State::Finished),
    Some(State::Failed),
];

#[test]
fn killed_at_any_step_of_making_or_clearing_the_same_command_goes_on() {
    let mut kills = 0;
    for (state, fresh) in STATES.into_iter().flat_map(|state| [(state, false), (state, true)]) {
        for at in 0.. {
            for torn in [false, true] {
                let (temp, before) = directory(state, Run::Crawl);
                let path = temp.path();
                let Plan::Use(plan) =
                    Plan::of(path, EarlierRun::of(fresh), Run::Crawl, Backend::Redb).unwrap()
                else {
                    continue;
                };
                let steps = plan.steps();
                if at > steps.len() {
                    continue;
                }
                let mut dir = plan.take(Vec::new(), &seed(), STARTED.to_owned()).unwrap();
                for step in &steps[..at] {
                    dir.apply(step.clone()).unwrap();
                }
                drop(dir);
                if torn {
                    fs::write(path.join("state/crawl.json.new"), "{\"form").unwrap();
                }
                kills += 1;
                let what = format!("{state:?}, fresh {fresh}, killed at step {at} of {}", steps.len());
                let again = Plan::of(path, EarlierRun::of(fresh), Run::Crawl, Backend::Redb);
                assert!(matches!(again, Ok(Plan::Use(_))), "{what}: {again:?}");
                assert_goes_on(path, &before, &what);
                assert_eq!(
                    path.join("notes.txt").exists(),
                    state.is_some(),
                    "{what}: what is not ours stays"
                );
            }
            if at > 3 * OWN_FILES.len() {
                break;
            }
        }
    }
    assert!(kills > 200, "{kills}");
}

#[test]
fn killed_before_the_lock_is_taken_the_same_command_starts() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("out");
    let looks =
        || matches!(Plan::of(&path, EarlierRun::Continue, Run::Crawl, Backend::Redb), Ok(Plan::Use(_)));
    assert!(looks());
    fs::create_dir(&path).unwrap();
    assert!(looks());
    fs::create_dir(path.join(STATE)).unwrap();
    assert!(looks());
    fs::write(path.join(LOCK), "").unwrap();
    assert!(looks());
    make(&path, false, Backend::Redb).unwrap();
}

#[test]
fn killed_while_its_files_are_made_a_run_starts_anew_also_if_its_queue_is_in_memory() {
    for store in [Backend::Redb, Backend::Memory] {
        let temp = tempfile::tempdir().unwrap();
        let dir = make(temp.path(), false, store).unwrap();
        fs::create_dir(dir.job()).unwrap();
        fs::write(dir.file(PAGES), "half a").unwrap();
        drop(dir);
        let dir = make(temp.path(), false, store).unwrap();
        assert!(!dir.file(PAGES).exists() && !dir.job().exists());
    }
}

#[test]
fn killed_while_it_is_given_up_a_run_starts_anew() {
    for at in 0..discarding(Path::new("")).count() {
        let (temp, _) = directory(Some(State::Making), Run::Crawl);
        for step in discarding(temp.path()).take(at) {
            let Step::Remove(path) = step else { panic!("it only removes") };
            huntsman_files::remove_any(path).unwrap();
        }
        let dir = make(temp.path(), false, Backend::Redb);
        assert!(dir.is_ok_and(|dir| files(dir.path()).is_empty()), "killed after {at}");
    }
}

#[test]
fn another_kind_of_run_touches_nothing_that_counts() {
    for (state, counts) in [
        (State::Making, false),
        (State::Clearing, false),
        (State::Failed, false),
        (State::Running, true),
        (State::Interrupted, true),
        (State::Finished, true),
    ] {
        for (there, wanted) in [(Run::Sweep, Run::Crawl), (Run::Crawl, Run::Sweep), (Run::Crawl, Run::Demo)] {
            let (temp, before) = directory(Some(state), there);
            match Plan::of(temp.path(), EarlierRun::Continue, wanted, Backend::Redb) {
                Ok(Plan::Use(plan)) => assert!(!counts && !plan.steps().is_empty(), "{state:?} {there:?}"),
                Ok(Plan::Finished(status)) => panic!("{status:?}"),
                Err(failure) => {
                    assert!(counts, "{state:?} {there:?}: {failure}");
                    for word in [there.name(), wanted.name()] {
                        assert!(failure.to_string().contains(word), "{failure}");
                    }
                }
            }
            assert_eq!(files(temp.path()), before);
        }
    }
}

#[test]
fn a_status_of_an_earlier_version_is_read_and_one_of_a_later_version_is_not() {
    let temp = tempfile::tempdir().unwrap();
    fs::create_dir(temp.path().join(STATE)).unwrap();
    let status = |format: u32, state: &str| {
        let text = format!(
            "{{\"format\": {format}, \"version\": \"0.1.0\", \"state\": \"{state}\", \"store\": \"redb\", \
             \"seed_url\": \"https://example.org/\", \"started\": \"{STARTED}\", \"finish_reason\": null, \"pages\": 3}}"
        );
        fs::write(temp.path().join(status::STATUS), text).unwrap();
    };
    let look = |run| Plan::of(temp.path(), EarlierRun::Continue, run, Backend::Redb);
    status(1, "running");
    assert!(matches!(look(Run::Crawl), Ok(Plan::Use(plan)) if plan.steps().is_empty()));
    status(1, "finished");
    assert!(matches!(look(Run::Crawl), Ok(Plan::Finished(_))));
    // The file shows that the run is a sweep; that version does not record how far a sweep came.
    fs::write(temp.path().join(SWEEP), "").unwrap();
    assert!(matches!(look(Run::Sweep), Ok(Plan::Finished(_))));
    status(1, "interrupted");
    let failure = look(Run::Sweep).unwrap_err();
    assert!(failure.to_string().contains("earlier version"), "{failure}");
    status(3, "making");
    let failure = look(Run::Crawl).unwrap_err();
    assert!(failure.to_string().contains("newer version"), "{failure}");
}

#[test]
fn a_directory_that_another_process_used_since_it_was_looked_at_is_refused() {
    let temp = tempfile::tempdir().unwrap();
    let Plan::Use(plan) = Plan::of(temp.path(), EarlierRun::Continue, Run::Crawl, Backend::Redb).unwrap()
    else {
        panic!()
    };
    let mut other = make(temp.path(), false, Backend::Redb).unwrap();
    other.finish(State::Finished, "finished", 1, b"{}\n").unwrap();
    drop(other);
    let failure = plan.create(&seed(), STARTED.to_owned()).unwrap_err();
    assert!(matches!(failure, Error::Changed { .. }), "{failure}");
}

//! The four judges of a scenario: crashes between its system calls, failing calls, and kills.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use huntsman_testkit::crash::{Crash, Effect, Exited, Fault, Loss, Recording, run_bounded, run_with};
use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{RngExt, SeedableRng};

use super::scenario::{Moment, Scenario};

/// A command that takes longer counts as hanging.
const LIMIT: Duration = Duration::from_secs(60);

fn number(name: &str, default: usize) -> usize {
    std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

fn random() -> StdRng {
    let seed = number("HUNTSMAN_CRASH_SEED", rand::random_range(0..1 << 32));
    println!("HUNTSMAN_CRASH_SEED={seed}");
    StdRng::seed_from_u64(seed as u64)
}

/// Collects the failures of many cases and reports them together.
struct Verdict {
    name: &'static str,
    cases: usize,
    wrong: Vec<String>,
}

impl Verdict {
    fn of(name: &'static str) -> Self {
        Self { name, cases: 0, wrong: Vec::new() }
    }

    fn add(&mut self, what: impl FnOnce() -> String, judged: Result<(), String>) {
        self.cases += 1;
        if let Err(why) = judged {
            self.wrong.push(format!("{}\n    {}", what(), why.trim().replace('\n', "\n    ")));
        }
    }

    fn close(self) {
        let Self { name, cases, wrong } = self;
        let told = format!("{name}: {} of {cases} are wrong\n{}", wrong.len(), wrong.join("\n"));
        println!("{told}");
        assert!(wrong.is_empty(), "{told}");
    }
}

fn prepared(scenario: &Scenario) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a temporary directory");
    (scenario.prepare)(directory.path());
    directory
}

/// Simulates crashes between all system calls of one recorded run, and a power cut right after its end.
pub(crate) fn crashes(name: &'static str, scenario: &Scenario) {
    let (mut random, mut verdict) = (random(), Verdict::of(name));
    let directory = prepared(scenario);
    let (ended, recording) = Recording::of(&(scenario.command)(directory.path()), directory.path(), LIMIT);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let restored = |crash: Crash| {
        let directory = tempfile::tempdir().expect("a temporary directory");
        recording.restore(crash, directory.path());
        directory
    };
    // When the command reports success, everything must be on the disk.
    for loss in [Loss::Nothing, Loss::Unsynced, Loss::UnsyncedData, Loss::Random(random.random())] {
        let crash = Crash { after: recording.len(), loss };
        let directory = restored(crash);
        let checked = (scenario.check)(directory.path(), Moment::Undisturbed);
        let completed = checked.and_then(|()| complete(scenario, directory.path()));
        verdict.add(|| format!("after the exit: {}", recording.describe(crash)), completed);
    }
    for crash in chosen(scenario, &recording, number("HUNTSMAN_CRASH_POINTS", 24), &mut random) {
        let completed = complete(scenario, restored(crash).path());
        verdict.add(|| recording.describe(crash), completed);
    }
    verdict.close();
}

/// A sample of all crashes; half of them are near syncs and changes of names.
fn chosen(scenario: &Scenario, recording: &Recording, count: usize, random: &mut StdRng) -> Vec<Crash> {
    let turns = recording.turning_points();
    let losses = if scenario.survives_power_cuts { 6 } else { 1 };
    let crash = |at: usize| {
        let after = match at % 2 {
            0 if !turns.is_empty() => *turns.choose(random).expect("there are some"),
            _ => random.random_range(0..=recording.len()),
        };
        let loss = match at / 2 % losses {
            0 => Loss::Nothing,
            1 => Loss::Unsynced,
            2 => Loss::UnsyncedData,
            3 => Loss::UnsyncedFrom(random.random_range(0..=after)),
            _ => Loss::Random(random.random()),
        };
        Crash { after, loss }
    };
    (0..count).map(crash).collect()
}

/// Runs the command again, and checks its files.
fn complete(scenario: &Scenario, directory: &Path) -> Result<(), String> {
    let ended = run_bounded(&mut scenario.again(directory), LIMIT);
    let said = || format!("code {:?}, signal {:?}: {}", ended.code, ended.signal, tail(&ended.stderr));
    if ended.hung {
        return Err(format!("the same command again hangs: {}", tail(&ended.stderr)));
    }
    let checked = (scenario.check)(directory, Moment::Completed);
    let is_there = scenario.makes_a_new_file && ended.stderr.contains("the file exists") && checked.is_ok();
    if ended.code != Some(0) && !is_there {
        return Err(format!("the same command again fails: {}", said()));
    }
    checked.map_err(|why| format!("{why}\n{}", said()))
}

fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(6)..].join("\n")
}

/// Makes one call fail in each run: the command must report what failed and where, or work without it; then it is run
/// again.
pub(crate) fn faults(name: &'static str, scenario: &Scenario) {
    let (mut random, mut verdict) = (random(), Verdict::of(name));
    let recording = recorded(scenario);
    let faults = ["EIO", "ENOSPC"].map(|error| recording.faults(Effect::Error(error))).concat();
    for fault in spread(faults, &mut random).iter().take(number("HUNTSMAN_CRASH_FAULTS", 12)) {
        let directory = prepared(scenario);
        let ended = with_fault(scenario, fault, directory.path());
        let judged = told(fault, &ended).and_then(|()| complete(scenario, directory.path()));
        verdict.add(|| format!("{fault}, code {:?}: {}", ended.code, tail(&ended.stderr)), judged);
    }
    verdict.close();
}

/// Faults in random order; each combination of call and file comes once before any comes twice, because the store
/// makes most calls.
fn spread(mut faults: Vec<Fault>, random: &mut StdRng) -> Vec<Fault> {
    faults.shuffle(random);
    let mut times: HashMap<(String, PathBuf), usize> = HashMap::new();
    faults.sort_by_cached_key(|fault| {
        let times = times.entry((fault.call.clone(), fault.path.clone())).or_default();
        *times += 1;
        *times
    });
    faults
}

fn recorded(scenario: &Scenario) -> Recording {
    let directory = prepared(scenario);
    Recording::of(&(scenario.command)(directory.path()), directory.path(), LIMIT).1
}

fn with_fault(scenario: &Scenario, fault: &Fault, directory: &Path) -> Exited {
    let root = directory.canonicalize().expect("the directory is there");
    let mut command = (scenario.command)(directory);
    // With this variable, the messages of caught panics would be printed.
    command.env_remove("RUST_BACKTRACE");
    run_with(fault, &command, &root, LIMIT)
}

/// Checks that a command with a failing call ended as it should.
fn told(fault: &Fault, ended: &Exited) -> Result<(), String> {
    match ended.code {
        _ if ended.hung => Err("it hangs".to_owned()),
        _ if ended.stderr.contains("panicked") => Err("it panics".to_owned()),
        Some(0) => Ok(()),
        Some(1 | 2) => {
            let says = |word: &str| ended.stderr.contains(word);
            let names_error = ["nput/output error", "o space left", "no room is left"].into_iter().any(says);
            // A file is written under a temporary name before it gets its own.
            let parts: Vec<String> = fault.path.iter().map(|part| strip(&part.to_string_lossy())).collect();
            match says(&parts.join("/")) || (names_error && parts.iter().any(|part| says(part))) {
                true => Ok(()),
                false => Err("the message does not say what failed and where".to_owned()),
            }
        }
        _ => Err("it ends in no orderly way".to_owned()),
    }
}

fn strip(name: &str) -> String {
    // The last three are files that SQLite has beside a database.
    let suffixes = [".tmp", ".part", ".new", "-journal", "-shm", "-wal"];
    let suffix = suffixes.into_iter().find_map(|suffix| name.strip_suffix(suffix));
    suffix.unwrap_or(name).trim_start_matches('.').to_owned()
}

/// Kills the command at random moments and at random calls, sometimes twice, and then runs it to its end.
pub(crate) fn kills(name: &'static str, scenario: &Scenario) {
    let (mut random, mut verdict) = (random(), Verdict::of(name));
    let count = number("HUNTSMAN_CRASH_KILLS", 3);
    let directory = prepared(scenario);
    let began = Instant::now();
    let whole = run_bounded(&mut (scenario.command)(directory.path()), LIMIT);
    assert_eq!(whole.code, Some(0), "{whole:?}");
    let length = began.elapsed();
    for at in 0..count {
        let directory = prepared(scenario);
        // Early moments are more frequent, because a run creates most of its files then.
        let mut moment = || length.mul_f64(random.random::<f64>().powi(2));
        let mut moments = vec![moment()];
        let mut killed = kill_after((scenario.command)(directory.path()), moments[0]);
        if at % 2 == 1 {
            moments.push(moment());
            killed = killed.and_then(|()| kill_after(scenario.again(directory.path()), moments[1]));
        }
        let judged = killed.and_then(|()| complete(scenario, directory.path()));
        verdict.add(|| format!("killed after {moments:?}"), judged);
    }
    let faults = spread(recorded(scenario).faults(Effect::Kill), &mut random);
    for fault in faults.iter().cycle().take(count) {
        let directory = prepared(scenario);
        let ended = with_fault(scenario, fault, directory.path());
        let judged = match ended.code {
            Some(1..) => Err(format!("it failed without being killed: {}", ended.stderr)),
            _ => complete(scenario, directory.path()),
        };
        verdict.add(|| fault.to_string(), judged);
    }
    verdict.close();
}

fn kill_after(mut command: Command, moment: Duration) -> Result<(), String> {
    let ended = run_bounded(&mut command, moment);
    let is_there = ended.stderr.contains("the file exists");
    match ended.hung || ended.code == Some(0) || is_there {
        true => Ok(()),
        false => {
            Err(format!("it failed without being killed: code {:?}: {}", ended.code, tail(&ended.stderr)))
        }
    }
}

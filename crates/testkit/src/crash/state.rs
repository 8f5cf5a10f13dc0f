//! The state of a directory after a crash.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::recording::{Change, Content, Naming, Node, ROOT, Recording};
use crate::sites::Random;

/// The unit in bytes that a disk writes entirely or not at all.
const SECTOR: usize = 512;

/// The unsynced changes that a crash loses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// No change is lost: the process was killed, the system kept running.
    Nothing,
    /// All unsynced changes.
    Unsynced,
    /// All unsynced data but no names: files may be empty or have old contents under new names, as with delayed
    /// allocation.
    UnsyncedData,
    /// All unsynced changes from this operation on.
    UnsyncedFrom(usize),
    /// A random part, from this seed: names from some point on, and data in single sectors.
    Random(u64),
}

/// A crash at a point of a recorded run, and the changes lost there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crash {
    /// Number of operations before the crash.
    pub after: usize,
    /// Which unsynced changes are lost.
    pub loss: Loss,
}

impl Recording {
    /// Describes a crash, with the last operations before it.
    pub fn describe(&self, crash: Crash) -> String {
        let Crash { after, loss } = crash;
        let last = self.operations[after.saturating_sub(3)..after].iter().map(|done| done.what.as_str());
        let last: Vec<&str> = last.collect();
        format!(
            "crash after {after} of {} operations, loss {loss:?}; the last: {}",
            self.len(),
            last.join("; ")
        )
    }

    /// Writes the directory as the crash leaves it into the empty directory `target`.
    ///
    /// # Panics
    /// If `target` cannot be written.
    pub fn restore(&self, crash: Crash, target: &Path) {
        let State { names, contents } = self.state(crash);
        write(ROOT, target, &names, &contents);
    }

    fn state(&self, crash: Crash) -> State {
        let done = &self.operations[..crash.after];
        let mut synced = vec![0; self.contents.len()];
        for operation in done {
            if let Change::Sync { node, since } = operation.change {
                synced[node] = since.max(synced[node]);
            }
        }
        let (is_random, mut random) = match crash.loss {
            Loss::Random(seed) => (true, Random::new(seed)),
            _ => (false, Random::new(0)),
        };
        let names_end = random.below(crash.after + 1);
        let mut state = State { names: self.names.clone(), contents: self.contents.clone() };
        for (at, operation) in done.iter().enumerate() {
            let lasts = |node: &Node| at < synced[*node];
            let is_kept = |is_data: bool| match crash.loss {
                Loss::Nothing => true,
                Loss::Unsynced => false,
                Loss::UnsyncedData => !is_data,
                Loss::UnsyncedFrom(end) => at < end,
                Loss::Random(_) => is_data || at < names_end,
            };
            match &operation.change {
                Change::Sync { .. } => {}
                Change::Name(namings) => {
                    if namings.iter().any(|(directory, ..)| lasts(directory)) || is_kept(false) {
                        state.name(namings);
                    }
                }
                Change::Write { node, at, data } => match () {
                    () if lasts(node) => state.write(*node, *at, data),
                    () if is_random => state.write_sectors(*node, *at, data, &mut random),
                    () if is_kept(true) => state.write(*node, *at, data),
                    () => {}
                },
                Change::Resize { node, length } => {
                    let is_kept = is_kept(true) && !(is_random && random.below(2) == 0);
                    if lasts(node) || is_kept {
                        state.file(*node).resize(*length, 0);
                    }
                }
            }
        }
        state
    }
}

struct State {
    names: BTreeMap<(Node, String), Node>,
    contents: Vec<Content>,
}

impl State {
    fn file(&mut self, node: Node) -> &mut Vec<u8> {
        match &mut self.contents[node] {
            Content::File(bytes) => bytes,
            other => unreachable!("only files have bytes: {other:?}"),
        }
    }

    fn write(&mut self, node: Node, at: usize, data: &[u8]) {
        let file = self.file(node);
        if file.len() < at + data.len() {
            file.resize(at + data.len(), 0);
        }
        file[at..at + data.len()].copy_from_slice(data);
    }

    /// Applies a write entirely, not at all, or in some of its sectors.
    fn write_sectors(&mut self, node: Node, at: usize, data: &[u8], random: &mut Random) {
        let luck = random.below(4);
        let (mut from, end) = (at, at + data.len());
        while from < end {
            let to = (from / SECTOR * SECTOR + SECTOR).min(end);
            if luck == 0 || (luck == 1 && random.below(2) == 0) {
                self.write(node, from, &data[from - at..to - at]);
            }
            from = to;
        }
    }

    fn name(&mut self, namings: &[Naming]) {
        for (directory, name, node) in namings {
            match node {
                Some(node) => self.names.insert((*directory, name.clone()), *node),
                None => self.names.remove(&(*directory, name.clone())),
            };
        }
    }
}

fn write(node: Node, path: &Path, names: &BTreeMap<(Node, String), Node>, contents: &[Content]) {
    let problem = |cause: std::io::Error| -> ! { panic!("{}: {cause}", path.display()) };
    match &contents[node] {
        Content::File(bytes) => fs::write(path, bytes).unwrap_or_else(|cause| problem(cause)),
        Content::Link(to) => symlink(to, path).unwrap_or_else(|cause| problem(cause)),
        Content::Directory => {
            fs::create_dir_all(path).unwrap_or_else(|cause| problem(cause));
            let own =
                names.range((node, String::new())..).take_while(|((directory, _), _)| *directory == node);
            for ((_, name), child) in own {
                write(*child, &path.join(name), names, contents);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::process::Command;
    use std::time::Duration;

    use super::*;

    /// A shell command that creates a file, syncs its data, then its name.
    fn recorded(directory: &Path) -> Recording {
        fs::write(directory.join("before"), "old").unwrap();
        let script =
            "mkdir d; printf one > d/f; sync d/f; printf two >> d/f; sync d; mv before d/g; sync .; rm d/g";
        let mut command = Command::new("sh");
        command.args(["-c", script]).current_dir(directory);
        let (ended, recording) = Recording::of(&command, directory, Duration::from_secs(20));
        assert_eq!(ended.code, Some(0), "{ended:?}");
        recording
    }

    fn files(recording: &Recording, after: usize, loss: Loss) -> Vec<(PathBuf, String)> {
        let target = tempfile::tempdir().unwrap();
        recording.restore(Crash { after, loss }, target.path());
        let names = ["before", "d/f", "d/g"].map(PathBuf::from).into_iter();
        names
            .filter_map(|name| Some((name.clone(), fs::read_to_string(target.path().join(name)).ok()?)))
            .collect()
    }

    fn of(files: &[(&str, &str)]) -> Vec<(PathBuf, String)> {
        files.iter().map(|(name, text)| (PathBuf::from(name), (*text).to_owned())).collect()
    }

    #[test]
    fn a_crash_keeps_what_was_synced_and_takes_the_rest() {
        let directory = tempfile::tempdir().unwrap();
        let recording = recorded(directory.path());
        let at = |what: &str| {
            let found = recording.operations.iter().position(|done| done.what == what);
            found.unwrap_or_else(|| panic!("{what}: {:#?}", recording.operations)) + 1
        };
        let end = recording.len();
        assert_eq!(files(&recording, end, Loss::Nothing), of(&[("d/f", "onetwo")]));
        assert_eq!(
            files(&recording, at("fsync d/f"), Loss::Unsynced),
            of(&[("before", "old")]),
            "it has no name"
        );
        assert_eq!(
            files(&recording, at("fsync d"), Loss::UnsyncedData),
            of(&[("before", "old"), ("d/f", "one")])
        );
        let moved = of(&[("d/f", "one"), ("d/g", "old")]);
        assert_eq!(files(&recording, end, Loss::Unsynced), moved, "the directory has a name at last");
        assert_eq!(files(&recording, end, Loss::UnsyncedFrom(end)), of(&[("d/f", "onetwo")]));
        assert_eq!(files(&recording, 0, Loss::Unsynced), of(&[("before", "old")]));
        for seed in 0..20 {
            let left = files(&recording, end, Loss::Random(seed));
            let f = &left.iter().find(|(name, _)| name.ends_with("f")).unwrap().1;
            assert!(["one", "onetwo"].contains(&f.as_str()), "seed {seed}: {left:?}");
        }
    }
}

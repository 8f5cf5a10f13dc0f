//! The processes of a browser, as the system tells them: who they are, and what memory they have.

use std::fs;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// What the command line of a process of pages has.
const OF_PAGES: &[u8] = b"--type=renderer";

/// A process of a group.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) id: i32,
    /// Memory that would be free without it, in bytes.
    pub(crate) own: u64,
    /// Memory that it shares as files, in bytes.
    shared: u64,
    /// Processor time of it, and of those that it started and that have ended, in hundredths of a second.
    pub(crate) ticks: u64,
}

impl Member {
    /// Whether it runs pages.
    pub(crate) fn has_pages(&self) -> bool {
        fs::read(format!("/proc/{}/cmdline", self.id))
            .is_ok_and(|line| memchr::memmem::find(&line, OF_PAGES).is_some())
    }

    pub(crate) fn kill(&self) {
        if let Some(id) = Pid::from_raw(self.id) {
            let _gone = kill_process(id, Signal::KILL);
        }
    }
}

/// The processes of a group that still run.
pub(crate) fn members(group: i32) -> Vec<Member> {
    all().filter_map(|id| Some(member(id, ticks_in(id, group)?))).collect()
}

/// The processes of all that runs.
fn all() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The processes that are told to have their profile in a folder. The first of a browser is among them, which is the leader of its group.
pub(crate) fn with_profile_in(folder: &Path) -> Vec<i32> {
    let flag = format!("--user-data-dir={}/", folder.display());
    let has_flag = |id: &i32| {
        fs::read(format!("/proc/{id}/cmdline"))
            .is_ok_and(|line| memchr::memmem::find(&line, flag.as_bytes()).is_some())
    };
    all().filter(has_flag).collect()
}

/// Memory of all members in bytes. What they share as files counts once.
pub(crate) fn memory(members: &[Member]) -> u64 {
    let shared = members.iter().map(|member| member.shared).max().unwrap_or_default();
    members.iter().map(|member| member.own).sum::<u64>() + shared
}

/// The processor time of a process that runs in a group; `None` if it does not.
fn ticks_in(id: i32, group: i32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name of the program is in parentheses and may have any characters.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace();
    let is_alive = fields.next().is_some_and(|state| !matches!(state, "Z" | "X"));
    let is_member = is_alive && fields.nth(1).and_then(|field| field.parse().ok()) == Some(group);
    // User and system time, and those of children, are the 14th to the 17th field; the group is the 5th.
    is_member.then(|| fields.skip(8).take(4).filter_map(|field| field.parse::<u64>().ok()).sum())
}

fn member(id: i32, ticks: u64) -> Member {
    // `smaps` would be exact, but those of a process in a sandbox can be read by root only.
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let kilobytes = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|line| line.split_ascii_whitespace().next()?.parse::<u64>().ok()).unwrap_or_default()
    };
    let own = kilobytes("RssAnon:") + kilobytes("RssShmem:");
    Member { id, own: own * 1024, shared: kilobytes("RssFile:") * 1024, ticks }
}

/// Kills all processes of a group at once.
pub(crate) fn kill_group(group: i32) {
    if let Some(group) = Pid::from_raw(group) {
        let _gone = kill_process_group(group, Signal::KILL);
    }
}

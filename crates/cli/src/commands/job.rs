//! `huntsman job`: the state of a crawl that is not running.

mod args;

use std::io::{self, BufWriter, Write};
use std::path::Path;

use huntsman::middleware::sinks::DropLog;
use huntsman::{HostKey, Request, SavedJob, Timestamp, human_bytes};
use serde_json::{Value, json};
use url::Url;

use crate::directory::inspecting;
use crate::exit::{Exit, Failure, Outcome};
use crate::output::{DROPS, Found, Hold, State, Status};
use crate::render::{Style, Table, count, counted, escape, escape_json, say};

pub(crate) use args::JobCommand;

/// Number of hosts that `info` and messages name.
const NAMED: usize = 10;

pub(crate) fn run(what: JobCommand) -> Outcome {
    match what {
        JobCommand::Info { dir, json } => info(&dir, json),
        JobCommand::LsQueue { dir, host, json, limit } => ls_queue(&dir, host.as_deref(), json, limit),
        JobCommand::ExportSeen { dir } => export_seen(&dir),
        JobCommand::DropHost { dir, host } => drop_host(&dir, &host),
    }
}

fn info(dir: &Path, as_json: bool) -> Outcome {
    let found = Found::of(dir).map_err(inspecting)?;
    let job = SavedJob::read(&found.job)?;
    let status = found.status().map_err(inspecting)?;
    let stats = job.stats()?;
    let pages = stats.get("pages/delivered").copied().unwrap_or(0);
    let pages = u64::try_from(pages).unwrap_or(0);
    let hosts = job.hosts();
    let bytes = size_of(&found.job)?;
    let (in_flight, committed, seen) = (job.in_flight()?, job.last_commit()?, job.seen()?);
    let state = status.as_ref().map(|status| state_of(status, job.queued()));
    let reason = status.as_ref().and_then(|status| status.finish_reason.as_deref());
    let text = if as_json {
        let value = json!({
            "state": state,
            "finish_reason": reason,
            "seed_url": status.as_ref().map(|status| &status.seed_url),
            "started": status.as_ref().map(|status| &status.started),
            "pages": pages,
            "queued": job.queued(),
            "hosts": hosts.len(),
            "in_flight": in_flight,
            "seen": seen,
            "last_commit": committed.map(Timestamp::to_rfc3339),
            "bytes": bytes,
            "store": job.backend().name(),
            "format": job.format(),
        });
        format!("{}\n", escape_json(&value.to_string()))
    } else {
        let mut table = Table::default();
        if let (Some(status), Some(state)) = (&status, state) {
            let reason = reason.map(|reason| format!(", ended as {reason}")).unwrap_or_default();
            table.row([status.run().name(), &status.seed_url]);
            table.row(["started", &status.started]);
            table.row(["state", &format!("{state}{reason}")]);
        }
        table.row(["pages", &count(pages)]);
        let flying = match in_flight {
            Some(0) | None => String::new(),
            Some(number) => format!(", {} of them in flight at the last commit", count(number)),
        };
        let queued = format!("{} of {}{flying}", count(job.queued()), counted(hosts.len() as u64, "host"));
        table.row(["queued", &queued]);
        table.row(["seen", &count(seen)]);
        let committed =
            committed.map_or("not told by the version that wrote it".to_owned(), Timestamp::to_rfc3339);
        table.row(["last commit", &committed]);
        table.row(["on disk", &human_bytes(bytes)]);
        table.row(["store", &format!("{}, format {}", job.backend().name(), job.format())]);
        format!("{}{}", table.lines(""), busiest(hosts, Style::stdout()))
    };
    io::stdout().lock().write_all(text.as_bytes())?;
    Ok(Exit::Done)
}

/// The state of the crawl, derived from its files: a crawl that was killed could not write it.
fn state_of(status: &Status, queued: u64) -> &'static str {
    match status.state {
        State::Finished => "finished",
        State::Failed => "failed",
        State::Making => "being made",
        State::Clearing => "being cleared",
        State::Interrupted => "interrupted",
        State::Running if queued == 0 => "killed at its end",
        State::Running => "killed",
    }
}

/// The hosts with the longest queues.
fn busiest(mut hosts: Vec<(HostKey, u64)>, style: Style) -> String {
    hosts.sort_by(|(a, m), (b, n)| n.cmp(m).then_with(|| a.cmp(b)));
    let mut table = Table::right(&[0]);
    for (host, number) in hosts.iter().take(NAMED) {
        table.row([count(*number), host.to_string()]);
    }
    let more = hosts.len().saturating_sub(NAMED) as u64;
    let more =
        if more == 0 { String::new() } else { style.dim(&format!("  and {}\n", counted(more, "more host"))) };
    format!("{}{more}", table.lines("  "))
}

fn size_of(path: &Path) -> Outcome<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(path)? {
        let entry = entry?;
        let meta = entry.metadata()?;
        bytes += if meta.is_dir() { size_of(&entry.path())? } else { meta.len() };
    }
    Ok(bytes)
}

fn ls_queue(dir: &Path, host: Option<&str>, as_json: bool, limit: Option<u64>) -> Outcome {
    let job = SavedJob::read(Found::of(dir).map_err(inspecting)?.job)?;
    let host = match host {
        Some(host) => Some(known(&job, dir, host)?),
        None => None,
    };
    let mut out = BufWriter::new(io::stdout().lock());
    let (mut left, mut result) = (limit.unwrap_or(u64::MAX), Ok(()));
    job.each_queued(host.as_ref(), |slot, request| {
        if left == 0 {
            return false;
        }
        left -= 1;
        result = if as_json {
            writeln!(out, "{}", escape_json(&queued_json(slot, &request).to_string()))
        } else {
            writeln!(out, "{}", escape(request.url.as_str()))
        };
        result.is_ok()
    })?;
    result?;
    out.flush()?;
    Ok(Exit::Done)
}

fn queued_json(slot: &HostKey, request: &Request) -> Value {
    json!({
        "url": request.url.as_str(),
        "method": request.method.as_str(),
        "host": slot.as_str(),
        "depth": request.depth,
        "priority": request.priority,
        "retries": request.retries,
        "referer": request.referer.as_deref(),
        "not_before": request.not_before.map(Timestamp::to_rfc3339),
        "fingerprint": format!("{:032x}", request.fingerprint().0),
    })
}

fn export_seen(dir: &Path) -> Outcome {
    let job = SavedJob::read(Found::of(dir).map_err(inspecting)?.job)?;
    let mut out = BufWriter::new(io::stdout().lock());
    let mut result = Ok(());
    job.each_seen(|fingerprint| {
        result = writeln!(out, "{:032x}", fingerprint.0);
        result.is_ok()
    })?;
    result?;
    out.flush()?;
    Ok(Exit::Done)
}

fn drop_host(dir: &Path, host: &str) -> Outcome {
    let found = Found::of(dir).map_err(inspecting)?;
    let Some(out) = &found.out else {
        return Err(Failure::usage(format!(
            "{}: every request that is dropped gets its record in {DROPS}; name the directory that was given to --out",
            escape(&dir.to_string_lossy())
        )));
    };
    // Without this lock, a crawl could start in the directory in the meantime.
    let _hold = Hold::of(out).map_err(inspecting)?;
    let mut job = SavedJob::open(&found.job)?;
    let host = known(&job, dir, host)?;
    let log = DropLog::of_job(out.join(DROPS))?;
    let dropped = job.drop_host(&host, &log)?;
    log.finish()?;
    let left = job.queued();
    job.close()?;
    say(&format!(
        "dropped {} of {}, which are in {} as dropped_by_user; {} left",
        counted(dropped, "request"),
        escape(host.as_str()),
        escape(&out.join(DROPS).to_string_lossy()),
        counted(left, "request")
    ));
    Ok(Exit::Done)
}

/// The slot that `host` names, if it has queued requests.
fn known(job: &SavedJob, dir: &Path, host: &str) -> Outcome<HostKey> {
    let hosts = job.hosts();
    // Names are stored in the form that URLs have: lower case, punycode, addresses in brackets.
    let as_in_urls = Url::parse(&format!("http://{host}/")).ok();
    let as_in_urls = as_in_urls.as_ref().and_then(Url::host_str).map(HostKey::new);
    let wanted = [Some(HostKey::new(host)), as_in_urls];
    let is_there = |key: &HostKey| hosts.iter().any(|(host, _)| host == key);
    if let Some(key) = wanted.into_iter().flatten().find(is_there) {
        return Ok(key);
    }
    let mut names: Vec<String> = hosts.iter().take(NAMED).map(|(host, _)| host.to_string()).collect();
    if hosts.len() > NAMED {
        names.push(format!("and {} more", count((hosts.len() - NAMED) as u64)));
    }
    let there = if names.is_empty() {
        "nothing is queued at all".to_owned()
    } else {
        format!("queued are: {}", names.join(", "))
    };
    Err(Failure::crawl(format!(
        "nothing of {} is queued in {}; {there}",
        escape(host),
        escape(&dir.to_string_lossy())
    )))
}

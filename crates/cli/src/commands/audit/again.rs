//! Audits without a crawl: an earlier one that is judged again, and pages of a file.

use std::path::{Path, PathBuf};

use huntsman::audit::{Audit, AuditOptions, Earlier, Found};
use serde_json::{Value, json};
use url::Url;

use super::forms::Forms;
use crate::commands::SiteArgs;
use crate::config::Config;
use crate::directory::{finished, inspecting};
use crate::exit::{Exit, Failure, Outcome};
use crate::output::{self, DROPS, EarlierRun, Hold, Plan, REPORT, Run, State};
use crate::render::{Style, say};

/// Judges the audit in a directory again, with the settings of now, and replaces its files.
pub(super) fn job(dir: &Path, options: &AuditOptions, config: &Config, forms: &Forms) -> Outcome {
    let (found, is_complete) = Found::again(dir)?;
    let _hold = Hold::of(dir).map_err(inspecting)?;
    let mut audit = options.judge(found, &config.settings, is_complete)?;
    if !options.has_baseline() {
        audit.carry_on(&Earlier::open(dir)?, true);
    }
    forms.write(&mut audit, dir)?;
    let path = dir.join(REPORT);
    let mut report: Value = serde_json::from_slice(&std::fs::read(&path)?)?;
    report["audit"] = audit.totals();
    huntsman::files::write(&path, serde_json::to_vec_pretty(&report)?)?;
    told(&audit, dir, forms)
}

/// Judges the pages of a file, and writes an audit of them.
pub(super) fn pages(
    file: &Path,
    site: &SiteArgs,
    options: &AuditOptions,
    config: &Config,
    forms: &Forms,
) -> Outcome {
    let found = options.read_pages(file, &config.settings)?;
    let seed = found.first_url()?.and_then(|url| Url::parse(&url).ok());
    let seed = seed.ok_or_else(|| Failure::usage(format!("{} has no pages", file.display())))?;
    let path: PathBuf = site.output.out.clone().unwrap_or_else(|| output::default_dir(&seed, Run::Audit));
    let store = huntsman::Backend::Memory;
    let plan = match Plan::of(&path, EarlierRun::of(site.output.fresh), Run::Audit, store)? {
        Plan::Finished(status) => {
            say(&finished(&path, &status));
            return Ok(Exit::Done);
        }
        Plan::Use(plan) => plan,
    };
    let mut directory = plan.create(&seed, huntsman::Timestamp::wall().to_rfc3339())?;
    directory.begin()?;
    found.write(directory.path())?;
    directory.write(DROPS, b"")?;
    // Pages that are not in the file may be there.
    let mut audit = options.judge(found, &config.settings, false)?;
    forms.write(&mut audit, directory.path())?;
    let totals = audit.totals();
    let report = json!({"seed_url": seed, "finish_reason": "finished", "audit": totals});
    let number = totals["pages"]["html"].as_u64().unwrap_or(0);
    directory.finish(State::Finished, "finished", number, &serde_json::to_vec_pretty(&report)?)?;
    told(&audit, directory.path(), forms)
}

fn told(audit: &Audit, dir: &Path, forms: &Forms) -> Outcome {
    say(audit.summary(Style::stderr()).trim_end());
    forms.tell(audit, dir)?;
    Ok(if audit.has_failed() { Exit::Quality } else { Exit::Done })
}

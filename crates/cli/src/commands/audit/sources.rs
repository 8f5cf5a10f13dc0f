//! What `huntsman audit` reads besides the site: fields and searches of the user, and logs of servers.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use huntsman::Settings;
use huntsman::audit::{LogReader, Logs};
use huntsman::middleware::AuditSettings;

use crate::args::{Flags, set};
use crate::exit::{Failure, Outcome};
use crate::render::escape;

/// Flags of what is read besides the site.
#[derive(Debug, Args)]
#[command(next_help_heading = "Audit")]
pub(super) struct SourceArgs {
    /// File of TOML with fields that are read from each page by CSS, XPath, JSONPath or regular expressions, and texts that pages contain or lack:
    /// tables [fields] and [searches] (setting audit_custom).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    custom: Option<PathBuf>,

    /// Log file of the server: which pages robots ask for, and URLs that stand only there (repeatable). The common and the combined format and JSON
    /// lines, also compressed by gzip or Zstandard.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    log: Vec<PathBuf>,

    /// Compares the addresses of a robot in the logs with those in a file of its operator: Googlebot=googlebot.json (repeatable). Without it a robot
    /// is whatever its User-Agent says.
    #[arg(long, value_name = "NAME=FILE", requires = "log")]
    log_robot: Vec<String>,

    /// Judges robots.txt as the robot of this name, such as Googlebot, without changing the User-Agent of requests (setting robotstxt_user_agent).
    #[arg(long, value_name = "NAME")]
    robots_agent: Option<String>,
}

impl SourceArgs {
    /// The settings that these flags stand for.
    pub(super) fn settings(&self) -> Flags {
        let mut flags = Flags::new();
        set(&mut flags, "audit_custom", self.custom.as_ref().map(|path| path.to_string_lossy()));
        set(&mut flags, "robotstxt_user_agent", self.robots_agent.as_deref());
        flags
    }

    /// The logs, if there are any.
    ///
    /// # Errors
    /// A file is no log, or no list of addresses.
    pub(super) fn logs(&self, settings: &Settings) -> Outcome<Option<Logs>> {
        if self.log.is_empty() {
            return Ok(None);
        }
        let limits: AuditSettings = settings.of()?;
        let mut reader =
            LogReader::new().max_urls(limits.audit_log_urls).sorted_bytes(limits.audit_sorted_bytes);
        for given in &self.log_robot {
            let (name, file) = given
                .split_once('=')
                .ok_or_else(|| Failure::usage(format!("--log-robot {}: use NAME=FILE", escape(given))))?;
            reader = reader.ranges(name, file)?;
        }
        Ok(Some(reader.read(&self.log)?))
    }
}

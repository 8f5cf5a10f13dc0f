//! Flags that say where settings come from, and flags that stand for single settings. All commands that fetch pages
//! share them.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use serde_json::{Value, json};

use super::values::positive_seconds;

/// Where settings come from. Later wins: profile, settings file, `HUNTSMAN_*` variables, flags, `--set`.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Settings")]
pub struct SettingsArgs {
    /// Profile: a named set of settings to start from [default: polite].
    #[arg(long, value_name = "NAME", value_parser = ["polite", "audit", "broad", "test"])]
    pub profile: Option<String>,

    /// Sets any setting (repeatable); the command `settings` lists all settings.
    #[arg(short = 's', long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,

    /// Settings file [default: huntsman.toml in the working directory, if there is one].
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub config: Option<PathBuf>,
}

/// How requests are sent.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Network")]
pub struct NetworkArgs {
    /// Exception to the address guard, which refuses loopback and private addresses (repeatable; `HOST:*` for any
    /// port; setting allow_addresses).
    #[arg(long, value_name = "HOST:PORT")]
    pub allow_address: Vec<String>,

    /// Fixed address for a host name, instead of a DNS lookup (repeatable; setting resolve).
    #[arg(long, value_name = "HOST:PORT:ADDR")]
    pub resolve: Vec<String>,

    /// File of certificates in PEM: authorities that are trusted besides those of the system (setting tls_ca_file).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub ca_file: Option<String>,

    /// Credentials that are sent to one origin only (repeatable; setting http_auth).
    #[arg(long, value_name = "ORIGIN=USER:PASSWORD")]
    pub auth: Vec<String>,

    /// Header that is sent to one origin only (repeatable; setting secret_headers).
    #[arg(long, value_name = "ORIGIN=NAME: VALUE")]
    pub secret_header: Vec<String>,

    /// Ignores robots.txt, and `nofollow` in meta elements, headers and links.
    #[arg(long)]
    pub ignore_robots: bool,

    /// Stores and sends no cookies (setting cookies_enabled).
    #[arg(long)]
    pub no_cookies: bool,

    /// Time limit for a whole request in seconds (setting download_timeout).
    #[arg(long, value_name = "SECS", value_parser = positive_seconds)]
    pub timeout: Option<f64>,
}

/// Where exchanges of a crawl are kept as files, or come from.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Fixtures")]
pub struct FixtureArgs {
    /// Stores every exchange in this folder: a readable file for request and response, and one for the body. Cookies, credentials and fields of
    /// forms with passwords are left out (setting record_dir).
    #[arg(long = "record", value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "replay")]
    pub record: Option<String>,

    /// Answers every request from such a folder, without a network. A request that was not recorded fails, and the command exits with 1 (setting
    /// replay_dir).
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub replay: Option<String>,
}

/// Settings given by flags: name and value.
pub type Flags = Vec<(&'static str, Value)>;

/// Adds a setting if its flag was given.
pub fn set<T: Into<Value>>(flags: &mut Flags, name: &'static str, value: Option<T>) {
    flags.extend(value.map(|value| (name, value.into())));
}

/// Adds a list if its flag was given.
pub fn list(flags: &mut Flags, name: &'static str, values: &[String]) {
    if !values.is_empty() {
        flags.push((name, json!(values)));
    }
}

impl FixtureArgs {
    /// The settings that these flags stand for.
    pub fn settings(&self) -> Flags {
        let mut flags = Flags::new();
        set(&mut flags, "record_dir", self.record.as_deref());
        if let Some(folder) = &self.replay {
            flags.extend(replay(folder));
        }
        flags
    }
}

/// The settings of a crawl that is replayed from a folder of exchanges: nothing is waited for that only a network could bring, and no name is
/// resolved. A robots.txt that could not be fetched at first is asked for as often as in the recording, without the pauses.
pub fn replay(folder: &str) -> Flags {
    vec![
        ("replay_dir", json!(folder)),
        ("robots_retry_delays", json!([0.0, 0.0, 0.0])),
        ("slot_by", json!("host")),
    ]
}

impl NetworkArgs {
    /// The settings that these flags stand for.
    pub fn settings(&self) -> Flags {
        let mut flags = Flags::new();
        list(&mut flags, "allow_addresses", &self.allow_address);
        list(&mut flags, "resolve", &self.resolve);
        set(&mut flags, "tls_ca_file", self.ca_file.as_deref());
        list(&mut flags, "http_auth", &self.auth);
        list(&mut flags, "secret_headers", &self.secret_header);
        if self.ignore_robots {
            flags.extend([("robotstxt_obey", json!(false)), ("obey_nofollow", json!(false))]);
        }
        if self.no_cookies {
            flags.push(("cookies_enabled", json!(false)));
        }
        set(&mut flags, "download_timeout", self.timeout);
        flags
    }
}

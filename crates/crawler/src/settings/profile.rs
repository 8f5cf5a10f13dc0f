//! Profiles: named bundles of settings, below the project file in priority.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// A named bundle of settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    /// One request at a time per host, a second apart (default).
    #[default]
    Polite,
    /// One's own site: several at once, throttled by latency.
    Audit,
    /// Many hosts at once, each gently; refuses to start without a contact in the User-Agent.
    Broad,
    /// A local test server: no delay, no robots.txt.
    Test,
}

impl Profile {
    /// All profiles.
    pub const ALL: [Self; 4] = [Self::Polite, Self::Audit, Self::Broad, Self::Test];

    /// The name after `--profile`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Polite => "polite",
            Self::Audit => "audit",
            Self::Broad => "broad",
            Self::Test => "test",
        }
    }

    /// The values that differ from the polite defaults.
    pub fn values(self) -> Map<String, Value> {
        let values = match self {
            Self::Polite => json!({}),
            Self::Audit => json!({
                "concurrent_requests_per_domain": 5,
                "download_delay": 0.0,
                "download_delay_jitter": 0.0,
                "autothrottle_enabled": true,
                "autothrottle_target_concurrency": 5.0,
                "autothrottle_start_delay": 0.2,
                "obey_nofollow": false,
                "redirect_max_times": 10,
                "trap_guards": "warn",
                "max_parked_wait": 30.0,
            }),
            Self::Broad => json!({
                "concurrent_requests": 256,
                "slot_by": "registrable_domain",
                "autothrottle_enabled": true,
                "autothrottle_target_concurrency": 1.0,
                "autothrottle_start_delay": 1.0,
                "download_maxsize": 5 << 20,
                "retry_times": 1,
                "cookies_enabled": false,
                "redirect_max_times": 10,
                "trap_guards": "drop",
            }),
            Self::Test => json!({
                "concurrent_requests_per_domain": 16,
                "download_delay": 0.0,
                "download_delay_jitter": 0.0,
                "robotstxt_obey": false,
                "obey_nofollow": false,
                "redirect_max_times": 10,
                "max_parked_wait": 30.0,
                "log_level": "debug",
            }),
        };
        match values {
            Value::Object(map) => map,
            _ => Map::new(),
        }
    }
}

impl std::str::FromStr for Profile {
    type Err = crate::error::Error;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|profile| profile.name() == name).ok_or_else(|| {
            crate::error::Error::usage(format!(
                "unknown profile \"{name}\": use polite, audit, broad or test"
            ))
        })
    }
}

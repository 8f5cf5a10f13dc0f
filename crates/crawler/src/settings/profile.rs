//! Profiles: named bundles of settings, below the project file in priority. Each setting declares its value in a profile.

use serde::{Deserialize, Serialize};

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

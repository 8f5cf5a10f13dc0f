//! Profiles: named sets of settings, with lower priority than the project file. Each setting declares its value in a
//! profile.

use serde::{Deserialize, Serialize};

/// A named set of settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    /// One request at a time per host, a second apart (default).
    #[default]
    Polite,
    /// For your own site: several requests at once, throttled by latency.
    Audit,
    /// Many hosts at once, each of them gently; refuses to start without a contact in the User-Agent.
    Broad,
    /// For a local test server: no delay, no robots.txt.
    Test,
}

impl Profile {
    /// All profiles.
    pub const ALL: [Self; 4] = [Self::Polite, Self::Audit, Self::Broad, Self::Test];

    /// The name, as given to `--profile`.
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

//! The backends by name.

use std::fmt;
use std::str::FromStr;

/// Default number of bytes of its file that a backend may hold in memory.
pub const DEFAULT_CACHE_BYTES: usize = 64 << 20;

/// The backend that stores the entries of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Backend {
    /// Memory: nothing is left after the process ends.
    Memory,
    /// One file, `store.redb`.
    #[default]
    Redb,
    /// A directory, `store.sled`; for jobs of at most a few hundred thousand URLs.
    Sled,
}

impl Backend {
    /// All backends, compiled in or not.
    pub const ALL: [Self; 3] = [Self::Memory, Self::Redb, Self::Sled];

    /// Its name in settings and in `format.json`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Redb => "redb",
            Self::Sled => "sled",
        }
    }

    /// Whether this build includes it.
    pub fn is_compiled_in(self) -> bool {
        match self {
            Self::Memory => true,
            Self::Redb => cfg!(feature = "redb"),
            Self::Sled => cfg!(feature = "sled"),
        }
    }

    /// The name of its file or directory in the directory of a job; `None` for memory.
    pub(crate) fn file_name(self) -> Option<&'static str> {
        match self {
            Self::Memory => None,
            Self::Redb => Some("store.redb"),
            Self::Sled => Some("store.sled"),
        }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Backend {
    type Err = UnknownBackend;

    fn from_str(name: &str) -> Result<Self, UnknownBackend> {
        let found = Self::ALL.into_iter().find(|backend| backend.name() == name);
        found.ok_or_else(|| UnknownBackend { name: name.to_owned() })
    }
}

/// The error for an unknown backend name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownBackend {
    name: String,
}

impl fmt::Display for UnknownBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no store is named {:?}; there are", self.name)?;
        for (at, backend) in Backend::ALL.into_iter().enumerate() {
            write!(f, "{} {backend}", if at == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl std::error::Error for UnknownBackend {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backends_are_found_by_their_names() {
        for backend in Backend::ALL {
            assert_eq!(backend.to_string().parse(), Ok(backend));
        }
        let error = "rocks".parse::<Backend>().expect_err("no such backend");
        assert_eq!(error.to_string(), "no store is named \"rocks\"; there are memory, redb, sled");
    }
}

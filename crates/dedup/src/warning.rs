//! Problems that do not end a run.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use huntsman_detect::near::{DocId, IndexError};

use crate::record::Position;

/// A problem that does not end the run. Its text is one line for people. It contains text from documents and file names, and must be
/// escaped before it is shown on a terminal.
#[derive(Debug)]
#[non_exhaustive]
pub enum Warning {
    /// Some lines of the file of flags are not flags. They stay, and are ignored.
    ForeignFlags {
        /// The file.
        path: PathBuf,
        /// The number of such lines.
        lines: u64,
    },
    /// The end of the file of flags was incomplete, because a run was killed while writing it. It was cut off.
    TornFlags {
        /// The file.
        path: PathBuf,
    },
    /// The end of an index was incomplete, because a run was killed while writing it. It was dropped.
    TornIndex {
        /// The directory.
        path: PathBuf,
        /// Bytes that were dropped.
        bytes: u64,
    },
    /// A document replaced another text with the same id. Reported for the first three of a run.
    Replaced {
        /// The place of the document in the input.
        position: Position,
        /// Its id.
        id: DocId,
        /// Its language.
        lang: Box<str>,
    },
    /// The file with the spellings of languages is damaged, and is written anew.
    DamagedSpellings(serde_json::Error),
    /// The spellings of languages could not be read from a server or stored there.
    Spellings(IndexError),
    /// The spellings of languages could not be written.
    SpellingsFile {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ForeignFlags { path, lines } => {
                let noun = if *lines == 1 { "line" } else { "lines" };
                write!(f, "{}: {lines} {noun} are not flags; they stay, and are not counted", path.display())
            }
            Self::TornFlags { path } => {
                write!(f, "{}: the end was not written whole and is cut off", path.display())
            }
            Self::TornIndex { path, bytes } => write!(
                f,
                "{}: {bytes} bytes at the end of the log were not written whole, and are dropped",
                path.display()
            ),
            Self::Replaced { position, id, lang } => {
                write!(f, "{position}: id {id} of {lang} was there with another text; the last one counts")
            }
            Self::DamagedSpellings(error) => {
                write!(f, "{} of the index is damaged: {error}", crate::spelling::FILE)
            }
            Self::Spellings(error) => write!(f, "the spellings of languages: {error}"),
            Self::SpellingsFile { path, source } => write!(f, "{}: {source}", path.display()),
        }
    }
}

/// The callback for warnings; by default, warnings are dropped. Clones share the callback.
#[derive(Clone, Default)]
pub struct Warnings(Option<Arc<Tell>>);

type Tell = dyn Fn(&Warning) + Send + Sync;

impl Warnings {
    /// Calls `tell` with each warning, on the thread where it occurs.
    pub fn new(tell: impl Fn(&Warning) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(tell)))
    }

    pub(crate) fn tell(&self, warning: &Warning) {
        if let Some(tell) = &self.0 {
            tell(warning);
        }
    }
}

impl fmt::Debug for Warnings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Warnings").field(&self.0.is_some()).finish()
    }
}

//! What a run meets that does not end it.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use huntsman_detect::near::{DocId, IndexError};

use crate::record::Where;

/// Something that is not as it should be, while the run goes on. Its text is one line for people; it has what documents and files say, and
/// must be escaped before it is shown on a terminal.
#[derive(Debug)]
#[non_exhaustive]
pub enum Warning {
    /// Lines of the file of flags are no flags. They stay, and do not count.
    ForeignFlags {
        /// The file.
        path: PathBuf,
        /// How many of its lines.
        lines: u64,
    },
    /// The last line of the file of flags has no end, as a kill leaves it. It was cut off.
    TornFlags {
        /// The file.
        path: PathBuf,
    },
    /// The end of an index was not written whole, as a kill leaves it. It was dropped.
    TornIndex {
        /// The directory.
        path: PathBuf,
        /// How much was dropped.
        bytes: u64,
    },
    /// A document took the place of another text with its id. Told for the first three of a run.
    Replaced {
        /// Where the document stands.
        place: Where,
        /// Its id.
        id: DocId,
        /// Its language.
        lang: Box<str>,
    },
    /// The file with the spellings of languages is damaged, and is begun anew.
    DamagedSpellings(serde_json::Error),
    /// The spellings of languages could not be read from a server or kept there.
    Spellings(IndexError),
    /// The spellings of languages could not be written.
    SpellingsFile {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ForeignFlags { path, lines } => {
                let noun = if *lines == 1 { "line" } else { "lines" };
                write!(f, "{}: {lines} {noun} are no flags; they stay, and do not count", path.display())
            }
            Self::TornFlags { path } => {
                write!(f, "{}: the last line has no end and is cut off", path.display())
            }
            Self::TornIndex { path, bytes } => write!(
                f,
                "{}: {bytes} bytes at the end of the log were not written whole, and are dropped",
                path.display()
            ),
            Self::Replaced { place, id, lang } => {
                write!(f, "{place}: id {id} of {lang} was there with another text; the last one counts")
            }
            Self::DamagedSpellings(error) => {
                write!(f, "{} of the index is damaged: {error}", crate::spelling::FILE)
            }
            Self::Spellings(error) => write!(f, "the spellings of languages: {error}"),
            Self::SpellingsFile { path, source } => write!(f, "{}: {source}", path.display()),
        }
    }
}

/// What is called with each warning: nothing by default. Clones call the same.
#[derive(Clone, Default)]
pub struct Warnings(Option<Arc<Tell>>);

type Tell = dyn Fn(&Warning) + Send + Sync;

impl Warnings {
    /// Calls `tell` with each warning, on the thread that meets it.
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

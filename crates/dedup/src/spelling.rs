//! The spellings of languages in the input, so that `export` can give them back unchanged.
//!
//! An index has one name for a language, `ENGLISH` for `en`. For an index in a directory, the first spelling of each language is stored
//! beside the index; in Redis it is stored under a key of its own; the seed layout of Redis stores none.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use huntsman_detect::near::Language;

use crate::index::Index;
use crate::warning::{Warning, Warnings};

pub(crate) const FILE: &str = "spellings.json";
/// Upper limit of languages, more than any index has.
const MAX_LANGUAGES: usize = 100_000;

/// The codes of the languages that have names of their own in an index.
const CODES: [(&str, &str); 10] = [
    ("HINDI", "hi"),
    ("BENGALI", "bn"),
    ("MARATHI", "mr"),
    ("TAMIL", "ta"),
    ("MALAYALAM", "ml"),
    ("TELUGU", "te"),
    ("GUJARATI", "gu"),
    ("ODIA", "or"),
    ("PUNJABI", "pa"),
    ("ENGLISH", "en"),
];

/// The first spelling of each language.
#[derive(Debug, Default)]
pub struct Spellings {
    path: Option<PathBuf>,
    #[cfg(feature = "redis")]
    index: Option<Arc<Index>>,
    known: BTreeMap<Language, Box<str>>,
    is_changed: bool,
}

/// The code of a language, or else the name that the index has for it.
pub(crate) fn code(language: &Language) -> &str {
    let name = language.as_str();
    CODES.iter().find(|(other, _)| *other == name).map_or(name, |(_, code)| *code)
}

impl Spellings {
    /// The spellings of an index in a directory; for other indexes see [`Self::set_index`].
    pub fn of(directory: Option<&Path>, warnings: &Warnings) -> Self {
        let path = directory.map(|directory| directory.join(FILE));
        let read = path.as_deref().and_then(|path| std::fs::read(path).ok());
        let known = read.and_then(|json| {
            let known = serde_json::from_slice::<BTreeMap<Language, Box<str>>>(&json);
            known.map_err(|error| warnings.tell(&Warning::DamagedSpellings(error))).ok()
        });
        Self { path, known: known.unwrap_or_default(), ..Self::default() }
    }

    /// Loads the spellings of an index in a server, which take precedence over those learnt so far, and stores new ones there.
    #[cfg_attr(not(feature = "redis"), expect(unused_variables, reason = "a directory has them in a file"))]
    pub fn set_index(&mut self, index: &Arc<Index>, warnings: &Warnings) {
        #[cfg(feature = "redis")]
        if let Index::Redis(redis) = &**index {
            match redis.spellings() {
                Ok(known) => {
                    self.known.extend(known.into_iter().map(|(language, lang)| (language, lang.into())))
                }
                Err(error) => warnings.tell(&Warning::Spellings(error)),
            }
            self.index = Some(Arc::clone(index));
        }
    }

    /// Keeps a spelling if it is the first one of its language.
    pub fn learn(&mut self, language: Language, lang: &str) {
        if !self.known.contains_key(&language) && self.known.len() < MAX_LANGUAGES {
            self.known.insert(language, lang.into());
            self.is_changed = true;
        }
    }

    /// The spelling of a language: the first one, else its code.
    pub fn spelling_of<'a>(&'a self, language: &'a Language) -> &'a str {
        match self.known.get(language) {
            Some(lang) => lang,
            None => code(language),
        }
    }

    /// Stores the spellings. They are a convenience, so if the disk fails, this is only a warning.
    pub fn save(&mut self, warnings: &Warnings) {
        #[cfg(feature = "redis")]
        if let (Some(Index::Redis(redis)), true) = (self.index.as_deref(), self.is_changed) {
            match redis.store_spellings(self.known.iter().map(|(language, lang)| (*language, &**lang))) {
                Ok(()) => self.is_changed = false,
                Err(error) => warnings.tell(&Warning::Spellings(error)),
            }
        }
        let Some(path) = self.path.as_deref().filter(|_| self.is_changed) else { return };
        let json = serde_json::to_vec_pretty(&self.known).unwrap_or_default();
        match huntsman_files::write(path, json) {
            Ok(()) => self.is_changed = false,
            Err(source) => warnings.tell(&Warning::SpellingsFile { path: path.to_owned(), source }),
        }
    }
}

//! The flags: a JSON line for each document with near-duplicates.

use std::collections::HashSet;
use std::fs::{File, TryLockError};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, BufRead, BufReader, IsTerminal, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use huntsman::Timestamp;
use huntsman::detect::near::{DocId, Identity, Language, Near};
use huntsman::detect::simhash::SimHash;
use huntsman::files;
use serde::{Deserialize, Serialize};

use super::record::Story;
use crate::exit::{Failure, Outcome};
use crate::render::{counted, escape, escape_json, warn};

/// A line of flags.
#[derive(Debug, Serialize)]
pub(crate) struct FlagLine<'a> {
    id: &'a DocId,
    lang: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    lang_confidence: Option<f64>,
    simhash: String,
    matches: Vec<Match<'a>>,
    min_distance: u32,
    k: u32,
    features: &'static str,
    ts: String,
}

#[derive(Debug, Serialize)]
struct Match<'a> {
    id: &'a DocId,
    distance: u32,
}

impl<'a> FlagLine<'a> {
    /// The line of a document and what is near to it, the nearest first.
    pub(crate) fn new(story: &'a Story, near: &'a [Near], identity: &Identity) -> Self {
        let matches: Vec<Match<'_>> =
            near.iter().map(|near| Match { id: &near.id, distance: near.distance }).collect();
        Self {
            id: &story.document.id,
            lang: &story.lang,
            lang_confidence: story.lang_confidence,
            simhash: story.document.hash.to_string(),
            min_distance: near.first().map_or(0, |near| near.distance),
            matches,
            k: identity.k(),
            features: identity.features().name(),
            ts: Timestamp::wall().to_rfc3339(),
        }
    }
}

/// What is read of a line that is there already.
#[derive(Deserialize)]
struct Known {
    id: DocId,
    lang: String,
    simhash: String,
    matches: Vec<KnownMatch>,
}

#[derive(Deserialize)]
struct KnownMatch {
    id: DocId,
}

/// Where flags go, and which are there.
#[derive(Debug)]
pub(crate) struct Flags {
    out: Out,
    lines: Vec<u8>,
    /// Hashes of what was flagged: 16 bytes instead of some hundred.
    known: HashSet<u128>,
    pairs: HashSet<u128>,
    keys: [RandomState; 2],
}

#[derive(Debug)]
enum Out {
    Stdout { is_terminal: bool },
    File { file: File, path: PathBuf, is_regular: bool },
}

impl Flags {
    /// Flags on stdout.
    pub(crate) fn stdout() -> Self {
        Self::to(Out::Stdout { is_terminal: io::stdout().is_terminal() })
    }

    fn to(out: Out) -> Self {
        let keys = [RandomState::new(), RandomState::new()];
        Self { out, lines: Vec::new(), known: HashSet::new(), pairs: HashSet::new(), keys }
    }

    /// Flags behind those that a file has. A last line without its end is what a kill left: it is cut off.
    ///
    /// # Errors
    /// The file cannot be opened or read, another process writes it, or it has something else than flags.
    pub(crate) fn append(path: &Path) -> Outcome<Self> {
        if path == Path::new("-") {
            return Ok(Self::stdout());
        }
        let (file, is_regular) = opened(path)?;
        let mut flags = Self::to(Out::File { file, path: path.to_owned(), is_regular });
        if is_regular {
            flags.read(path)?;
        }
        Ok(flags)
    }

    /// Flags in place of what a file has.
    ///
    /// # Errors
    /// The file cannot be opened, another process writes it, or it has something else than flags.
    pub(crate) fn replace(path: &Path) -> Outcome<Self> {
        let mut flags = Self::append(path)?;
        if let Out::File { file, is_regular: true, .. } = &mut flags.out {
            file.set_len(0).and_then(|()| file.rewind()).map_err(|error| failed(path, &error))?;
        }
        flags.known.clear();
        flags.pairs.clear();
        Ok(flags)
    }

    fn read(&mut self, path: &Path) -> Outcome<()> {
        let Out::File { file, .. } = &self.out else { return Ok(()) };
        let mut reader =
            BufReader::with_capacity(1 << 16, file.try_clone().map_err(|error| failed(path, &error))?);
        let (mut line, mut number, mut whole, mut foreign) = (Vec::new(), 0_u64, 0_u64, 0_u64);
        loop {
            line.clear();
            let read = reader.read_until(b'\n', &mut line).map_err(|error| failed(path, &error))?;
            if line.last() != Some(&b'\n') {
                break;
            }
            number += 1;
            whole += read as u64;
            match serde_json::from_slice::<Known>(&line) {
                Ok(known) => self.learn(&known),
                Err(_) if line.iter().all(u8::is_ascii_whitespace) => {}
                Err(_) if number == 1 => {
                    let path = escape(&path.to_string_lossy()).into_owned();
                    return Err(Failure::usage(format!(
                        "--flags {path}: it has something else than flags; name another file"
                    )));
                }
                Err(_) => foreign += 1,
            }
        }
        if foreign > 0 {
            let lines = counted(foreign, "line");
            warn(&format!("{}: {lines} are no flags; they stay, and do not count", path.display()));
        }
        let Out::File { file, .. } = &mut self.out else { return Ok(()) };
        if number == 0 && !line.is_empty() && !b"{\"id\":".starts_with(&line[..line.len().min(6)]) {
            let path = escape(&path.to_string_lossy()).into_owned();
            return Err(Failure::usage(format!(
                "--flags {path}: it has something else than flags; name another file"
            )));
        }
        if !line.is_empty() {
            warn(&format!("{}: the last line has no end and is cut off", path.display()));
        }
        let cut = file.set_len(whole).and_then(|()| file.seek(SeekFrom::Start(whole)));
        cut.map(drop).map_err(|error| failed(path, &error))
    }

    fn learn(&mut self, known: &Known) {
        let (Ok(language), Ok(hash)) = (Language::parse(&known.lang), known.simhash.parse()) else { return };
        let key = self.key(&language, &known.id, &hash);
        self.known.insert(key);
        for other in &known.matches {
            let key = self.pair(&language, &known.id, &other.id);
            self.pairs.insert(key);
        }
    }

    /// Whether a document was flagged with this fingerprint in an earlier run.
    pub(crate) fn has(&self, story: &Story) -> bool {
        let document = &story.document;
        !self.known.is_empty()
            && self.known.contains(&self.key(&document.language, &document.id, &document.hash))
    }

    /// Whether `of` was flagged as a near-duplicate of `original` in an earlier run.
    pub(crate) fn has_pair(&self, language: &Language, of: &DocId, original: &DocId) -> bool {
        !self.pairs.is_empty() && self.pairs.contains(&self.pair(language, of, original))
    }

    fn key(&self, language: &Language, id: &DocId, hash: &SimHash) -> u128 {
        self.hash(&(language, id, hash))
    }

    fn pair(&self, language: &Language, of: &DocId, original: &DocId) -> u128 {
        self.hash(&(language, of, original))
    }

    /// Of this process only. Two keys of 64 bits: among a billion flags, one in 10^20 is taken for another.
    fn hash(&self, value: &impl std::hash::Hash) -> u128 {
        let [high, low] = &self.keys;
        u128::from(high.hash_one(value)) << 64 | u128::from(low.hash_one(value))
    }

    /// Adds a line.
    ///
    /// # Errors
    /// Never, for what a line can have; it is serde_json's to say.
    pub(crate) fn push(&mut self, line: &FlagLine<'_>) -> Outcome<()> {
        self.push_json(line)
    }

    /// Adds any line.
    pub(crate) fn push_json(&mut self, line: &impl Serialize) -> Outcome<()> {
        serde_json::to_writer(&mut self.lines, line)?;
        self.lines.push(b'\n');
        Ok(())
    }

    /// Writes the lines that were added, in whole lines, to where the end of the process by any means loses nothing of them; to
    /// the disk if `durable`.
    ///
    /// # Errors
    /// stdout is closed; the disk is full or fails.
    pub(crate) fn flush(&mut self, durable: bool) -> Outcome<()> {
        if self.lines.is_empty() {
            return Ok(());
        }
        match &mut self.out {
            Out::Stdout { is_terminal } => {
                let mut stdout = io::stdout().lock();
                if *is_terminal {
                    stdout.write_all(escape_json(&String::from_utf8_lossy(&self.lines)).as_bytes())?;
                } else {
                    stdout.write_all(&self.lines)?;
                }
                stdout.flush()?;
            }
            Out::File { file, path, .. } => {
                file.write_all(&self.lines).map_err(|error| failed(path, &error))?;
            }
        }
        self.lines.clear();
        if durable { self.sync() } else { Ok(()) }
    }

    /// Makes durable what was written.
    ///
    /// # Errors
    /// The disk is full or fails.
    pub(crate) fn sync(&self) -> Outcome<()> {
        match &self.out {
            Out::File { file, path, .. } => files::sync(file).map_err(|error| failed(path, &error)),
            Out::Stdout { .. } => Ok(()),
        }
    }
}

fn opened(path: &Path) -> Outcome<(File, bool)> {
    let named =
        |error: &io::Error| Failure::usage(format!("--flags {}: {error}", escape(&path.to_string_lossy())));
    let is_there = path.try_exists().map_err(|error| named(&error))?;
    let is_regular = !is_there || path.metadata().map_err(|error| named(&error))?.is_file();
    let file = files::open_write(path).map_err(|error| named(&error))?;
    match file.try_lock() {
        Err(TryLockError::WouldBlock) if is_regular => Err(Failure::crawl(format!(
            "--flags {}: another process writes it; wait for its end, or name another file",
            escape(&path.to_string_lossy())
        ))),
        // A file system without locks is no reason not to write.
        _ => Ok((file, is_regular)),
    }
}

fn failed(path: &Path, error: &io::Error) -> Failure {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    let advice = match error.kind() {
        StorageFull | QuotaExceeded | FileTooLarge => "; make room, then run the same command again",
        _ => "",
    };
    Failure::crawl(format!("writing the flags to {}: {error}{advice}", escape(&path.to_string_lossy())))
}

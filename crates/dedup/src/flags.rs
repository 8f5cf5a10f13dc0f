//! The flags: one JSON line for each document that has near-duplicates.

use std::collections::HashSet;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use huntsman_detect::near::{DocId, Identity, Language, NearMatch};
use huntsman_detect::simhash::SimHash;
use huntsman_files::{self as files, Lock};
use huntsman_text::time::rfc3339;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::record::Story;
use crate::warning::{Warning, Warnings};

/// A line of flags: a document, and the indexed documents that are near to it.
#[derive(Debug, Serialize)]
pub struct FlagLine<'a> {
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
    /// The line for a document and the documents that are near to it, the nearest first.
    pub fn new(story: &'a Story, near: &'a [NearMatch], identity: &Identity) -> Self {
        let matches: Vec<Match<'_>> =
            near.iter().map(|near| Match { id: &near.id, distance: near.distance }).collect();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            id: &story.document.id,
            lang: &story.lang,
            lang_confidence: story.lang_confidence,
            simhash: story.document.hash.to_string(),
            min_distance: near.first().map_or(0, |near| near.distance),
            matches,
            k: identity.k(),
            features: identity.features().name(),
            ts: rfc3339(u64::try_from(now.as_micros()).unwrap_or(u64::MAX)),
        }
    }
}

/// The fields that are read from an existing line.
#[derive(Deserialize)]
struct KnownFlag {
    id: DocId,
    lang: String,
    simhash: String,
    matches: Vec<KnownMatch>,
}

#[derive(Deserialize)]
struct KnownMatch {
    id: DocId,
}

/// The output of flags, and the set of flags that were written already. The output is a file, which is locked as long as this value lives,
/// or any other writer.
#[derive(Debug)]
pub struct Flags {
    out: Output,
    lines: Vec<u8>,
    /// Hashes of the flagged pairs: 16 bytes each instead of some hundred.
    known: HashSet<u128>,
    pairs: HashSet<u128>,
    keys: [RandomState; 2],
}

enum Output {
    Writer(Box<dyn Write + Send>),
    File { file: Lock, path: PathBuf, is_regular: bool },
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Writer(_) => f.write_str("Writer"),
            Self::File { path, .. } => f.debug_tuple("File").field(path).finish(),
        }
    }
}

impl Flags {
    /// Writes flags to a writer, from which nothing is read. It gets whole lines, several at a time.
    pub fn to(writer: impl Write + Send + 'static) -> Self {
        Self::new(Output::Writer(Box::new(writer)))
    }

    fn new(out: Output) -> Self {
        let keys = [RandomState::new(), RandomState::new()];
        Self { out, lines: Vec::new(), known: HashSet::new(), pairs: HashSet::new(), keys }
    }

    /// Appends flags to a file and reads those that it has. If its last line has no end, a killed run left it, and it is cut off. A line
    /// with a NUL byte was not written whole before the power was cut, as nothing that was synced has one; it is cut off with all that
    /// follows. The documents of these flags are not in the index, so the flags are written again.
    ///
    /// # Errors
    /// The file cannot be opened or read, another process is writing it, or it contains something other than flags.
    pub fn append(path: &Path, warnings: &Warnings) -> Result<Self, Error> {
        let (file, is_regular) = opened(path)?;
        let mut flags = Self::new(Output::File { file, path: path.to_owned(), is_regular });
        if is_regular {
            flags.read(path, warnings)?;
        }
        Ok(flags)
    }

    /// Replaces the content of a file with new flags.
    ///
    /// # Errors
    /// The file cannot be opened, another process is writing it, or it contains something other than flags.
    pub fn replace(path: &Path, warnings: &Warnings) -> Result<Self, Error> {
        let mut flags = Self::append(path, warnings)?;
        if let Output::File { file, is_regular: true, .. } = &mut flags.out {
            file.set_len(0).and_then(|()| file.rewind()).map_err(|error| failed(path, error))?;
        }
        flags.known.clear();
        flags.pairs.clear();
        Ok(flags)
    }

    fn read(&mut self, path: &Path, warnings: &Warnings) -> Result<(), Error> {
        let Output::File { file, .. } = &self.out else { return Ok(()) };
        let mut reader =
            BufReader::with_capacity(1 << 16, file.try_clone().map_err(|error| failed(path, error))?);
        let (mut line, mut number, mut whole, mut foreign) = (Vec::new(), 0_u64, 0_u64, 0_u64);
        let mut is_torn = false;
        loop {
            line.clear();
            let read = reader.read_until(b'\n', &mut line).map_err(|error| failed(path, error))?;
            if line.is_empty() {
                break;
            }
            is_torn = line.contains(&0) || line.last() != Some(&b'\n');
            if is_torn {
                break;
            }
            number += 1;
            whole += read as u64;
            match serde_json::from_slice::<KnownFlag>(&line) {
                Ok(known) => self.learn(&known),
                Err(_) if line.iter().all(u8::is_ascii_whitespace) => {}
                Err(_) if number == 1 => {
                    return Err(foreign_file(path));
                }
                Err(_) => foreign += 1,
            }
        }
        if foreign > 0 {
            warnings.tell(&Warning::ForeignFlags { path: path.to_owned(), lines: foreign });
        }
        let Output::File { file, .. } = &mut self.out else { return Ok(()) };
        if is_torn && number == 0 && !is_torn_flag(&line) {
            return Err(foreign_file(path));
        }
        if is_torn {
            warnings.tell(&Warning::TornFlags { path: path.to_owned() });
        }
        let cut = file.set_len(whole).and_then(|()| file.seek(SeekFrom::Start(whole)));
        cut.map(drop).map_err(|error| failed(path, error))
    }

    fn learn(&mut self, known: &KnownFlag) {
        let (Ok(language), Ok(hash)) = (Language::parse(&known.lang), known.simhash.parse()) else { return };
        let key = self.key(&language, &known.id, &hash);
        self.known.insert(key);
        for other in &known.matches {
            let key = self.pair(&language, &known.id, &other.id);
            self.pairs.insert(key);
        }
    }

    /// Whether a document was flagged with this fingerprint in an earlier run.
    pub fn has(&self, story: &Story) -> bool {
        let document = &story.document;
        !self.known.is_empty()
            && self.known.contains(&self.key(&document.language, &document.id, &document.hash))
    }

    /// Whether `of` was flagged as a near-duplicate of `original` in an earlier run.
    pub fn has_pair(&self, language: &Language, of: &DocId, original: &DocId) -> bool {
        !self.pairs.is_empty() && self.pairs.contains(&self.pair(language, of, original))
    }

    fn key(&self, language: &Language, id: &DocId, hash: &SimHash) -> u128 {
        self.hash(&(language, id, hash))
    }

    fn pair(&self, language: &Language, of: &DocId, original: &DocId) -> u128 {
        self.hash(&(language, of, original))
    }

    /// The hash is valid in this process only. It has two keys of 64 bits: among a billion flags, one in 10^20 is mistaken for another.
    fn hash(&self, value: &impl std::hash::Hash) -> u128 {
        let [high, low] = &self.keys;
        u128::from(high.hash_one(value)) << 64 | u128::from(low.hash_one(value))
    }

    /// Adds a line to the buffer; [`flush`](Self::flush) writes it.
    pub fn push(&mut self, line: &FlagLine<'_>) {
        serde_json::to_writer(&mut self.lines, line)
            .expect("texts and numbers are JSON, and memory takes them");
        self.lines.push(b'\n');
    }

    /// Writes the buffered lines, always whole, to the operating system, so that they survive any end of the process; with `durable` also
    /// to the disk.
    ///
    /// # Errors
    /// The writer fails; the disk is full or fails.
    pub fn flush(&mut self, durable: bool) -> Result<(), Error> {
        if self.lines.is_empty() {
            return Ok(());
        }
        match &mut self.out {
            Output::Writer(writer) => {
                writer.write_all(&self.lines).and_then(|()| writer.flush()).map_err(Error::Output)?;
            }
            Output::File { file, path, .. } => {
                file.write_all(&self.lines).map_err(|error| failed(path, error))?;
            }
        }
        self.lines.clear();
        if durable { self.sync() } else { Ok(()) }
    }

    /// Makes the written lines durable.
    ///
    /// # Errors
    /// The disk is full or fails.
    pub fn sync(&self) -> Result<(), Error> {
        match &self.out {
            Output::File { file, path, .. } => files::sync(file).map_err(|error| failed(path, error)),
            Output::Writer(_) => Ok(()),
        }
    }
}

fn opened(path: &Path) -> Result<(Lock, bool), Error> {
    let named = |error: io::Error| Error::Flags { path: path.to_owned(), message: error.to_string() };
    let is_there = path.try_exists().map_err(named)?;
    let is_regular = !is_there || path.metadata().map_err(named)?.is_file();
    let file = files::open_write(path).map_err(named)?;
    match Lock::exclusive_if_supported(file) {
        Ok(file) => Ok((file, is_regular)),
        Err(_) if is_regular => Err(Error::FlagsLocked { path: path.to_owned() }),
        Err(refused) => Ok((Lock::without(refused.file), is_regular)),
    }
}

/// Whether the first line of a file may be the rest of a flag that was not written whole. After a power cut whole sectors of it may be zero.
fn is_torn_flag(line: &[u8]) -> bool {
    const BEGIN: &[u8] = b"{\"id\":";
    const SECTOR: usize = 512;
    let zeros = line.iter().take_while(|byte| **byte == 0).count();
    let begins = line.len().min(BEGIN.len());
    let is_text = || line.iter().all(|byte| *byte == 0 || *byte == b'\n' || *byte >= b' ');
    line[..begins] == BEGIN[..begins]
        || zeros > 0 && (zeros == line.len() || zeros.is_multiple_of(SECTOR)) && is_text()
}

fn foreign_file(path: &Path) -> Error {
    let message = "it has something else than flags; name another file".to_owned();
    Error::Flags { path: path.to_owned(), message }
}

fn failed(path: &Path, source: io::Error) -> Error {
    Error::FlagsFile { path: path.to_owned(), source }
}

//! Reads fingerprints from files: exported folders, Parquet, JSON Lines, CSV and TSV.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use huntsman_detect::near::{DocId, Language};
use huntsman_detect::simhash::{Features, SimHash};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use xxhash_rust::xxh3::Xxh3Default;

use crate::done::{DONE, Done};
use crate::error::{Error, Result};
use crate::parquet_file::{ParquetFile, Value};
use crate::row::{Id, Row, whole};

/// The version of the format of exports.
pub(crate) const VERSION: &str = "1";

/// The names of the columns of foreign files, where they differ from `id` (or `id_text`), `lang`, `hi` and `lo`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Columns {
    id: Option<String>,
    lang: Option<String>,
    hi: Option<String>,
    lo: Option<String>,
    fp: Option<String>,
}

impl FromStr for Columns {
    type Err = String;

    /// Parses a list such as `id=story_id,hi=h1,lo=h2`.
    fn from_str(list: &str) -> Result<Self, String> {
        let mut columns = Self::default();
        for pair in list.split(',') {
            let (name, of) = pair.split_once('=').ok_or_else(|| format!("{pair:?}: use NAME=COLUMN"))?;
            let place = match name.trim() {
                "id" => &mut columns.id,
                "lang" => &mut columns.lang,
                "hi" => &mut columns.hi,
                "lo" => &mut columns.lo,
                "fp" => &mut columns.fp,
                other => return Err(format!("{other:?}: the names are id, lang, hi, lo and fp")),
            };
            *place = Some(of.trim().to_owned());
        }
        Ok(columns)
    }
}

impl Columns {
    /// The names to look for; the first that a file has counts.
    fn names(&self, what: Part) -> Vec<&str> {
        let (chosen, default): (_, &[&str]) = match what {
            Part::Id => (&self.id, &["id", "id_text"]),
            Part::Lang => (&self.lang, &["lang"]),
            Part::Hi => (&self.hi, &["hi"]),
            Part::Lo => (&self.lo, &["lo"]),
            Part::Fp => (&self.fp, &["fp", "simhash"]),
        };
        chosen.as_deref().map_or_else(|| default.to_vec(), |name| vec![name])
    }

    fn find(&self, what: Part, has: impl Fn(&str) -> Option<usize>) -> Option<usize> {
        self.names(what).into_iter().find_map(has)
    }
}

#[derive(Clone, Copy, Debug)]
enum Part {
    Id,
    Lang,
    Hi,
    Lo,
    Fp,
}

/// Which files are read, and how.
#[derive(Clone, Debug, Default)]
pub struct Input {
    /// Files and exported folders.
    pub paths: Vec<PathBuf>,
    /// The names of columns.
    pub columns: Columns,
    /// The language of rows that name none.
    pub lang: Option<Language>,
    /// The features that the fingerprints must be of; `None` if all that agree will do.
    pub features: Option<Features>,
}

/// A file of the input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InputFile {
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
    /// The time of the last change in nanoseconds, so that a join does not go on with another file.
    pub(crate) changed: u64,
}

/// The files of an input, and what an export says of them.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) files: Vec<InputFile>,
    pub(crate) features: Option<Features>,
}

impl Input {
    /// Finds the files, and checks those that were exported.
    pub(crate) fn find(&self) -> Result<Found> {
        let mut found = Found { files: Vec::new(), features: self.features };
        for path in &self.paths {
            let metadata = std::fs::metadata(path).map_err(|error| Error::input(path, error))?;
            if !metadata.is_dir() {
                found.add(path, None)?;
                continue;
            }
            let done = Done::read(path)?.ok_or_else(|| {
                Error::input(
                    path,
                    format!(
                        "has no {DONE}: the export was not finished, or this is no export; name the files"
                    ),
                )
            })?;
            done.check_version(path)?;
            for part in &done.files {
                let file = path.join(&part.name);
                let bytes = std::fs::metadata(&file).map_err(|error| Error::input(&file, error))?.len();
                if bytes != part.bytes || hash_of(&file)? != part.xxh3 {
                    let message =
                        format!("is not the file that {DONE} lists; export again, or copy it again");
                    return Err(Error::input(&file, message));
                }
                found.add(&file, done.features)?;
            }
        }
        Ok(found)
    }

    /// Calls a function for each row of a file: `None` is a row without a fingerprint.
    pub(crate) fn read(&self, file: &Path, each: &mut dyn FnMut(Option<Row>) -> Result<()>) -> Result<()> {
        match extension(file).as_str() {
            "parquet" => self.parquet(file, each),
            "csv" => self.separated(file, b',', each),
            "tsv" => self.separated(file, b'\t', each),
            "jsonl" | "ndjson" => self.lines(file, each),
            _ => Err(Error::input(
                file,
                "is of no known kind; the name ends with .parquet, .jsonl, .csv or .tsv, the texts also with .gz or .zst",
            )),
        }
    }

    fn parquet(&self, path: &Path, each: &mut dyn FnMut(Option<Row>) -> Result<()>) -> Result<()> {
        let file = ParquetFile::open(path)?;
        let names = file.columns();
        let find = |what| self.columns.find(what, |name| names.iter().position(|have| have == name));
        let columns = Chosen::of(&find, self, path, &names)?;
        let wanted = columns.all();
        file.read(&wanted, &mut |values| {
            let at =
                |column: usize| &values[wanted.iter().position(|one| *one == column).expect("it is wanted")];
            each(columns.row(&at, self, path)?)
        })
    }

    fn separated(
        &self,
        path: &Path,
        delimiter: u8,
        each: &mut dyn FnMut(Option<Row>) -> Result<()>,
    ) -> Result<()> {
        let mut reader = csv::ReaderBuilder::new().delimiter(delimiter).from_reader(open(path)?);
        let names: Vec<String> =
            reader.headers().map_err(|error| Error::input(path, error))?.iter().map(str::to_owned).collect();
        let trimmed = |name: &String| name.trim_start_matches('\u{feff}').to_owned();
        let find =
            |what| self.columns.find(what, |name| names.iter().map(trimmed).position(|have| have == name));
        let columns = Chosen::of(&find, self, path, &names)?;
        for record in reader.records() {
            let record = record.map_err(|error| Error::input(path, error))?;
            let values: Vec<Value> = record.iter().map(text_value).collect();
            each(columns.row(&|column| &values[column], self, path)?)?;
        }
        Ok(())
    }

    fn lines(&self, path: &Path, each: &mut dyn FnMut(Option<Row>) -> Result<()>) -> Result<()> {
        // The longest id with its escapes; a longer line is no fingerprint.
        const LONGEST: u64 = 256 << 10;
        let mut reader = open(path)?;
        let mut line = Vec::new();
        for number in 1_u64.. {
            line.clear();
            (&mut reader).take(LONGEST).read_until(b'\n', &mut line).map_err(Error::reading(path))?;
            if line.is_empty() {
                break;
            }
            if line.trim_ascii().is_empty() {
                continue;
            }
            let wrong = |message: String| Error::input(path, format!("line {number}: {message}"));
            let json: Json = serde_json::from_slice(&line).map_err(|error| wrong(error.to_string()))?;
            each(self.object(&json).map_err(wrong)?)?;
        }
        Ok(())
    }

    fn object(&self, json: &Json) -> Result<Option<Row>, String> {
        let field = |what| self.columns.names(what).into_iter().find_map(|name| json.get(name));
        let Some(id) = field(Part::Id) else {
            return Err(format!("no field {}; each row needs an id", self.columns.names(Part::Id)[0]));
        };
        let value = |what| field(what).map_or(Value::Missing, json_value);
        let id = match id {
            Json::String(text) => DocId::from(text.as_str()),
            Json::Number(number) if number.is_u64() => DocId::Number(number.as_u64().unwrap_or_default()),
            Json::Null => return Ok(None),
            other => return Err(format!("id {other}: ids are whole numbers or strings")),
        };
        let hash = match value(Part::Fp) {
            Value::Missing => pair_of(&value(Part::Hi), &value(Part::Lo))?,
            fp => fingerprint(&fp)?,
        };
        let lang = match value(Part::Lang) {
            Value::Bytes(name) => Some(name),
            _ => None,
        };
        make(Some((&id).into()), lang.as_deref(), hash, self.lang)
    }
}

/// The columns of a file, by number.
#[derive(Debug)]
struct Chosen {
    id: usize,
    lang: Option<usize>,
    halves: Option<[usize; 2]>,
    fp: Option<usize>,
}

impl Chosen {
    fn of(
        find: &dyn Fn(Part) -> Option<usize>,
        input: &Input,
        path: &Path,
        names: &[String],
    ) -> Result<Self> {
        let missing = |what: Part| {
            let (name, have) = (input.columns.names(what)[0], names.join(", "));
            Error::input(path, format!("has no column {name}; it has {have}; --columns names others"))
        };
        let lang = find(Part::Lang);
        if lang.is_none() && input.lang.is_none() {
            let have = names.join(", ");
            let message =
                format!("has no column lang; it has {have}; --columns lang=NAME or --lang LANG names one");
            return Err(Error::input(path, message));
        }
        let id = find(Part::Id).ok_or_else(|| missing(Part::Id))?;
        let halves = find(Part::Hi).zip(find(Part::Lo)).map(|(hi, lo)| [hi, lo]);
        let fp = if halves.is_none() || input.columns.fp.is_some() { find(Part::Fp) } else { None };
        if fp.is_none() && (input.columns.fp.is_some() || halves.is_none()) {
            return Err(missing(if input.columns.fp.is_some() { Part::Fp } else { Part::Hi }));
        }
        Ok(Self { id, lang, halves: halves.filter(|_| fp.is_none()), fp })
    }

    fn all(&self) -> Vec<usize> {
        let mut all = vec![self.id];
        all.extend(self.lang);
        all.extend(self.halves.into_iter().flatten());
        all.extend(self.fp);
        all
    }

    fn row<'v>(&self, at: &dyn Fn(usize) -> &'v Value, input: &Input, path: &Path) -> Result<Option<Row>> {
        let made = (|| {
            let id = match at(self.id) {
                Value::Missing => None,
                Value::Int(number) => Some(Id::Number(*number)),
                Value::Large(number) => Some(Id::Text(number.to_string().into())),
                Value::Bytes(bytes) => {
                    let text = str::from_utf8(bytes).map_err(|_| "an id is not UTF-8".to_owned())?;
                    Some(Id::Text(text.into()))
                }
            };
            let hash = match (self.fp, self.halves) {
                (Some(fp), _) => fingerprint(at(fp))?,
                (None, Some([hi, lo])) => pair_of(at(hi), at(lo))?,
                (None, None) => None,
            };
            match self.lang.map(at) {
                Some(Value::Bytes(lang)) => make(id, Some(lang), hash, input.lang),
                _ => make(id, None, hash, input.lang),
            }
        })();
        made.map_err(|message: String| Error::input(path, message))
    }
}

fn make(
    id: Option<Id>,
    lang: Option<&[u8]>,
    hash: Option<u128>,
    default: Option<Language>,
) -> Result<Option<Row>, String> {
    let (Some(id), Some(hash)) = (id, hash) else { return Ok(None) };
    if let Id::Text(text) = &id
        && text.len() > DocId::MAX_BYTES
    {
        return Err(format!("an id has {} bytes, and at most {} are possible", text.len(), DocId::MAX_BYTES));
    }
    let language = match lang.filter(|lang| !lang.is_empty()) {
        Some(lang) => {
            let name = String::from_utf8_lossy(lang);
            Language::parse(&name).map_err(|error| format!("lang {name:?}: {error}"))?
        }
        None => match default {
            Some(language) => language,
            None => return Ok(None),
        },
    };
    Ok(Some(Row { language, id, hash }))
}

fn pair_of(hi: &Value, lo: &Value) -> Result<Option<u128>, String> {
    let number = |value: &Value| match value {
        Value::Int(number) => Ok(Some(*number)),
        Value::Large(number) => Ok(Some(*number as i64)),
        Value::Missing => Ok(None),
        Value::Bytes(_) => Err("hi and lo are whole numbers of 64 bits".to_owned()),
    };
    Ok(number(hi)?.zip(number(lo)?).map(|(hi, lo)| whole(hi, lo)))
}

/// A fingerprint of 16 bytes, or of 32 hexadecimal digits.
fn fingerprint(value: &Value) -> Result<Option<u128>, String> {
    match value {
        Value::Missing => Ok(None),
        Value::Bytes(bytes) => match <[u8; 16]>::try_from(bytes.as_slice()) {
            Ok(bytes) => Ok(Some(u128::from_be_bytes(bytes))),
            Err(_) => {
                let text = String::from_utf8_lossy(bytes);
                let hash: SimHash = text.parse().map_err(|error| format!("fingerprint {text:?}: {error}"))?;
                Ok(Some(hash.0))
            }
        },
        _ => Err("a fingerprint has 16 bytes or 32 hexadecimal digits".to_owned()),
    }
}

/// A field of CSV: a whole number in its usual spelling, else a text.
pub(crate) fn text_value(text: &str) -> Value {
    if text.is_empty() {
        return Value::Missing;
    }
    match text.parse::<i64>() {
        Ok(number) if number.to_string() == text => Value::Int(number),
        _ => Value::Bytes(text.as_bytes().to_vec()),
    }
}

pub(crate) fn json_value(json: &Json) -> Value {
    match json {
        Json::Number(number) => {
            number.as_i64().map(Value::Int).or(number.as_u64().map(Value::Large)).unwrap_or(Value::Missing)
        }
        Json::String(text) => Value::Bytes(text.as_bytes().to_vec()),
        _ => Value::Missing,
    }
}

impl Found {
    fn add(&mut self, path: &Path, features: Option<Features>) -> Result<()> {
        let mut features = features;
        if extension(path) == "parquet" {
            let file = ParquetFile::open(path)?;
            if let Some(version) = file.metadata("huntsman.version").filter(|version| *version != VERSION) {
                let message =
                    format!("has version {version} of the format, and this program reads {VERSION}");
                return Err(Error::input(path, message));
            }
            features = features.or(file.metadata("huntsman.features").and_then(|name| name.parse().ok()));
        }
        match (self.features, features) {
            (Some(wanted), Some(has)) if wanted != has => {
                let message = format!(
                    "has fingerprints of {has}, and the others are of {wanted}: they cannot be compared"
                );
                return Err(Error::input(path, message));
            }
            (None, has) => self.features = has,
            _ => {}
        }
        let metadata = std::fs::metadata(path).map_err(|error| Error::input(path, error))?;
        let changed =
            metadata.modified().ok().and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
        let changed = changed.map_or(0, |time| time.as_nanos() as u64);
        self.files.push(InputFile { path: path.to_owned(), bytes: metadata.len(), changed });
        Ok(())
    }

    /// The rows of the files, or an estimate of them.
    pub(crate) fn rows(&self) -> u64 {
        // A line of text has some 60 bytes.
        let rows = |file: &InputFile| match extension(&file.path).as_str() {
            "parquet" => ParquetFile::open(&file.path).map_or(0, |file| file.rows()),
            _ => file.bytes / 60,
        };
        self.files.iter().map(rows).sum()
    }
}

/// The extension of a name, without that of a compression.
fn extension(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let name = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst")).unwrap_or(&name);
    name.rsplit_once('.').map_or_else(String::new, |(_, extension)| extension.to_owned())
}

pub(crate) fn open(path: &Path) -> Result<Box<dyn BufRead>> {
    let file = BufReader::with_capacity(1 << 18, File::open(path).map_err(Error::reading(path))?);
    let name = path.to_string_lossy();
    if name.ends_with(".gz") {
        return Ok(Box::new(BufReader::new(flate2::bufread::MultiGzDecoder::new(file))));
    }
    if name.ends_with(".zst") {
        let unpacked = zstd::Decoder::with_buffer(file).map_err(Error::reading(path))?;
        return Ok(Box::new(BufReader::new(unpacked)));
    }
    Ok(Box::new(file))
}

fn hash_of(path: &Path) -> Result<String> {
    let mut file = File::open(path).map_err(Error::reading(path))?;
    let (mut hash, mut buffer) = (Xxh3Default::new(), vec![0; 1 << 20]);
    loop {
        match file.read(&mut buffer).map_err(Error::reading(path))? {
            0 => return Ok(format!("{:016x}", hash.digest())),
            read => hash.update(&buffer[..read]),
        }
    }
}

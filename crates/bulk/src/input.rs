//! Reads fingerprints from files: exported folders, Parquet, JSON Lines, CSV and TSV.

use std::io::{BufRead, BufReader, Read};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use huntsman_detect::near::{DocId, Document, Language};
use huntsman_detect::simhash::{Features, SimHash};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use xxhash_rust::xxh3::Xxh3Default;

use crate::done::{DONE, Done};
use crate::error::{Error, Result};
use crate::parquet_file::{ParquetFile, Value};
use crate::place::{Place, Places};
use crate::row::{Id, Row, whole};

/// The version of the format of exports.
pub(crate) const VERSION: &str = "1";
/// The first bytes of a Parquet file.
const MAGIC: &[u8] = b"PAR1";
/// Of the metadata of an export: what all its ids were in the index.
pub(crate) const IDS: &str = "huntsman.ids";
pub(crate) const NUMBERS: &str = "numbers";

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
    /// Files and exported folders, also in a bucket: `s3://BUCKET/KEY`.
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
    /// The time of the last change, or what stands for the version of an object, so that a join does not go on with another file.
    pub(crate) changed: u64,
}

impl InputFile {
    /// The file as it was found.
    pub(crate) fn place(&self) -> Result<Place> {
        match Place::find(&self.path)? {
            Places::One(place) if place.bytes() == self.bytes && place.version() == self.changed => Ok(place),
            _ => Err(Error::input(&self.path, "was changed since the join began; join again with --fresh")),
        }
    }
}

/// The files of an input, and what an export says of them.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) files: Vec<InputFile>,
    pub(crate) features: Option<Features>,
    /// The rows of the files, or an estimate of them.
    pub(crate) rows: u64,
    /// Bytes of their ids that are texts, or an estimate of them.
    pub(crate) id_bytes: u64,
}

/// What is called for each row of a file: with `None` for one without a fingerprint, and the value of one more column.
type EachRow<'e> = &'e mut dyn FnMut(Option<Row>, &Value) -> Result<()>;

impl Input {
    /// Finds the files, and checks those that were exported.
    pub(crate) fn find(&self) -> Result<Found> {
        let mut found = Found { files: Vec::new(), features: self.features, rows: 0, id_bytes: 0 };
        for path in &self.paths {
            match Place::find(path)? {
                Places::One(place) => found.add(&place, None, self)?,
                Places::Folder(_) => found.add_export(path, self)?,
                Places::Matching(places) => {
                    places.iter().try_for_each(|place| found.add(place, None, self))?;
                }
            }
        }
        Ok(found)
    }

    /// Finds the files, and checks those that were exported, to read them outside of a join.
    ///
    /// # Errors
    /// There is no such file, it is not whole, it lacks a column, or its fingerprints are of other features.
    pub fn open(&self) -> Result<Fingerprints> {
        Ok(Fingerprints { found: self.find()?, input: self.clone() })
    }

    /// Calls a function for each row of a file: `None` is a row without a fingerprint.
    pub(crate) fn read(&self, place: &Place, each: &mut dyn FnMut(Option<Row>) -> Result<()>) -> Result<()> {
        self.read_with(place, None, &mut |row, _| each(row))
    }

    /// The same with the values of one more column.
    pub(crate) fn read_with(&self, place: &Place, more: Option<&str>, each: EachRow<'_>) -> Result<()> {
        match kind(place)?.as_str() {
            "parquet" => self.parquet(place, more, each),
            "csv" => self.separated(place, b',', more, each),
            "tsv" => self.separated(place, b'\t', more, each),
            "jsonl" | "ndjson" => self.lines(place, more, each),
            _ => Err(Error::input(
                place.path(),
                "is of no known kind; the name ends with .parquet, .jsonl, .csv or .tsv, the texts also with .gz or .zst",
            )),
        }
    }

    fn parquet(&self, place: &Place, more: Option<&str>, each: EachRow<'_>) -> Result<()> {
        let file = ParquetFile::open(place)?;
        let columns = self.columns_of(&file.columns(), more, place.path())?;
        let wanted = columns.all();
        file.read(&wanted, &mut |values| {
            let at =
                |column: usize| &values[wanted.iter().position(|one| *one == column).expect("it is wanted")];
            each(columns.row(&at, self, place.path())?, columns.more.map_or(&Value::Missing, at))
        })
    }

    /// The columns of a file that has these.
    fn columns_of(&self, names: &[String], more: Option<&str>, path: &Path) -> Result<Chosen> {
        let trimmed = |name: &String| name.trim_start_matches('\u{feff}').to_owned();
        let place = |name: &str| names.iter().map(trimmed).position(|have| have == name);
        let mut columns = Chosen::of(&|what| self.columns.find(what, place), self, path, names)?;
        if let Some(name) = more {
            let missing = || Error::input(path, format!("has no column {name}; it has {}", names.join(", ")));
            columns.more = Some(place(name).ok_or_else(missing)?);
        }
        Ok(columns)
    }

    fn separated(&self, place: &Place, delimiter: u8, more: Option<&str>, each: EachRow<'_>) -> Result<()> {
        let path = place.path();
        let mut reader = csv::ReaderBuilder::new().delimiter(delimiter).from_reader(unpacked(place)?);
        let names: Vec<String> =
            reader.headers().map_err(|error| Error::input(path, error))?.iter().map(str::to_owned).collect();
        let columns = self.columns_of(&names, more, path)?;
        for record in reader.records() {
            let record = record.map_err(|error| Error::input(path, error))?;
            let values: Vec<Value> = record.iter().map(text_value).collect();
            let row = columns.row(&|column| &values[column], self, path)?;
            each(row, columns.more.map_or(&Value::Missing, |column| &values[column]))?;
        }
        Ok(())
    }

    fn lines(&self, place: &Place, more: Option<&str>, each: EachRow<'_>) -> Result<()> {
        // The longest id with its escapes; a longer line is no fingerprint.
        const LONGEST: u64 = 256 << 10;
        let path = place.path();
        let mut reader = unpacked(place)?;
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
            let more = more.and_then(|name| json.get(name)).map_or(Value::Missing, json_value);
            each(self.object(&json).map_err(wrong)?, &more)?;
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
    /// One more column.
    more: Option<usize>,
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
        Ok(Self { id, lang, halves: halves.filter(|_| fp.is_none()), fp, more: None })
    }

    fn all(&self) -> Vec<usize> {
        let mut all = vec![self.id];
        all.extend(self.lang);
        all.extend(self.halves.into_iter().flatten());
        all.extend(self.fp);
        all.extend(self.more.filter(|more| !all.contains(more)));
        all
    }

    fn row<'v>(&self, at: &dyn Fn(usize) -> &'v Value, input: &Input, path: &Path) -> Result<Option<Row>> {
        let made = (|| {
            let id = match at(self.id) {
                Value::Missing => None,
                Value::Int(number) => Some(Id::Number(*number)),
                Value::Large(number) => Some(Id::Text(number.to_string().into())),
                Value::Float(number) => {
                    return Err(format!("id {number}: ids are whole numbers or texts"));
                }
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
        Value::Float(_) | Value::Bytes(_) => Err("hi and lo are whole numbers of 64 bits".to_owned()),
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
            let whole = number.as_i64().map(Value::Int).or(number.as_u64().map(Value::Large));
            whole.or(number.as_f64().map(Value::Float)).unwrap_or(Value::Missing)
        }
        Json::String(text) => Value::Bytes(text.as_bytes().to_vec()),
        _ => Value::Missing,
    }
}

impl Found {
    /// Adds the files of an exported folder.
    fn add_export(&mut self, folder: &Path, input: &Input) -> Result<()> {
        let done = Done::read(folder)?.ok_or_else(|| {
            let message =
                format!("has no {DONE}: the export was not finished, or this is no export; name the files");
            Error::input(folder, message)
        })?;
        done.check_version(folder)?;
        for part in &done.files {
            let wrong = || {
                let message = format!("is not the file that {DONE} lists; export again, or copy it again");
                Error::input(&folder.join(&part.name), message)
            };
            let place = Place::in_folder(folder, &part.name)?.ok_or_else(wrong)?;
            // The hash of an object would cost fetching it twice; its server has one of its own.
            if place.bytes() != part.bytes || place.is_local() && hash_of(&place)? != part.xxh3 {
                return Err(wrong());
            }
            self.add(&place, done.features, input)?;
        }
        Ok(())
    }

    fn add(&mut self, place: &Place, features: Option<Features>, input: &Input) -> Result<()> {
        let (path, mut features) = (place.path(), features);
        // Texts become a fifth when they are compressed, and a line has some 60 bytes besides a text id.
        let is_packed = path.extension().is_some_and(|end| end == "gz" || end == "zst");
        let unpacked = place.bytes() * if is_packed { 5 } else { 1 };
        let (mut rows, mut id_bytes) = (unpacked / 60, unpacked / 2);
        if kind(place)? == "parquet" {
            let file = ParquetFile::open(place)?;
            rows = file.rows();
            if let Some(version) = file.metadata("huntsman.version").filter(|version| *version != VERSION) {
                let message =
                    format!("has version {version} of the format, and this program reads {VERSION}");
                return Err(Error::input(path, message));
            }
            if let Some(name) = file.metadata("huntsman.features") {
                let unknown =
                    |_| Error::input(path, format!("has fingerprints of {name}, which this program lacks"));
                features = Some(name.parse().map_err(unknown)?);
            }
            id_bytes = file.text_bytes(input.columns_of(&file.columns(), None, path)?.id);
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
        self.rows += rows;
        self.id_bytes += id_bytes;
        self.files.push(InputFile { path: path.to_owned(), bytes: place.bytes(), changed: place.version() });
        Ok(())
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }
}

/// What is called for each row: its file, its number, and what it has.
type EachDocument<'e> = &'e mut dyn FnMut(&Path, u64, Result<Option<Document>, String>) -> ControlFlow<()>;

/// Fingerprints in files that were found and checked.
#[derive(Debug)]
pub struct Fingerprints {
    input: Input,
    found: Found,
}

impl Fingerprints {
    /// The features that the files name; `None` if none names any.
    pub fn features(&self) -> Option<Features> {
        self.found.features
    }

    /// The rows of the files, or an estimate of them.
    pub fn rows(&self) -> u64 {
        self.found.rows
    }

    /// Calls a function for each row, with its file and its number, from 1, until it breaks. A document is `None` for a row without a
    /// fingerprint, or an error for one that no index takes.
    ///
    /// Ids are as an index has them: an export of one that has only numbers gives numbers, even where they are above 2^63 and so texts in
    /// the files.
    ///
    /// # Errors
    /// A file cannot be read to its end; those behind it are not read.
    pub fn read(&self, each: EachDocument<'_>) -> Result<()> {
        for file in &self.found.files {
            let place = file.place()?;
            let are_numbers =
                kind(&place)? == "parquet" && ParquetFile::open(&place)?.metadata(IDS) == Some(NUMBERS);
            let mut number = 0;
            let read = self.input.read(&place, &mut |row| {
                number += 1;
                let document = row.map(|row| {
                    let id = row.id.into_doc_id(are_numbers)?;
                    Ok(Document { language: row.language, id, hash: SimHash(row.hash) })
                });
                match each(&file.path, number, document.transpose()) {
                    ControlFlow::Continue(()) => Ok(()),
                    ControlFlow::Break(()) => Err(Error::Stopped),
                }
            });
            match read {
                Err(Error::Stopped) => return Ok(()),
                read => read?,
            }
        }
        Ok(())
    }
}

/// The kind of a file: its extension, or what its first bytes say where there is none, as engines write files.
fn kind(place: &Place) -> Result<String> {
    let extension = extension(place.path());
    let is_parquet = extension.is_empty() && place.head(MAGIC.len())? == MAGIC;
    Ok(if is_parquet { "parquet".to_owned() } else { extension })
}

/// The extension of a name, without that of a compression.
fn extension(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let name = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst")).unwrap_or(&name);
    name.rsplit_once('.').map_or_else(String::new, |(_, extension)| extension.to_owned())
}

/// Reads a file of texts, compressed or not, as its name says.
pub(crate) fn unpacked(place: &Place) -> Result<Box<dyn BufRead>> {
    let (file, path) = (place.open()?, place.path());
    let name = path.to_string_lossy();
    if name.ends_with(".gz") {
        return Ok(Box::new(BufReader::new(flate2::bufread::MultiGzDecoder::new(file))));
    }
    if name.ends_with(".zst") {
        let unpacked = zstd::Decoder::with_buffer(file).map_err(Error::reading(path))?;
        return Ok(Box::new(BufReader::new(unpacked)));
    }
    Ok(file)
}

fn hash_of(place: &Place) -> Result<String> {
    let (mut file, mut hash, mut buffer) = (place.open()?, Xxh3Default::new(), vec![0; 1 << 20]);
    loop {
        match file.read(&mut buffer).map_err(Error::reading(place.path()))? {
            0 => return Ok(format!("{:016x}", hash.digest())),
            read => hash.update(&buffer[..read]),
        }
    }
}

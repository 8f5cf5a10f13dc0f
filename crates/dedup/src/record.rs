//! Documents: as they were read, and with their fingerprints.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use huntsman_detect::near::{DocId, Document, Language};
use huntsman_detect::simhash::{Features, SimHash};
use huntsman_html::{Scan, ScanOptions};
use huntsman_text::lang::{self, Lang};
use huntsman_text::words::Words;
use serde::Deserialize;
use serde_json::Value;

use crate::manifest::Manifest;
use crate::spelling;
use crate::text;

/// The place of a document in the input.
#[derive(Clone, Debug, PartialEq)]
pub struct Position {
    /// The file, or `stdin`.
    pub source: Arc<str>,
    /// The line, from 1; `None` if the file is the document.
    pub line: Option<u64>,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)?;
        match self.line {
            Some(line) => write!(f, ":{line}"),
            None => Ok(()),
        }
    }
}

/// A document as it was read.
#[derive(Debug)]
pub struct RawDocument {
    /// Its place in the input.
    pub position: Position,
    /// Its content.
    pub body: Body,
}

/// The content of a document as it was read.
#[derive(Debug)]
pub enum Body {
    /// A JSON object.
    Line(Vec<u8>),
    /// A file that is a document.
    File {
        /// Its path in the source, which is the id of the document.
        path: String,
        /// Whether it is HTML; plain text otherwise.
        is_html: bool,
        /// The content of the file.
        bytes: Vec<u8>,
    },
    /// A page, or the text of one, in an archive.
    Archived {
        /// Its id.
        id: String,
        /// Whether it is HTML; plain text otherwise.
        is_html: bool,
        /// The encoding that its server told.
        charset: Option<String>,
        /// Its language, if the archive tells it.
        lang: Option<String>,
        /// The content without codings.
        bytes: Vec<u8>,
    },
    /// A row of a table.
    Fingerprint(Document),
    /// A record of an archive that is no document, and why: `status` (other than 200), `media_type` (neither HTML nor plain text), or `revisit` (its
    /// content is in another record); or a row of a table, `without_fingerprint`.
    LeftOut(&'static str),
    /// The document could not be read; the text says why.
    Unreadable(String),
}

/// A document that could not be used, and why.
#[derive(Debug)]
pub struct RejectedDocument {
    /// Its place in the input.
    pub position: Position,
    /// What is wrong, and what to do about it.
    pub message: String,
}

impl fmt::Display for RejectedDocument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.position, self.message)
    }
}

impl std::error::Error for RejectedDocument {}

/// A document with its fingerprint.
#[derive(Debug)]
pub struct Story {
    /// Its place in the input.
    pub position: Position,
    /// Its id, its language and its fingerprint.
    pub document: Document,
    /// The language as it was given, or the code of the recognised one.
    pub lang: Box<str>,
    /// The confidence of the recognised language; `None` if the language was given.
    pub lang_confidence: Option<f64>,
    /// The number of words; `None` if only the fingerprint was given.
    pub words: Option<usize>,
    /// The time spent on HTML, and on words and fingerprint.
    pub(crate) took: [Duration; 2],
}

impl Story {
    /// Whether the document has no content.
    pub fn is_empty(&self) -> bool {
        self.document.hash == SimHash(0)
    }

    /// Whether it has fewer than this number of words.
    pub fn is_shorter_than(&self, words: usize) -> bool {
        self.words.is_some_and(|number| number < words)
    }
}

/// A line of the input. Other fields are ignored.
#[derive(Deserialize)]
struct Line<'a> {
    #[serde(default)]
    id: Value,
    /// The id of a record of a crawl, which has no `id`.
    #[serde(borrow, default)]
    url: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    lang: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    text: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    html: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    simhash: Option<Cow<'a, str>>,
    #[serde(default)]
    words: Option<usize>,
}

/// Makes stories from documents. Each thread has its own reader, which reuses its buffers.
#[derive(Debug)]
pub struct Reader {
    features: Features,
    /// The language of documents that name none.
    lang: Option<(Language, Box<str>)>,
    manifest: Option<Arc<Manifest>>,
    scan: Scan,
    words: Words,
}

impl Reader {
    /// Makes a reader that computes fingerprints of these features. `lang` is the language of documents that name none, and its spelling;
    /// without it, the language is recognised. With a list, documents that are not on it are skipped.
    pub fn new(
        features: Features,
        lang: Option<(Language, Box<str>)>,
        manifest: Option<Arc<Manifest>>,
    ) -> Self {
        Self { features, lang, manifest, scan: Scan::new(), words: Words::default() }
    }

    /// Makes a story of a document; `None` if the document is not on the list of ids.
    ///
    /// # Errors
    /// The document cannot be used; the error says why.
    pub fn read(&mut self, raw: RawDocument) -> Result<Option<Story>, RejectedDocument> {
        let RawDocument { position, body } = raw;
        let made = match &body {
            Body::Unreadable(message) => Err(message.clone()),
            Body::Line(bytes) => self.line(bytes, &position),
            Body::File { path, is_html, bytes } => self.file(path, *is_html, bytes, &position),
            Body::Archived { id, is_html, charset, lang, bytes } => {
                let text = huntsman_html::decode_body(bytes, charset.as_deref(), None).text;
                self.archived(id, *is_html, lang.as_deref(), &text, &position)
            }
            Body::Fingerprint(document) => self.fingerprint(document, &position),
            Body::LeftOut(_) => Ok(None),
        };
        self.scan.shrink_to(4 << 20);
        made.map_err(|message| RejectedDocument { position, message })
    }

    fn line(&mut self, bytes: &[u8], position: &Position) -> Result<Option<Story>, String> {
        let json = std::str::from_utf8(bytes).map_err(|error| text::not_utf8(error.valid_up_to()))?;
        let line: Line<'_> = serde_json::from_str(json).map_err(|error| not_json(&error))?;
        let id = match (line.id, line.url) {
            (Value::Null, Some(url)) => id_of(Value::String(url.into_owned()))?,
            (id, _) => id_of(id)?,
        };
        let mut lang = line.lang;
        if let Some(manifest) = &self.manifest {
            let Some(entry) = manifest.id(&id) else { return Ok(None) };
            lang = lang.or_else(|| entry.lang.as_deref().map(|lang| lang.to_owned().into()));
        }
        let lang = lang.as_deref().filter(|lang| !lang.is_empty());
        match (line.text, line.html, line.simhash) {
            (Some(text), ..) => self.text(position, id, StatedLang::given(lang), &text, Duration::ZERO),
            (None, Some(html), _) => self.html(position, id, lang, &html),
            (None, None, Some(hash)) => {
                let hash = hash.parse().map_err(|error| format!("simhash {hash:?}: {error}"))?;
                let Some((language, lang)) = self.language_of(lang)? else {
                    return Err("a fingerprint without a lang; add it, or use --lang".to_owned());
                };
                let document = Document { language, id, hash };
                let (took, words) = ([Duration::ZERO; 2], line.words);
                Ok(Some(Story {
                    position: position.clone(),
                    document,
                    lang,
                    lang_confidence: None,
                    words,
                    took,
                }))
            }
            (None, None, None) => Err("neither text nor html nor simhash; one of them is needed".to_owned()),
        }
    }

    fn file(
        &mut self,
        path: &str,
        is_html: bool,
        bytes: &[u8],
        position: &Position,
    ) -> Result<Option<Story>, String> {
        let (mut id, mut lang) = (DocId::from(path), None);
        if let Some(manifest) = self.manifest.clone() {
            let Some(entry) = manifest.path(path) else { return Ok(None) };
            (id, lang) = (entry.id.clone(), entry.lang.clone());
        }
        id.check().map_err(|error| error.to_string())?;
        if is_html {
            let html = huntsman_html::decode_body(bytes, None, None).text;
            self.html(position, id, lang.as_deref(), &html)
        } else {
            let text = text::plain(bytes)?;
            self.text(position, id, StatedLang::given(lang.as_deref()), &text, Duration::ZERO)
        }
    }

    fn archived(
        &mut self,
        id: &str,
        is_html: bool,
        lang: Option<&str>,
        text: &str,
        position: &Position,
    ) -> Result<Option<Story>, String> {
        let id = DocId::from(id);
        if self.manifest.as_ref().is_some_and(|manifest| manifest.id(&id).is_none()) {
            return Ok(None);
        }
        id.check().map_err(|error| error.to_string())?;
        match is_html {
            true => self.html(position, id, lang, text),
            false => self.text(position, id, StatedLang::given(lang), text, Duration::ZERO),
        }
    }

    fn fingerprint(&self, document: &Document, position: &Position) -> Result<Option<Story>, String> {
        if self.manifest.as_ref().is_some_and(|manifest| manifest.id(&document.id).is_none()) {
            return Ok(None);
        }
        document.id.check().map_err(|error| error.to_string())?;
        let (document, lang) = (document.clone(), spelling::code(&document.language).into());
        let (took, position) = ([Duration::ZERO; 2], position.clone());
        Ok(Some(Story { position, document, lang, lang_confidence: None, words: None, took }))
    }

    fn html(
        &mut self,
        position: &Position,
        id: DocId,
        lang: Option<&str>,
        html: &str,
    ) -> Result<Option<Story>, String> {
        let start = Instant::now();
        let mut scan = std::mem::take(&mut self.scan);
        scan.run(html, &ScanOptions { links: false, ..ScanOptions::default() });
        let declared = scan.html_lang(html).map(str::to_owned);
        // Leaves out menus and footers, which all pages of a site share.
        let pieces: Vec<&str> = scan.content().collect();
        let content = match pieces[..] {
            [whole] => Cow::Borrowed(whole),
            _ => Cow::Owned(pieces.join("\n")),
        };
        let stated = StatedLang { given: lang, declared: declared.as_deref() };
        let story = self.text(position, id, stated, &content, start.elapsed());
        self.scan = scan;
        story
    }

    fn text(
        &mut self,
        position: &Position,
        id: DocId,
        stated: StatedLang<'_>,
        text: &str,
        extract: Duration,
    ) -> Result<Option<Story>, String> {
        let start = Instant::now();
        let (language, lang, lang_confidence) = match self.language_of(stated.given)? {
            Some((language, lang)) => (language, lang, None),
            None => {
                let found = lang::detect(text, stated.declared);
                (Language::from(found.lang), found.lang.code().into(), Some(found.confidence))
            }
        };
        self.words.clear();
        self.words.extend(text);
        let hash = SimHash::with(self.features, &self.words);
        let words = Some(self.words.len());
        // After one huge text, the buffer is freed, so that its memory is not held for the rest of the run.
        if text.len() > 4 << 20 {
            self.words = Words::default();
        }
        let document = Document { language, id, hash };
        let took = [extract, start.elapsed()];
        Ok(Some(Story { position: position.clone(), document, lang, lang_confidence, words, took }))
    }

    fn language_of(&self, lang: Option<&str>) -> Result<Option<(Language, Box<str>)>, String> {
        match lang {
            Some(lang) => language(lang).map(|language| Some((language, lang.into()))),
            None => Ok(self.lang.clone()),
        }
    }
}

/// What a document says of its own language.
#[derive(Clone, Copy, Debug)]
struct StatedLang<'a> {
    /// The field beside the text, or the entry of the manifest; it is believed.
    given: Option<&'a str>,
    /// The attribute of the markup, which is a hint for the detection.
    declared: Option<&'a str>,
}

impl<'a> StatedLang<'a> {
    fn given(lang: Option<&'a str>) -> Self {
        Self { given: lang, declared: None }
    }
}

/// The name that an index has for a language.
fn language(lang: &str) -> Result<Language, String> {
    Language::parse(lang).map_err(|error| format!("lang {lang:?}: {error}"))
}

/// Whether the language of the text could not be recognised.
pub(crate) fn is_unknown(story: &Story) -> bool {
    story.lang_confidence.is_some() && *story.lang == *Lang::UNKNOWN.code()
}

fn not_json(error: &serde_json::Error) -> String {
    let text = error.to_string();
    // Each line is parsed as a document of its own, so the line number of serde_json is always 1.
    let text = text.replace(" at line 1 column ", ", byte ");
    let advice = if error.is_data() { "" } else { "; each line is one JSON object with id, lang and text" };
    format!("{text}{advice}")
}

fn id_of(id: Value) -> Result<DocId, String> {
    let id = match id {
        Value::Null => return Err("no id; each document needs one of its own".to_owned()),
        Value::String(text) => DocId::from(text),
        Value::Number(number) if number.is_u64() => DocId::Number(number.as_u64().unwrap_or_default()),
        other => {
            return Err(format!("id {other}: ids are whole numbers from 0 to {}, or strings", u64::MAX));
        }
    };
    id.check().map_err(|error| error.to_string())?;
    Ok(id)
}

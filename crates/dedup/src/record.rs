//! A document: as it was given, and with its fingerprint.

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
use crate::text;

/// Where a document stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Where {
    /// The file, or `stdin`.
    pub source: Arc<str>,
    /// The line, from 1; none where the file is the document.
    pub line: Option<u64>,
}

impl fmt::Display for Where {
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
pub struct Raw {
    /// Where it stands.
    pub place: Where,
    /// What stands there.
    pub body: Body,
}

/// What was read.
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
        /// What it has.
        bytes: Vec<u8>,
    },
    /// It could not be read, and why.
    Unreadable(String),
}

/// What is wrong with a document.
#[derive(Debug)]
pub struct Bad {
    /// Where it stands.
    pub place: Where,
    /// What is wrong, and what to do about it.
    pub message: String,
}

impl fmt::Display for Bad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

impl std::error::Error for Bad {}

/// A document with its fingerprint.
#[derive(Debug)]
pub struct Story {
    /// Where it stands.
    pub place: Where,
    /// Its id, its language and its fingerprint.
    pub document: Document,
    /// The language as it was given, or the code of the recognised one.
    pub lang: Box<str>,
    /// How sure the language is; none if it was given.
    pub lang_confidence: Option<f64>,
    /// How many words it has; none where only the fingerprint was given.
    pub words: Option<usize>,
    /// Spent on HTML, and on words and fingerprint.
    pub(crate) took: [Duration; 2],
}

impl Story {
    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.document.hash == SimHash(0)
    }

    /// Whether it has fewer words.
    pub fn is_shorter_than(&self, words: usize) -> bool {
        self.words.is_some_and(|number| number < words)
    }
}

/// A line of input. What else stands in it is passed over.
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

/// Makes stories of what was read. One per thread; its buffers are used again.
#[derive(Debug)]
pub struct Reader {
    features: Features,
    /// Of documents that name none.
    lang: Option<(Language, Box<str>)>,
    manifest: Option<Arc<Manifest>>,
    scan: Scan,
    words: Words,
}

impl Reader {
    /// A reader that makes fingerprints of these features. `lang` is the language of documents that name none, which is recognised otherwise,
    /// and how it is spelt; documents that are not on the list are passed over.
    pub fn new(
        features: Features,
        lang: Option<(Language, Box<str>)>,
        manifest: Option<Arc<Manifest>>,
    ) -> Self {
        Self { features, lang, manifest, scan: Scan::new(), words: Words::default() }
    }

    /// A story; none if it is not on the list of ids.
    ///
    /// # Errors
    /// It is no document: what is wrong with it.
    pub fn read(&mut self, raw: Raw) -> Result<Option<Story>, Bad> {
        let Raw { place, body } = raw;
        let made = match &body {
            Body::Unreadable(message) => Err(message.clone()),
            Body::Line(bytes) => self.line(bytes, &place),
            Body::File { path, is_html, bytes } => self.file(path, *is_html, bytes, &place),
        };
        self.scan.shrink_to(4 << 20);
        made.map_err(|message| Bad { place, message })
    }

    fn line(&mut self, bytes: &[u8], place: &Where) -> Result<Option<Story>, String> {
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
            (Some(text), ..) => self.text(place, id, lang, None, &text, Duration::ZERO),
            (None, Some(html), _) => self.html(place, id, lang, &html),
            (None, None, Some(hash)) => {
                let hash = hash.parse().map_err(|error| format!("simhash {hash:?}: {error}"))?;
                let Some((language, lang)) = self.language_of(lang)? else {
                    return Err("a fingerprint without a lang; add it, or use --lang".to_owned());
                };
                let document = Document { language, id, hash };
                let (took, words) = ([Duration::ZERO; 2], line.words);
                Ok(Some(Story { place: place.clone(), document, lang, lang_confidence: None, words, took }))
            }
            (None, None, None) => Err("neither text nor html nor simhash; one of them is needed".to_owned()),
        }
    }

    fn file(
        &mut self,
        path: &str,
        is_html: bool,
        bytes: &[u8],
        place: &Where,
    ) -> Result<Option<Story>, String> {
        let (mut id, mut lang) = (DocId::from(path), None);
        if let Some(manifest) = self.manifest.clone() {
            let Some(entry) = manifest.path(path) else { return Ok(None) };
            (id, lang) = (entry.id.clone(), entry.lang.clone());
        }
        id.check().map_err(|error| error.to_string())?;
        if is_html {
            let html = huntsman_html::decode_body(bytes, None, None).text;
            self.html(place, id, lang.as_deref(), &html)
        } else {
            let text = text::plain(bytes)?;
            self.text(place, id, lang.as_deref(), None, &text, Duration::ZERO)
        }
    }

    fn html(
        &mut self,
        place: &Where,
        id: DocId,
        lang: Option<&str>,
        html: &str,
    ) -> Result<Option<Story>, String> {
        let start = Instant::now();
        let mut scan = std::mem::take(&mut self.scan);
        scan.run(html, &ScanOptions { links: false, ..ScanOptions::default() });
        let declared = scan.html_lang(html).map(str::to_owned);
        // Without the menus and footers that all pages of a site share.
        let pieces: Vec<&str> = scan.content().collect();
        let content = match pieces[..] {
            [whole] => Cow::Borrowed(whole),
            _ => Cow::Owned(pieces.join("\n")),
        };
        let story = self.text(place, id, lang, declared.as_deref(), &content, start.elapsed());
        self.scan = scan;
        story
    }

    fn text(
        &mut self,
        place: &Where,
        id: DocId,
        lang: Option<&str>,
        declared: Option<&str>,
        text: &str,
        extract: Duration,
    ) -> Result<Option<Story>, String> {
        let start = Instant::now();
        let (language, lang, lang_confidence) = match self.language_of(lang)? {
            Some((language, lang)) => (language, lang, None),
            None => {
                let found = lang::detect(text, declared);
                (Language::from(found.lang), found.lang.code().into(), Some(found.confidence))
            }
        };
        self.words.clear();
        self.words.extend(text);
        let hash = SimHash::with(self.features, &self.words);
        let words = Some(self.words.len());
        // One huge text must not hold its memory for the rest of the run.
        if text.len() > 4 << 20 {
            self.words = Words::default();
        }
        let document = Document { language, id, hash };
        let took = [extract, start.elapsed()];
        Ok(Some(Story { place: place.clone(), document, lang, lang_confidence, words, took }))
    }

    fn language_of(&self, lang: Option<&str>) -> Result<Option<(Language, Box<str>)>, String> {
        match lang {
            Some(lang) => language(lang).map(|language| Some((language, lang.into()))),
            None => Ok(self.lang.clone()),
        }
    }
}

/// The part of an index for a language.
fn language(lang: &str) -> Result<Language, String> {
    Language::parse(lang).map_err(|error| format!("lang {lang:?}: {error}"))
}

/// Whether the language of a text could not be told.
pub(crate) fn is_unknown(story: &Story) -> bool {
    story.lang_confidence.is_some() && *story.lang == *Lang::UNKNOWN.code()
}

fn not_json(error: &serde_json::Error) -> String {
    let text = error.to_string();
    // Each line is a document of its own: the line that serde_json counts is always the first.
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

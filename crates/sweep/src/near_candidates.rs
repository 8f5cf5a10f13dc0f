//! Indexes of near-duplicates as sources of candidates: pages whose fingerprints nearly equal that of the article.

use std::collections::{BTreeSet, HashSet};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use huntsman_detect::lang;
use huntsman_detect::near::{DocId, IndexError, Language, NearIndex, NearMatch};
use huntsman_detect::simhash::SimHash;
use huntsman_detect::words::Words;
use url::Url;

use super::candidates::{Candidate, CandidateError, CandidateSource, FindFuture, Subject};
use super::reading::{Reading, TextKind};

/// Finds the pages of an index ([`NearIndex`]) that nearly equal the whole article, by its fingerprint. The ids of the
/// index are URLs, as in an index made by `huntsman dedup add pages.jsonl`, or the names of files below a folder
/// ([`files`](Self::files)), as in one made of a folder. The index has no texts, so the pages are fetched and the files
/// are read.
///
/// The article is looked up as a whole and without elements that are boilerplate, among the documents of its detected
/// language and of all other languages of the index, up to 64, since the index may have been made with other language
/// names. A page that only contains the article, or a part of it, is not near it; use a text index for that.
#[derive(Clone, Debug)]
pub struct NearCandidates(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    index: Arc<dyn NearIndex>,
    languages: OnceLock<BTreeSet<Language>>,
    files: Option<PathBuf>,
}

/// Maximum number of pages that are returned, the nearest first.
const MOST: usize = 50;
/// Maximum number of languages whose documents are searched.
const MOST_LANGUAGES: usize = 64;

impl NearCandidates {
    /// A candidate source that looks in this index.
    pub fn new(index: Arc<dyn NearIndex>) -> Self {
        Self(Arc::new(Inner { index, languages: OnceLock::new(), files: None }))
    }

    /// Reads the files below this folder whose names are ids that are no URLs. Links that lead out of the folder are
    /// not followed.
    pub fn files(self, folder: impl Into<PathBuf>) -> Self {
        let (index, files) = (Arc::clone(&self.0.index), Some(folder.into()));
        Self(Arc::new(Inner { index, languages: OnceLock::new(), files }))
    }
}

impl Inner {
    fn find(&self, subject: &Subject) -> Result<Vec<Candidate>, CandidateError> {
        let failed =
            |error: IndexError| CandidateError::Failed(format!("the index of near-duplicates: {error}"));
        let text = subject.text.text();
        let queries = self.queries(subject, text).map_err(failed)?;
        let mut near: Vec<NearMatch> =
            self.index.near(&queries).map_err(failed)?.into_iter().flatten().collect();
        near.sort_by_key(|near| near.distance);
        let mut seen = HashSet::new();
        let (mut found, mut unread) = (Vec::new(), None);
        for near in &near {
            if found.len() == MOST {
                break;
            }
            let DocId::Text(id) = &near.id else { continue };
            if !seen.insert(id) {
                continue;
            }
            match &self.files {
                _ if is_page(id) => found.push(Candidate::new(&**id)),
                Some(folder) => match file(folder, id) {
                    Ok(candidate) => found.push(candidate),
                    Err(why) => {
                        unread =
                            unread.or(Some(format!("the file {id} of the index of near-duplicates: {why}")))
                    }
                },
                None => {}
            }
        }
        if found.is_empty() && !near.is_empty() {
            let why = "the ids of the index of near-duplicates are no addresses: index the pages.jsonl of crawls, or name \
                       the folder of the files that are in it (--near-files)";
            return Err(CandidateError::Failed(unread.unwrap_or_else(|| why.to_owned())));
        }
        Ok(found)
    }

    /// The fingerprints of the article, in all languages that may have it.
    fn queries(&self, subject: &Subject, text: &str) -> Result<Vec<(Language, SimHash)>, IndexError> {
        let features = self.index.identity().features();
        let whole = SimHash::with(features, &Words::of(text));
        let mut words = Words::default();
        subject.text.content().for_each(|piece| words.extend(piece));
        let content = SimHash::with(features, &words);
        let mut hashes = vec![whole];
        hashes.extend(Some(content).filter(|content| *content != whole));
        let own = Language::from(lang::detect(text, None).lang);
        let others =
            self.languages()?.iter().copied().filter(|language| *language != own).take(MOST_LANGUAGES);
        let languages = [own].into_iter().chain(others);
        Ok(languages.flat_map(|language| hashes.iter().map(move |hash| (language, *hash))).collect())
    }

    /// The languages of the index, looked up once.
    fn languages(&self) -> Result<&BTreeSet<Language>, IndexError> {
        if let Some(known) = self.languages.get() {
            return Ok(known);
        }
        let languages = self.index.stats()?.languages.into_keys().collect();
        Ok(self.languages.get_or_init(|| languages))
    }
}

fn is_page(id: &str) -> bool {
    Url::parse(id).is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
}

/// A file below a folder as a candidate with its text. An index may be of strangers: it must not name other files.
fn file(folder: &Path, id: &str) -> Result<Candidate, String> {
    let (path, failed) = (folder.join(id), |error: std::io::Error| error.to_string());
    let (real, root) = (path.canonicalize().map_err(failed)?, folder.canonicalize().map_err(failed)?);
    if !real.starts_with(&root) {
        return Err(format!("it is not below {}", folder.display()));
    }
    let kind = TextKind::of_file(&real);
    let opened = File::open(&real).map_err(failed)?;
    if !opened.metadata().map_err(failed)?.is_file() {
        return Err("it is no file".to_owned());
    }
    let mut bytes = Vec::new();
    opened.take(kind.most_bytes() as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
    let reading = Reading::of_bytes(kind, &bytes, None, None).map_err(|why| why.to_string())?;
    Ok(Candidate { text: Some(reading.text), ..Candidate::new(path.to_string_lossy()) })
}

impl CandidateSource for NearCandidates {
    fn name(&self) -> &str {
        "near_index"
    }

    fn queries(&self, _: &Subject) -> Vec<String> {
        vec![String::new()]
    }

    fn find<'a>(&'a self, subject: &'a Subject, _: &'a str) -> FindFuture<'a> {
        let (inner, subject) = (Arc::clone(&self.0), subject.clone());
        Box::pin(async move {
            let found = tokio::task::spawn_blocking(move || inner.find(&subject)).await;
            found.unwrap_or_else(|error| {
                let error = huntsman_crawler::Error::from(error).context("the index of near-duplicates");
                Err(CandidateError::Failed(error.to_string()))
            })
        })
    }
}

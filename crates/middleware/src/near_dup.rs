//! NearDup: detects pages that are near-duplicates of earlier pages of the crawl.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use huntsman_crawler::{
    Change, Component, Context, DropReason, Error, Hooks, OnFollow, OnPage, Page, PageNeeds, Persist,
    Request, Result, Settings, SpiderMiddleware, settings,
};
use huntsman_detect::near::{DocId, Document, Identity, Language, MemoryIndex, NearIndex};
use huntsman_detect::simhash::{Features, SimHash};
use huntsman_text::words::{WordCounts, Words};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

settings! {
    /// Settings of [`NearDup`].
    pub struct NearDupSettings {
        /// Fingerprints the text of each page (SimHash) and finds the earlier pages of the crawl that nearly equal it.
        near_dup_enabled: bool = false;
        /// Maximum number of bits, out of 128, in which the fingerprints of near-duplicates differ; 0 to 7.
        near_dup_distance: u32 = 3;
        /// Features that a text is reduced to: words-log, char5, words3 or words-tf.
        near_dup_features: String = "words-log".to_owned();
        /// Pages with fewer words than this are never near-duplicates, because each word is a large part of them.
        near_dup_min_words: usize = 50;
        /// What happens to a near-duplicate of an earlier page: flag (it is only marked), no_follow (its links are not
        /// followed) or skip (it is dropped).
        on_near_duplicate: OnNearDuplicate = OnNearDuplicate::Flag;
    }
}

/// What happens to a page that is a near-duplicate of an earlier page of the crawl.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnNearDuplicate {
    /// The page is handled like others, and its matches are in its extensions.
    #[default]
    Flag,
    /// The page is handled as with `Flag`, but its links are not followed.
    NoFollow,
    /// The page is dropped with reason `near_duplicate`, and its links are not followed.
    Skip,
}

/// Fingerprints the content of each page and finds the earlier pages of the same language that nearly equal it. Not
/// configured unless `near_dup_enabled` is set.
///
/// It fingerprints ([`SimHash`]) [`Page::content`], because menus and footers would make small pages near-duplicates of
/// each other. Two pages are near-duplicates when their fingerprints differ in at most `near_dup_distance` bits; the
/// search is exact ([`huntsman_detect::near`]). The result is in the extensions of the page as [`NearDuplicates`], and
/// its record gets the fields `simhash` (32 hexadecimal digits) and `near_duplicates` (URLs and distances). Each pair is reported once, with its later page, so the first page of a group of near-duplicates is never flagged. Pages
/// with fewer than `near_dup_min_words` words are indexed but not flagged; pages without words, sitemaps and responses
/// without text are ignored. A page that is fetched again with the same text keeps its place among the earlier ones,
/// also after a crash.
///
/// With `on_near_duplicate` a near-duplicate is flagged, its links are not followed, or it is dropped. Stats are under
/// `near_dup/`: `indexed` and `flagged`, in all and per language (`near_dup/flagged/ENGLISH`), `short`, `empty`. In a
/// job the whole index is saved.
///
/// A page takes about 150 bytes of memory, including its URL, and 2 to 5 microseconds besides reading the words of the
/// page.
#[derive(Clone, Debug)]
pub struct NearDup(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    identity: Identity,
    min_words: usize,
    then: OnNearDuplicate,
    pages: Mutex<Pages>,
}

/// The pages so far. The number of a page is its index in the list.
#[derive(Debug)]
struct Pages {
    index: MemoryIndex,
    pages: Vec<Indexed>,
    languages: Vec<Language>,
    /// The newest number of a page, by the hash of its URL.
    numbers: HashMap<u64, u32>,
    has_job: bool,
    /// Changes since the last commit of the job.
    new: Vec<Change>,
}

#[derive(Debug)]
struct Indexed {
    url: Box<str>,
    language: u16,
}

/// The entry of a page in the job, stored under the number of the page.
#[derive(Serialize, Deserialize)]
struct Entry {
    lang: Language,
    simhash: String,
    url: Box<str>,
}

thread_local! {
    /// The counts of the words of a page. Each thread uses their memory for one page after the other, because it is several times as large as a text.
    static COUNTS: RefCell<WordCounts> = RefCell::default();
}

/// The near-duplicates that were found for a page; in its extensions.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NearDuplicates {
    /// The fingerprint of its content.
    pub simhash: SimHash,
    /// The language within which it was compared.
    pub language: Language,
    /// Number of words of its content.
    pub words: usize,
    /// The earlier pages that it nearly equals, ordered by distance, then by age (oldest first).
    pub matches: Vec<NearDuplicate>,
}

/// An earlier page that a page nearly equals.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NearDuplicate {
    /// The requested URL, before redirects.
    pub url: String,
    /// Number of the 128 bits in which the fingerprints differ.
    pub distance: u32,
}

impl NearDup {
    /// Creates the component from the settings; `None` unless `near_dup_enabled` is set.
    ///
    /// # Errors
    /// `near_dup_distance` is above 7, or `near_dup_features` names no feature set.
    pub fn from_settings(settings: &Settings) -> Result<Option<Self>> {
        let own: NearDupSettings = settings.of()?;
        if !own.near_dup_enabled {
            return Ok(None);
        }
        let name = &own.near_dup_features;
        let features: Features = name.parse().map_err(|_| {
            let names = Features::ALL.map(Features::name).join(", ");
            Error::usage(format!("near_dup_features: {name:?} is none of {names}"))
        })?;
        let identity = Identity::new(own.near_dup_distance, features)
            .map_err(|error| Error::usage(format!("near_dup_distance: {error}")))?;
        let pages = Pages {
            index: MemoryIndex::new(identity),
            pages: Vec::new(),
            languages: Vec::new(),
            numbers: HashMap::new(),
            has_job: false,
            new: Vec::new(),
        };
        Ok(Some(Self(Arc::new(Inner {
            identity,
            min_words: own.near_dup_min_words,
            then: own.on_near_duplicate,
            pages: Mutex::new(pages),
        }))))
    }

    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.0.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The fingerprint of a page's content, and its number of words.
    fn fingerprint(&self, page: &Page) -> (SimHash, usize) {
        let features = self.0.identity.features();
        if features == Features::WordsLog {
            return COUNTS.with_borrow_mut(|counts| {
                counts.clear();
                page.count_content(counts);
                (SimHash::of_counts(counts), counts.total())
            });
        }
        let mut words = Words::default();
        page.content().for_each(|piece| words.extend(piece));
        (SimHash::with(features, &words), words.len())
    }
}

impl Pages {
    /// Finds the earlier pages near this one, and adds it to them.
    fn find_and_add(&mut self, url: &str, language: Language, hash: SimHash) -> Result<Vec<NearDuplicate>> {
        let known = match self.numbers.get(&xxh3_64(url.as_bytes())).copied() {
            Some(number) => {
                let is_same = self.index.get(&language, &[id(number)])?[0] == Some(hash);
                if !is_same {
                    self.forget(number)?;
                }
                is_same.then_some(number)
            }
            None => None,
        };
        let near = self.index.near(&[(language, hash)])?.pop().unwrap_or_default();
        let number = match known {
            Some(number) => number,
            None => self.add(url, language, hash)?,
        };
        let mut earlier: Vec<(u32, u32)> = near
            .iter()
            .filter_map(|near| match near.id {
                DocId::Number(other) => Some((near.distance, u32::try_from(other).ok()?)),
                DocId::Text(_) => None,
            })
            .filter(|(_, other)| *other < number)
            .collect();
        earlier.sort_unstable();
        let named = |(distance, other): (u32, u32)| {
            let url = self.pages.get(other as usize)?.url.to_string();
            Some(NearDuplicate { url, distance })
        };
        Ok(earlier.into_iter().filter_map(named).collect())
    }

    fn add(&mut self, url: &str, language: Language, hash: SimHash) -> Result<u32> {
        let number = self.insert(url.into(), language, hash)?;
        if self.has_job {
            let entry = Entry { lang: language, simhash: hash.to_string(), url: url.into() };
            self.new.push((number.to_be_bytes().to_vec(), Some(serde_json::to_vec(&entry)?)));
        }
        Ok(number)
    }

    fn insert(&mut self, url: Box<str>, language: Language, hash: SimHash) -> Result<u32> {
        let number = u32::try_from(self.pages.len()).map_err(|_| Error::usage("too many pages"))?;
        // The list has at most as many languages as the index supports, which is a few thousand.
        let place = self.languages.iter().position(|known| *known == language).unwrap_or_else(|| {
            self.languages.push(language);
            self.languages.len() - 1
        });
        self.index.insert(&[Document { language, id: id(number), hash }])?;
        self.numbers.insert(xxh3_64(url.as_bytes()), number);
        self.pages.push(Indexed { url, language: place as u16 });
        Ok(number)
    }

    /// Removes the entry under this number, since the page now has another text.
    fn forget(&mut self, number: u32) -> Result<()> {
        let Some(page) = self.pages.get(number as usize) else { return Ok(()) };
        self.index.remove(&self.languages[usize::from(page.language)], &[id(number)])?;
        if self.has_job {
            self.new.push((number.to_be_bytes().to_vec(), None));
        }
        Ok(())
    }
}

fn id(number: u32) -> DocId {
    DocId::Number(u64::from(number))
}

impl Component for NearDup {
    const NAME: &'static str = "near_dup";
    type Settings = NearDupSettings;

    fn hooks(hooks: Hooks<Self>) -> Hooks<Self> {
        // In the spider chain this is after HttpError, so that error pages are not compared.
        hooks.spider(55).persist()
    }

    fn page_needs(&self) -> PageNeeds {
        PageNeeds { text: true, ..PageNeeds::default() }
    }
}

impl SpiderMiddleware for NearDup {
    fn process_page(&self, page: &mut Page, cx: &Context) -> Result<OnPage> {
        if !page.response().status.is_success() || page.request().is_sitemap() || !page.kind().is_textual() {
            return Ok(OnPage::Parse);
        }
        let (simhash, words) = self.fingerprint(page);
        if words == 0 {
            cx.stats().inc("near_dup/empty");
            return Ok(OnPage::Parse);
        }
        let language = Language::from(page.lang().lang);
        let url = page.request().requested_url();
        let mut matches = self.pages().find_and_add(url, language, simhash)?;
        cx.stats().inc("near_dup/indexed");
        cx.stats().inc(&format!("near_dup/indexed/{language}"));
        if words < self.0.min_words {
            cx.stats().inc("near_dup/short");
            matches.clear();
        }
        page.record_fields.insert("simhash".to_owned(), simhash.to_string().into());
        page.record_fields.insert("near_duplicates".to_owned(), serde_json::to_value(&matches)?);
        let nearest = matches.first().cloned();
        page.extensions.insert(NearDuplicates { simhash, language, words, matches });
        let Some(nearest) = nearest else { return Ok(OnPage::Parse) };
        cx.stats().inc("near_dup/flagged");
        cx.stats().inc(&format!("near_dup/flagged/{language}"));
        if self.0.then == OnNearDuplicate::Skip {
            let detail = format!("{} bits from {}", nearest.distance, nearest.url);
            let status = page.response().status;
            return Ok(OnPage::Skip(DropReason::skipped("near_duplicate").detail(detail).status(status)));
        }
        Ok(OnPage::Parse)
    }

    fn process_follow(&self, page: &Page, _: &mut Request, _: &Context) -> Result<OnFollow> {
        let is_flagged =
            || page.extensions.get::<NearDuplicates>().is_some_and(|found| !found.matches.is_empty());
        if self.0.then != OnNearDuplicate::Flag && is_flagged() {
            return Ok(OnFollow::Drop(DropReason::skipped("near_duplicate")));
        }
        Ok(OnFollow::Keep)
    }
}

/// Saves the pages in the job, one entry each.
impl Persist for NearDup {
    fn name(&self) -> String {
        Self::NAME.to_owned()
    }

    /// The saved state names the feature set: fingerprints of other features cannot be compared.
    fn load(&self, state: Option<&[u8]>) -> Result<()> {
        let features = self.0.identity.features().name();
        if let Some(before) = state
            && before != features.as_bytes()
        {
            let before = String::from_utf8_lossy(before);
            return Err(Error::usage(format!(
                "the job has fingerprints by {before}, and near_dup_features is {features}; go on with {before}"
            )));
        }
        self.pages().has_job = true;
        Ok(())
    }

    fn load_entry(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let entry: Entry = serde_json::from_slice(value)?;
        let hash = entry.simhash.parse().map_err(|error| Error::usage(format!("{error}")))?;
        let number = key.try_into().map(u32::from_be_bytes);
        let number = number.map_err(|_| Error::usage("the number of a page is not one"))?;
        let mut pages = self.pages();
        // Numbers without an entry belong to pages whose text changed.
        while pages.pages.len() < number as usize {
            pages.pages.push(Indexed { url: Box::default(), language: 0 });
        }
        pages.insert(entry.url, entry.lang, hash)?;
        Ok(())
    }

    fn save(&self) -> Result<Option<Vec<u8>>> {
        Ok(Some(self.0.identity.features().name().as_bytes().to_vec()))
    }

    fn save_entries(&self) -> Result<Vec<Change>> {
        Ok(std::mem::take(&mut self.pages().new))
    }
}

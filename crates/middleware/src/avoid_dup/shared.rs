//! Models of a crawl that several processes share: one for each slot, whose journal goes with the slot to the next process.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::Ordering;

use huntsman_crawler::{Component, HandOver, HostKey, HostNote, log};
use huntsman_detect::avoid::Predictor;
use xxhash_rust::xxh3::xxh3_64;

use super::{AvoidDup, Model, ModelOptions};

/// Bytes of events, before they are packed, that make a batch of the journal. What is not in a batch when a process dies is learnt again.
const BATCH: usize = 64 << 10;
/// Bytes of a piece of a batch; a frontier need not keep longer ones.
const PIECE: usize = 8_000;
/// The most bytes of texts of all sites that are kept for relearning, as [`Options::learning_bytes`](huntsman_detect::avoid::Options) of one
/// predictor.
const LEARNING_BYTES: usize = 128 << 20;

/// The models of all slots that this process has worked on.
pub(super) struct SharedModels {
    options: ModelOptions,
    /// The most bytes of a journal.
    most: usize,
    sites: HashMap<String, SiteModel>,
    /// Journals that came from another process and are not read yet: the pieces by numbers of batch and piece.
    taken: HashMap<String, Pieces>,
    /// Pieces that are to be stored.
    told: Vec<HostNote>,
    /// Bytes that all sites keep for relearning.
    learning_bytes: usize,
}

/// The pieces of a journal by the numbers of batch and piece, with the number of pieces of the batch.
type Pieces = BTreeMap<(u64, u32), (u32, Vec<u8>)>;

/// The model of a slot, and how much of its journal is stored.
struct SiteModel {
    predictor: Predictor,
    batches: u64,
    /// Hash of the last stored batch, with which the next one begins: batches of different histories are never mixed.
    last: u64,
    bytes: usize,
    is_full: bool,
    /// Bytes that are kept for relearning, as they are counted for all sites.
    learning_bytes: usize,
}

impl SharedModels {
    pub(super) fn new(options: ModelOptions, most: usize) -> Self {
        Self {
            options,
            most,
            sites: HashMap::new(),
            taken: HashMap::new(),
            told: Vec::new(),
            learning_bytes: 0,
        }
    }

    /// The predictor of a site, which begins with what another process learnt.
    pub(super) fn of(&mut self, site: &str) -> &mut Predictor {
        if let Some(pieces) = self.taken.remove(site) {
            let model = SiteModel::restored(&self.options, &pieces);
            self.learning_bytes += model.learning_bytes;
            let before = self.sites.insert(site.to_owned(), model);
            self.learning_bytes -= before.map_or(0, |before| before.learning_bytes);
        }
        if !self.sites.contains_key(site) {
            self.sites.insert(site.to_owned(), SiteModel::new(&self.options));
        }
        &mut self.sites.get_mut(site).expect("it was there or is now").predictor
    }

    /// Whether there is a model of the site.
    pub(super) fn knows(&self, site: &str) -> bool {
        self.sites.contains_key(site)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Predictor> {
        self.sites.values().map(|site| &site.predictor)
    }

    /// Stores a batch of the journal of a site if there is enough for one. Returns true if that was the first batch that had no room: what is
    /// learnt from now on does not go to another process.
    pub(super) fn store(&mut self, site: &str) -> bool {
        let Some(model) = self.sites.get_mut(site) else { return false };
        let bytes = model.predictor.relearning_bytes();
        self.learning_bytes =
            self.learning_bytes + bytes - std::mem::replace(&mut model.learning_bytes, bytes);
        let is_cut = model.predictor.journal_bytes() >= BATCH
            && !model.store(&HostKey::new(site), self.most, &mut self.told);
        if self.learning_bytes > LEARNING_BYTES {
            self.freeze_largest();
        }
        is_cut
    }

    /// Has the sites with most texts stop relearning until a quarter is free.
    fn freeze_largest(&mut self) {
        let mut sites: Vec<&mut SiteModel> = self.sites.values_mut().collect();
        sites.sort_by_key(|model| std::cmp::Reverse(model.learning_bytes));
        for model in sites {
            if self.learning_bytes <= LEARNING_BYTES / 4 * 3 {
                return;
            }
            model.predictor.limit_learning(0);
            self.learning_bytes -= std::mem::take(&mut model.learning_bytes);
        }
    }

    /// All pieces that are not told yet, and with `even_small`, those of batches that are not full.
    fn take_told(&mut self, even_small: bool) -> Vec<HostNote> {
        if even_small {
            for (site, model) in &mut self.sites {
                model.store(&HostKey::new(site), self.most, &mut self.told);
            }
        }
        std::mem::take(&mut self.told)
    }

    /// Keeps a piece of a journal until its site is worked on.
    fn take_over(&mut self, note: &HostNote) {
        let Some((batch, piece, pieces)) = place_of(note) else { return };
        let taken = self.taken.entry(note.host.as_str().to_owned()).or_default();
        taken.insert((batch, piece), (pieces, note.value.clone()));
    }
}

impl SiteModel {
    fn new(options: &ModelOptions) -> Self {
        let mut predictor = options.predictor();
        predictor.keep_journal();
        Self { predictor, batches: 0, last: 0, bytes: 0, is_full: false, learning_bytes: 0 }
    }

    /// A model with what a journal says, as far as it is whole.
    fn restored(options: &ModelOptions, pieces: &Pieces) -> Self {
        let mut model = Self::new(options);
        while let Some(packed) = whole(pieces, model.batches) {
            let Some((last, batch)) = packed.split_first_chunk::<8>() else { break };
            if u64::from_le_bytes(*last) != model.last {
                break;
            }
            if let Err(error) = model.predictor.restore(batch) {
                log::warn!(%error, "what another node learnt about a site is left out");
                return Self::new(options);
            }
            model.added(&packed);
        }
        model.learning_bytes = model.predictor.relearning_bytes();
        model
    }

    /// Counts a batch.
    fn added(&mut self, packed: &[u8]) {
        (self.batches, self.last) = (self.batches + 1, xxh3_64(packed));
        self.bytes += packed.len();
    }

    /// Adds the events that are not stored yet to what is told; returns whether there was room.
    fn store(&mut self, host: &HostKey, most: usize, told: &mut Vec<HostNote>) -> bool {
        let Some(batch) = self.predictor.take_journal() else { return true };
        let packed = [&self.last.to_le_bytes(), &batch[..]].concat();
        if self.bytes + packed.len() > most {
            self.predictor.end_journal();
            return std::mem::replace(&mut self.is_full, true);
        }
        let pieces = packed.chunks(PIECE);
        let count = pieces.len();
        for (piece, value) in pieces.enumerate() {
            let about = format!("{} {} {piece} {count}", AvoidDup::NAME, self.batches);
            told.push(HostNote { host: host.clone(), about, value: value.to_owned() });
        }
        self.added(&packed);
        true
    }
}

/// The numbers of a note: batch, piece, and pieces of the batch.
fn place_of(note: &HostNote) -> Option<(u64, u32, u32)> {
    let mut numbers = note.about.strip_prefix(AvoidDup::NAME)?.strip_prefix(' ')?.split(' ');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// A batch, if all of its pieces are there.
fn whole(pieces: &Pieces, batch: u64) -> Option<Vec<u8>> {
    let (count, _) = pieces.get(&(batch, 0))?;
    let mut packed = Vec::new();
    for piece in 0..*count {
        let (others, value) = pieces.get(&(batch, piece))?;
        if others != count {
            return None;
        }
        packed.extend_from_slice(value);
    }
    Some(packed)
}

/// Hands the models over with their hosts.
impl HandOver for AvoidDup {
    fn begin(&self) {
        let mut model = self.model();
        if matches!(*model, Model::Default(_)) {
            self.0.is_shared.store(true, Ordering::Release);
            *model =
                Model::Shared(Box::new(SharedModels::new(self.0.options.clone(), self.0.hand_over_bytes)));
        }
    }

    fn learnt(&self) -> Vec<HostNote> {
        match &mut *self.model() {
            Model::Shared(models) => models.take_told(false),
            _ => Vec::new(),
        }
    }

    fn rest(&self) -> Vec<HostNote> {
        match &mut *self.model() {
            Model::Shared(models) => models.take_told(true),
            _ => Vec::new(),
        }
    }

    fn take_over(&self, note: &HostNote) {
        if let Model::Shared(models) = &mut *self.model() {
            models.take_over(note);
        }
    }
}

#[cfg(test)]
mod tests {
    use huntsman_detect::avoid::{Attempt, Decision, PageText};
    use url::Url;

    use super::*;

    const SITE: &str = "shop.example";

    fn models(most: usize) -> SharedModels {
        SharedModels::new(ModelOptions { warmup: 50, threshold: 0.98, ..ModelOptions::default() }, most)
    }

    fn url(article: u32, session: u32) -> Url {
        format!("http://{SITE}/article?id={article}&sid={session}").parse().unwrap()
    }

    /// Fetches articles with sessions that do not matter, and stores what is learnt.
    fn learn(models: &mut SharedModels, articles: std::ops::Range<u32>) -> (Vec<HostNote>, usize) {
        let mut cuts = 0;
        for article in articles {
            let words: String =
                (0..60).map(|n| format!("word{} ", (article * 7_919 + n * 31) % 5_000)).collect();
            for session in [article, article + 1_000] {
                let url = url(article, session);
                let predictor = models.of(SITE);
                predictor.discover(SITE, &url, None);
                predictor.learn(SITE, &url, PageText::of_page(&url, [(0, &*words)]));
                cuts += usize::from(models.store(SITE));
            }
        }
        (models.take_told(true), cuts)
    }

    /// What is decided about addresses that were not fetched, without the words of the reasons.
    fn decisions(models: &mut SharedModels) -> Vec<&'static str> {
        let decide = |(article, session): (u32, u32)| match models.of(SITE).decide(
            SITE,
            &url(article, session),
            Attempt::Regular,
        ) {
            Decision::Fetch => "fetch",
            Decision::Hold => "hold",
            Decision::Delay { .. } => "delay",
            Decision::Skip(_) => "skip",
            Decision::Explore(_) => "explore",
            Decision::Drop(_) => "drop",
        };
        (0..40).map(|n| (n * 9, 5_000 + n)).map(decide).collect()
    }

    #[test]
    fn the_next_process_decides_as_the_last_one_did() {
        let (mut first, mut second) = (models(1 << 20), models(1 << 20));
        let (notes, cuts) = learn(&mut first, 0..300);
        assert!(cuts == 0 && notes.len() > 1, "{} notes", notes.len());
        assert!(notes.iter().all(|note| note.value.len() <= PIECE && note.host.as_str() == SITE));
        // A store gives them in no order, and may have those of other components.
        for note in notes.iter().rev() {
            second.take_over(note);
            second.take_over(&HostNote { about: format!("robots_txt {SITE}"), ..note.clone() });
        }
        let wanted = decisions(&mut first);
        assert!(wanted.contains(&"skip"), "{wanted:?}");
        assert_eq!(decisions(&mut second), wanted);
        assert!(!decisions(&mut models(0)).contains(&"skip"), "without the journal nothing is known");

        // What the second adds is continued by a third; so is what came back to the first, which has an older model of the site.
        let (more, _) = learn(&mut second, 300..340);
        let mut third = models(1 << 20);
        for note in notes.iter().chain(&more) {
            third.take_over(note);
            first.take_over(note);
        }
        let wanted = decisions(&mut second);
        assert_eq!(decisions(&mut third), wanted);
        assert_eq!(decisions(&mut first), wanted);
    }

    #[test]
    fn a_journal_of_which_something_is_missing_is_read_up_to_there() {
        let mut first = models(1 << 20);
        let (mut notes, _) = learn(&mut first, 0..150);
        let (more, _) = learn(&mut first, 150..160);
        let batches = first.sites[SITE].batches;
        assert!(batches > 1);
        let batch = |note: &HostNote| place_of(note).map(|(batch, ..)| batch);
        notes.retain(|note| batch(note) == Some(0));
        notes.extend(more.iter().filter(|note| batch(note) == Some(batches - 1)).cloned());
        let mut second = models(1 << 20);
        notes.iter().for_each(|note| second.take_over(note));
        second.of(SITE);
        assert_eq!(second.sites[SITE].batches, 1, "a batch that follows another one is not read");
        // A batch of another history has the number that is next.
        let mut third = models(1 << 20);
        for note in &notes {
            let (batch, piece, pieces) = place_of(note).unwrap();
            let about = format!("{} {} {piece} {pieces}", AvoidDup::NAME, batch.min(1));
            third.take_over(&HostNote { about, ..note.clone() });
        }
        third.of(SITE);
        assert_eq!(third.sites[SITE].batches, 1);
    }

    #[test]
    fn a_long_journal_ends_and_that_is_told_once() {
        let bytes = |notes: &[HostNote]| notes.iter().map(|note| note.value.len()).sum::<usize>();
        let (mut notes, _) = learn(&mut models(1 << 20), 0..300);
        notes.retain(|note| place_of(note).is_some_and(|(batch, ..)| batch == 0));
        // There is room for one batch.
        let most = bytes(&notes) + 100;
        let mut first = models(most);
        let (notes, cuts) = learn(&mut first, 0..300);
        assert_eq!((cuts, bytes(&notes)), (1, most - 100));
        let mut second = models(most);
        notes.iter().for_each(|note| second.take_over(note));
        assert_eq!(second.of(SITE).totals().learnt, 0, "what others did is not counted");
        assert!(second.sites[SITE].batches > 0);
    }
}

//! Makes a list of the contents of a site from the texts of its pages: the rows of a [`Truth`](super::Truth).

use std::fmt;
use std::io::{self, Write};

use hashbrown::HashMap;
use huntsman_text::shingles::ShingleSet;

use super::truth::key;

/// Two pages have the same content if at least nine tenths of their shingles agree: numerator and denominator.
const SAME: [usize; 2] = [9, 10];
/// A page that has fewer shingles of its own is all menu, and is compared with its menu.
const MIN_OWN_SHINGLES: usize = 8;

/// Finds out which URLs of a site have the same content, from one text of each.
///
/// Texts are compared as sets of shingles: runs of four words across the whole text (at most [`MAX_SHINGLES`] of them). In the order in
/// which the pages were added, a page gets the content of the earliest page that leads a content and has a Jaccard similarity of at least
/// 0.9 with it; else it leads a new one. So the pages of a content resemble their leader, and not only a page between them. The view `area`
/// compares the texts of the content area as they are. The view `page` compares whole pages without the shingles that more than half of the
/// pages have; a page with fewer than 8 others keeps them all.
///
/// A page takes 8 bytes per word and view in memory. The comparison is exact, and reads candidates from an index: some seconds for some
/// thousand pages.
///
/// ```
/// use huntsman_detect::avoid::evaluation::{ResponseKind, Truth, TruthMaker, View};
///
/// let mut maker = TruthMaker::default();
/// maker.add_page("http://h.example/a", "the text of a page about something", None);
/// maker.add_page("http://h.example/a?sid=1", "the text of a page about something", None);
/// maker.add("http://h.example/old", ResponseKind::Redirect);
/// let made = maker.finish();
/// assert_eq!((made.pages(), made.contents(View::Page)), (2, 1));
/// let mut list = Vec::new();
/// made.write(&mut list)?;
/// assert_eq!(list, b"0\t0\tpage\t/a\n0\t0\tpage\t/a?sid=1\n-1\t-1\tredirect\t/old\n");
/// assert!(Truth::read(&list[..]).is_ok());
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// [`MAX_SHINGLES`]: huntsman_text::shingles::MAX_SHINGLES
#[derive(Clone, Debug, Default)]
pub struct TruthMaker {
    rows: Vec<Row>,
    by_url: HashMap<Box<str>, usize>,
}

/// What a URL without a content of its own answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseKind {
    /// A redirect.
    Redirect,
    /// An error.
    Error,
    /// Anything but HTML.
    Other,
}

impl ResponseKind {
    /// The name in lists.
    pub fn name(self) -> &'static str {
        match self {
            Self::Redirect => "redirect",
            Self::Error => "error",
            Self::Other => "other",
        }
    }
}

#[derive(Clone, Debug)]
struct Row {
    url: Box<str>,
    answer: Answer,
}

#[derive(Clone, Debug)]
enum Answer {
    Page(PageShingles),
    Other(ResponseKind),
}

#[derive(Clone, Debug)]
struct PageShingles {
    whole: ShingleSet,
    /// `None` if the area is the whole page.
    area: Option<ShingleSet>,
}

impl TruthMaker {
    /// Adds a page by its whole visible text and the text of its content area. Without an area, both views compare the whole page. `url` is
    /// absolute, or path and query; its origin and its fragment are ignored. A URL that was added before keeps its place in the list and
    /// gets the new text.
    pub fn add_page(&mut self, url: &str, text: &str, area: Option<&str>) {
        let page = PageShingles { whole: shingles(text), area: area.map(shingles) };
        self.add_row(url, Answer::Page(page));
    }

    /// Adds a URL that is not a page.
    pub fn add(&mut self, url: &str, kind: ResponseKind) {
        self.add_row(url, Answer::Other(kind));
    }

    fn add_row(&mut self, url: &str, answer: Answer) {
        let url: Box<str> = key(url).into();
        match self.by_url.get(&url) {
            Some(at) => self.rows[*at].answer = answer,
            None => {
                self.by_url.insert(url.clone(), self.rows.len());
                self.rows.push(Row { url, answer });
            }
        }
    }

    /// Compares the pages.
    pub fn finish(self) -> MadeTruth {
        let pages: Vec<&PageShingles> = self.rows.iter().filter_map(Row::page).collect();
        let whole: Vec<&[u64]> = pages.iter().map(|page| page.whole.hashes()).collect();
        let own = without_common(&whole);
        let by_page = contents(&own.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let has_area = pages.iter().any(|page| page.area.is_some());
        let by_area = if has_area {
            let areas = pages.iter().map(|page| page.area.as_ref().unwrap_or(&page.whole).hashes());
            contents(&areas.collect::<Vec<_>>())
        } else {
            by_page.clone()
        };
        let mut numbers = by_area.into_iter().zip(by_page);
        let row = |row: Row| {
            let contents = match row.answer {
                Answer::Page(_) => Ok(numbers.next().expect("each page was compared").into()),
                Answer::Other(kind) => Err(kind),
            };
            MadeRow { url: row.url, contents }
        };
        MadeTruth { rows: self.rows.into_iter().map(row).collect() }
    }
}

impl Row {
    fn page(&self) -> Option<&PageShingles> {
        match &self.answer {
            Answer::Page(page) => Some(page),
            Answer::Other(_) => None,
        }
    }
}

/// A finished list.
#[derive(Clone)]
pub struct MadeTruth {
    rows: Vec<MadeRow>,
}

#[derive(Clone)]
struct MadeRow {
    url: Box<str>,
    /// The numbers of the contents by view, or what is there in place of a page.
    contents: Result<[u32; 2], ResponseKind>,
}

impl MadeTruth {
    /// The number of URLs.
    pub fn urls(&self) -> usize {
        self.rows.len()
    }

    /// The number of URLs that are pages.
    pub fn pages(&self) -> usize {
        self.numbers().count()
    }

    /// The number of different contents.
    pub fn contents(&self, view: super::View) -> usize {
        // Contents are numbered from 0 in the order in which they appear.
        self.numbers().map(|numbers| numbers[view as usize] as usize + 1).max().unwrap_or(0)
    }

    fn numbers(&self) -> impl Iterator<Item = [u32; 2]> {
        self.rows.iter().filter_map(|row| row.contents.ok())
    }

    /// Writes the list in the format that [`Truth::read`](super::Truth::read) reads.
    ///
    /// # Errors
    /// `out` fails.
    pub fn write(&self, mut out: impl Write) -> io::Result<()> {
        for MadeRow { url, contents } in &self.rows {
            match contents {
                Ok([area, page]) => writeln!(out, "{area}\t{page}\tpage\t{url}")?,
                Err(kind) => writeln!(out, "-1\t-1\t{}\t{url}", kind.name())?,
            }
        }
        out.flush()
    }
}

impl fmt::Debug for MadeTruth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MadeTruth").field("urls", &self.urls()).field("pages", &self.pages()).finish()
    }
}

/// The shingles of a text, across its lines.
fn shingles(text: &str) -> ShingleSet {
    ShingleSet::of(&text.replace('\n', " "))
}

/// The sets without the hashes that more than half of them have.
fn without_common(sets: &[&[u64]]) -> Vec<Vec<u64>> {
    let frequencies = frequencies(sets);
    let is_own = |hash: &u64| 2 * frequencies[hash] as usize <= sets.len();
    let own = |set: &&[u64]| {
        let own: Vec<u64> = set.iter().copied().filter(is_own).collect();
        if own.len() >= MIN_OWN_SHINGLES { own } else { set.to_vec() }
    };
    sets.iter().map(own).collect()
}

/// In how many sets each hash is.
fn frequencies(sets: &[&[u64]]) -> HashMap<u64, u32> {
    let mut frequencies = HashMap::new();
    for hash in sets.iter().copied().flatten() {
        *frequencies.entry(*hash).or_insert(0) += 1;
    }
    frequencies
}

/// The number of the content of each set, in order; sets are sorted and have no repetitions.
///
/// Two sets of the same content have a hash in common among the rarest tenth of each and one more (prefix filter: Chaudhuri, Ganti and
/// Kaushik, 2006), so an index of these finds every leader that a set can join.
fn contents(sets: &[&[u64]]) -> Vec<u32> {
    let frequencies = frequencies(sets);
    let mut leaders: Vec<&[u64]> = Vec::new();
    let mut index: HashMap<u64, Vec<u32>> = HashMap::new();
    let mut empty = None;
    let mut numbers = Vec::with_capacity(sets.len());
    for set in sets {
        let mut rarest = set.to_vec();
        rarest.sort_unstable_by_key(|hash| (frequencies[hash], *hash));
        rarest.truncate(set.len() - (set.len() * SAME[0]).div_ceil(SAME[1]) + 1);
        let mut candidates: Vec<u32> =
            rarest.iter().filter_map(|hash| index.get(hash)).flatten().copied().collect();
        candidates.sort_unstable();
        candidates.dedup();
        let known = if set.is_empty() {
            empty
        } else {
            candidates.into_iter().find(|at| is_same(set, leaders[*at as usize]))
        };
        numbers.push(known.unwrap_or_else(|| {
            let new = u32::try_from(leaders.len()).expect("each leader is a page in memory");
            leaders.push(set);
            rarest.iter().for_each(|hash| index.entry(*hash).or_default().push(new));
            if set.is_empty() {
                empty = Some(new);
            }
            new
        }));
    }
    numbers
}

fn is_same(one: &[u64], other: &[u64]) -> bool {
    let [part, whole] = SAME;
    let (less, more) = (one.len().min(other.len()), one.len().max(other.len()));
    if less * whole < more * part {
        return false;
    }
    let (mut a, mut b, mut both) = (0, 0, 0);
    while let (Some(left), Some(right)) = (one.get(a), other.get(b)) {
        both += usize::from(left == right);
        a += usize::from(left <= right);
        b += usize::from(right <= left);
    }
    both * whole >= part * (one.len() + other.len() - both)
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    use super::super::View;
    use super::*;

    /// So many words that no other text has.
    fn words(of: &str, count: usize) -> String {
        (0..count).map(|n| format!("{of}{n} ")).collect()
    }

    fn list(maker: TruthMaker) -> String {
        let mut out = Vec::new();
        maker.finish().write(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_area_decides_one_view_and_what_few_pages_have_the_other() {
        let mut maker = TruthMaker::default();
        let menu = words("menu", 60);
        for (url, article, footer) in [
            ("/a", "a", "x"),
            ("/a?sid=1", "a", "y"),
            ("/b", "b", "x"),
            ("/empty", "", ""),
            ("/empty?2", "", ""),
        ] {
            let text = if article.is_empty() { String::new() } else { words(article, 60) };
            let whole = format!("{menu}\n{text}\n{}", words(footer, if footer.is_empty() { 0 } else { 30 }));
            maker.add_page(url, &whole, Some(&text));
        }
        maker.add("/gone", ResponseKind::Error);
        maker.add("/feed", ResponseKind::Other);
        let made = maker.clone().finish();
        assert_eq!((made.urls(), made.pages()), (7, 5));
        assert_eq!((made.contents(View::Area), made.contents(View::Page)), (3, 4));
        // The footers of the first two pages differ, and pages of menu alone are equal.
        let expected = "0\t0\tpage\t/a\n0\t1\tpage\t/a?sid=1\n1\t2\tpage\t/b\n2\t3\tpage\t/empty\n2\t3\tpage\t/empty?2\n\
            -1\t-1\terror\t/gone\n-1\t-1\tother\t/feed\n";
        assert_eq!(list(maker), expected);
    }

    #[test]
    fn words_across_lines_make_shingles_and_a_tenth_may_differ() {
        let text = words("w", 103);
        let lines = text.replace(' ', "\n");
        let (changed_end, changed_more) = (format!("{}x", words("w", 100)), words("w", 80));
        let mut maker = TruthMaker::default();
        for (url, text) in
            [("/a", &text), ("/lines", &lines), ("/near", &changed_end), ("/far", &changed_more)]
        {
            maker.add_page(url, text, None);
        }
        assert_eq!(list(maker), "0\t0\tpage\t/a\n0\t0\tpage\t/lines\n0\t0\tpage\t/near\n1\t1\tpage\t/far\n");
    }

    #[test]
    fn the_last_answer_of_a_url_counts_and_it_keeps_its_place() {
        let mut maker = TruthMaker::default();
        maker.add("http://h.example/busy#top", ResponseKind::Error);
        maker.add_page("http://h.example/b", &words("b", 20), None);
        maker.add_page("http://h.example/busy", &words("a", 20), None);
        assert_eq!(list(maker), "0\t0\tpage\t/busy\n1\t1\tpage\t/b\n");
    }

    #[test]
    fn the_index_finds_what_a_comparison_with_all_leaders_finds() {
        let seed: u64 = rand::random();
        println!("seed {seed}");
        let mut random = StdRng::seed_from_u64(seed);
        let mut sets: Vec<Vec<u64>> = Vec::new();
        for _ in 0..300 {
            let mut set: Vec<u64> = match sets.len() {
                0 => Vec::new(),
                others if random.random_range(0..4) > 0 => sets[random.random_range(0..others)].clone(),
                _ => (0..random.random_range(0..60)).map(|_| random.random_range(0..500)).collect(),
            };
            for _ in 0..random.random_range(0..4) {
                let at = random.random_range(0..=set.len());
                set.insert(at, random.random_range(0..500));
                if random.random() {
                    set.remove(random.random_range(0..set.len()));
                }
            }
            set.sort_unstable();
            set.dedup();
            sets.push(set);
        }
        let sets: Vec<&[u64]> = sets.iter().map(Vec::as_slice).collect();
        let mut leaders: Vec<&[u64]> = Vec::new();
        let expected: Vec<u32> = sets
            .iter()
            .map(|set| {
                let jaccard = |other: &[u64]| {
                    let both = set.iter().filter(|hash| other.contains(hash)).count();
                    let either = set.len() + other.len() - both;
                    if either == 0 { 1.0 } else { both as f64 / either as f64 }
                };
                let known = leaders.iter().position(|leader| jaccard(leader) >= 0.9);
                known.unwrap_or_else(|| {
                    leaders.push(set);
                    leaders.len() - 1
                }) as u32
            })
            .collect();
        assert_eq!(contents(&sets), expected);
        assert!((10..250).contains(&leaders.len()), "{} contents", leaders.len());
    }
}

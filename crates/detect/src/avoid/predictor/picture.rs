//! A picture of the sites: templates of URLs, with what was fetched and skipped of each.

use hashbrown::{HashMap, HashSet};
use serde::Serialize;
use url::Url;
use xxhash_rust::xxh3::xxh3_64;

use super::Predictor;
use crate::avoid::shape::raw_slots;
use crate::avoid::site::{LOG, Site, template};

/// The most signatures of URLs of which skips are counted one by one.
const MAX_SIGNATURES: usize = 10_000;

/// The sites as the model sees them: [`Predictor::picture`].
#[derive(Clone, Debug, Default, Serialize)]
pub struct Picture {
    /// The templates with most pages and skips.
    pub templates: Vec<TemplatePicture>,
    /// The number of further templates.
    pub others: usize,
    /// The sums of these.
    pub rest: TemplateCounts,
}

impl Picture {
    /// The picture together with that of another predictor, with at most this many templates.
    #[must_use]
    pub fn with(mut self, other: Self, most: usize) -> Self {
        self.templates.extend(other.templates);
        self.others += other.others;
        self.rest.add(other.rest);
        self.largest(most)
    }

    /// Leaves the largest templates, and counts the others.
    fn largest(mut self, most: usize) -> Self {
        self.templates.sort_by(|a, b| {
            let key = |one: &TemplatePicture| (one.site.clone(), one.template.clone());
            b.counts.size().cmp(&a.counts.size()).then_with(|| key(a).cmp(&key(b)))
        });
        let others = self.templates.split_off(most.min(self.templates.len()));
        others.iter().for_each(|other| self.rest.add(other.counts));
        self.others += others.len();
        self
    }
}

/// A template of URLs: `/wiki/{name}?do={choice}&rev={date}`. Constant parts stand for themselves, and so do choices in the path.
#[derive(Clone, Debug, Serialize)]
pub struct TemplatePicture {
    /// The site: a host, or the name that the caller uses for it.
    pub site: String,
    /// The template.
    pub template: String,
    /// A URL of it.
    pub example: String,
    /// Its numbers.
    #[serde(flatten)]
    pub counts: TemplateCounts,
}

/// What was fetched and skipped of a template.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TemplateCounts {
    /// The number of pages that were fetched and learnt.
    pub pages: u64,
    /// The number of these whose content had not come before on the site, from any template.
    pub new: u64,
    /// The number of distinct contents among its pages.
    pub contents: u64,
    /// The number of requests that were skipped. Skips before the restart of a crawl are not counted.
    pub skipped: u64,
    /// The number of pages that were fetched although they would have been skipped; likewise.
    pub explored: u64,
}

impl TemplateCounts {
    fn add(&mut self, other: Self) {
        self.pages += other.pages;
        self.new += other.new;
        self.contents += other.contents;
        self.skipped += other.skipped;
        self.explored += other.explored;
    }

    fn size(self) -> u64 {
        self.pages + self.skipped
    }
}

/// Counts by the site and the signature of URLs, of what the sites do not keep.
#[derive(Debug, Default)]
pub(super) struct Tallies(HashMap<(u64, u32), Tally>);

#[derive(Clone, Debug)]
struct Tally {
    example: Box<str>,
    skipped: u64,
    explored: u64,
}

impl Tallies {
    fn of(&mut self, key: (u64, u32), url: &Url) -> Option<&mut Tally> {
        if self.0.len() >= MAX_SIGNATURES && !self.0.contains_key(&key) {
            return None;
        }
        let empty = || Tally { example: url.as_str().into(), skipped: 0, explored: 0 };
        Some(self.0.entry(key).or_insert_with(empty))
    }
}

impl Predictor {
    /// The sites as templates of URLs, those with most pages and skips first: at most `most` of all sites, and the sums of the others. The
    /// templates are those of now, for all pages of a crawl.
    pub fn picture(&self, most: usize) -> Picture {
        let mut all = Vec::new();
        for (site, model) in &self.sites {
            all.extend(self.templates_of(site, model));
        }
        Picture { templates: all, ..Picture::default() }.largest(most)
    }

    fn templates_of(&self, site: &str, model: &Site) -> Vec<TemplatePicture> {
        let of_site = xxh3_64(site.as_bytes());
        let mut found = Templates { predictor: self, site, model, list: Vec::new(), by_text: HashMap::new() };
        let mut by_signature: HashMap<u32, usize> = HashMap::new();
        let (mut whole, mut without_own) = (HashSet::new(), HashSet::new());
        let mut of_template = HashSet::new();
        for page in 0..model.pages() {
            let (signature, groups) = model.facts(page);
            let template = match by_signature.get(&signature) {
                Some(template) => *template,
                None => {
                    let example = || Some(&*self.tallies.0.get(&(of_site, signature))?.example);
                    let known = model.url_of(page).or_else(example);
                    let template = found.number(known);
                    // A later page of this signature may have a URL that is known.
                    if known.is_some() {
                        by_signature.insert(signature, template);
                    }
                    template
                }
            };
            let counts = &mut found.list[template].counts;
            counts.pages += 1;
            let Some((group, own)) = groups else {
                // Pages without words are never the same.
                counts.new += 1;
                counts.contents += 1;
                continue;
            };
            let is_new = whole.insert(group);
            let is_own_new = own.is_none_or(|own| without_own.insert(own));
            counts.new += u64::from(is_new && is_own_new);
            counts.contents += u64::from(of_template.insert((template, group)));
        }
        for (_, tally) in self.tallies.0.iter().filter(|((of, _), _)| *of == of_site) {
            if tally.skipped + tally.explored > 0 {
                let url = Url::parse(&tally.example).ok();
                let signature = url.map(|url| model.signature(&raw_slots(&url, &self.overrides)));
                let known = signature.and_then(|signature| by_signature.get(&signature).copied());
                let template = known.unwrap_or_else(|| found.number(Some(&tally.example)));
                found.list[template].counts.skipped += tally.skipped;
                found.list[template].counts.explored += tally.explored;
            }
        }
        found.list
    }

    /// Keeps an example of the signature of a page of which no URL is kept otherwise.
    pub(super) fn keep_example(&mut self, model_page: u32, url: &Url, site: &str) {
        if model_page >= LOG as u32
            && let Some(model) = self.sites.get(site)
        {
            let (signature, _) = model.facts(model_page);
            self.tallies.of((xxh3_64(site.as_bytes()), signature), url);
        }
    }

    /// Counts a skipped or explored URL.
    pub(super) fn tally(&mut self, site: &str, url: &Url, is_explored: bool) {
        let Some(model) = self.sites.get(site) else { return };
        let signature = model.signature(&raw_slots(url, &self.overrides));
        if let Some(tally) = self.tallies.of((xxh3_64(site.as_bytes()), signature), url) {
            *(if is_explored { &mut tally.explored } else { &mut tally.skipped }) += 1;
        }
    }
}

/// The templates of a site that were found so far.
struct Templates<'p> {
    predictor: &'p Predictor,
    site: &'p str,
    model: &'p Site,
    list: Vec<TemplatePicture>,
    by_text: HashMap<String, usize>,
}

impl Templates<'_> {
    /// The number of the template of a URL; of an empty one if no URL is known.
    fn number(&mut self, url: Option<&str>) -> usize {
        let parsed = url.and_then(|url| Url::parse(url).ok());
        let text = parsed.map(|url| template(&self.model.parts(&raw_slots(&url, &self.predictor.overrides))));
        let text = text.unwrap_or_else(|| "...".to_owned());
        let next = self.list.len();
        let number = *self.by_text.entry_ref(&text).or_insert(next);
        if number == next {
            self.list.push(TemplatePicture {
                site: self.site.to_owned(),
                template: text,
                example: url.unwrap_or_default().to_owned(),
                counts: TemplateCounts::default(),
            });
        }
        number
    }
}

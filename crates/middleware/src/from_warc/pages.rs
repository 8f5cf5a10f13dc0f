//! The pages of archives as start requests.

use std::collections::HashSet;
use std::fmt;
use std::io::Read;
use std::iter::FusedIterator;

use huntsman_crawler::meta::{self, MetaKey};
use huntsman_crawler::terminal::escape;
use huntsman_crawler::{Error, Request, Result, log, parse_web_url};
use huntsman_warc::{Archive, Archives, CaptureKey, HttpHead, ReadError, Span, WarcReader};
use serde_json::{Value, json};
use url::Url;

/// Bytes of a response in which its HTTP head is looked for.
const HEAD: u64 = 64 << 10;
/// Where the record of a request is: the number of the file, offset, length, and how much was damaged so far.
const PLACE: MetaKey<Value> = MetaKey::new("archived_at");

/// Every page of HTML with status 200 of some archives as a start request, one after the other as they stand in the files.
///
/// A page is a response; a revisit is one if no earlier page has its URL. A request says where its record is, so that the archives are not read for
/// places of captures beforehand, and robots.txt is not asked, because nothing is fetched. The crawl needs `from_warc` with the same archives.
pub struct ArchivePages {
    archives: Archives,
    /// Whether each page has the capture of its URL that is looked up, and is not one of several.
    has_one_of_each: bool,
    file: usize,
    open: Option<WarcReader<Box<dyn Read + Send>>>,
    seen: HashSet<CaptureKey>,
    /// The page that comes next. It is held back until the one behind it is found, so that the last page knows all damage.
    held: Option<Request>,
    damaged: u64,
}

impl fmt::Debug for ArchivePages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArchivePages").field("archives", &self.archives).finish_non_exhaustive()
    }
}

/// Where the record of a page is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) file: usize,
    pub(super) offset: u64,
    pub(super) length: u64,
}

impl Place {
    /// Where the record of a request is, if the request says so.
    pub(super) fn of(request: &Request) -> Option<Self> {
        let value = request.meta_value(PLACE)?;
        let number = |at: usize| value[at].as_u64();
        Some(Self { file: usize::try_from(number(0)?).ok()?, offset: number(1)?, length: number(2)? })
    }
}

/// How many places were found damaged before this request was made.
pub(super) fn damaged(request: &Request) -> u64 {
    request.meta_value(PLACE).and_then(|value| value[3].as_u64()).unwrap_or(0)
}

impl ArchivePages {
    /// The pages of what `from_warc` and `from_warc_at` name. With a time, a URL with several captures is one page.
    ///
    /// # Errors
    /// A name leads to no archive, an archive cannot be read, or there is no page.
    pub fn of(names: &[String], at: Option<&str>) -> Result<Self> {
        let archives = Archives::named(names).map_err(|error| super::unusable(&error))?;
        let mut pages = Self {
            archives,
            has_one_of_each: at.is_some(),
            file: 0,
            open: None,
            seen: HashSet::new(),
            held: None,
            damaged: 0,
        };
        pages.held = pages.find().transpose()?;
        match pages.held {
            Some(_) => Ok(pages),
            None => Err(Error::usage("the archives have no page of HTML")),
        }
    }

    /// The URL of the first page.
    pub fn first(&self) -> &Url {
        &self.held.as_ref().expect("it was found when this was made").url
    }

    fn find(&mut self) -> Option<Result<Request>> {
        loop {
            let file = self.archives.files().get(self.file)?;
            let Some(reader) = &mut self.open else {
                match file.open() {
                    Ok(bytes) => self.open = Some(WarcReader::new(bytes)),
                    Err(error) => return self.give_up(&error),
                }
                continue;
            };
            match page(reader) {
                Ok(Some(Some(found))) => {
                    if let Some(request) = self.request(found) {
                        return Some(Ok(request));
                    }
                }
                Ok(Some(None)) => {}
                Ok(None) => (self.file, self.open) = (self.file + 1, None),
                Err(error) if error.is_damage() => {
                    log::warn!("{}: {error}; the rest of the file is used", shown(file));
                    self.damaged += 1;
                }
                Err(error) => return self.give_up(&error),
            }
        }
    }

    /// The error of the current file, which is not read further.
    fn give_up(&mut self, error: &dyn fmt::Display) -> Option<Result<Request>> {
        let file = self.archives.files().get(self.file)?;
        let error = Error::usage(format!("{}: {}", shown(file), escape(&error.to_string())));
        (self.file, self.open) = (self.file + 1, None);
        Some(Err(error))
    }

    fn request(&mut self, found: Page) -> Option<Request> {
        let Page { url, span, is_revisit } = found;
        let is_new = self.seen.insert(CaptureKey::of_url(&url));
        let mut request = Request::get(url).with_meta(meta::DONT_OBEY_ROBOTSTXT, true);
        if is_revisit || self.has_one_of_each {
            return is_new.then_some(request);
        }
        request.unfiltered = true;
        Some(request.with_meta(PLACE, json!([self.file, span.offset, span.length, self.damaged])))
    }
}

impl Iterator for ArchivePages {
    type Item = Result<Request>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut page = self.held.take()?;
        match self.find() {
            Some(Ok(next)) => self.held = Some(next),
            Some(Err(error)) => {
                self.held = Some(page);
                return Some(Err(error));
            }
            // Damage behind the last page is told with it.
            None => {
                if let Some(mut place) = page.meta_value(PLACE) {
                    place[3] = self.damaged.into();
                    page.set_meta(PLACE, place);
                }
            }
        }
        Some(Ok(page))
    }
}

impl FusedIterator for ArchivePages {}

/// A record that is a page.
struct Page {
    url: Url,
    span: Span,
    is_revisit: bool,
}

/// The next record, if it is a page.
fn page<R: Read>(reader: &mut WarcReader<R>) -> Result<Option<Option<Page>>, ReadError> {
    let Some(head) = reader.next_head()? else { return Ok(None) };
    if !matches!(head.kind(), "response" | "revisit") {
        return Ok(Some(None));
    }
    let start = reader.block(HEAD)?.bytes;
    let Some(span) = reader.finish()? else { return Ok(None) };
    let is_page = HttpHead::parse(&start).is_some_and(|http| {
        let kind = http.get("content-type").unwrap_or_default().to_ascii_lowercase();
        http.status() == Some(200) && (kind.contains("html") || kind.is_empty())
    });
    let url = head.target().filter(|_| is_page).and_then(|url| parse_web_url(url).ok());
    Ok(Some(url.map(|url| Page { url, span, is_revisit: head.kind() == "revisit" })))
}

fn shown(file: &Archive) -> String {
    escape(file.name()).into_owned()
}

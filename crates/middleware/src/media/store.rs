//! The folder of files: what is there, what is being fetched, and what is fetched next.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use huntsman_crawler::{
    Context, Error, Event, FetchError, FetchErrorKind, Request, Response, Result, log, meta,
};
use huntsman_files as files;
use sha2::{Digest, Sha256};
use tokio::sync::{OnceCell, Semaphore};
use tokio::task::spawn_blocking;
use url::Url;

use super::image::{ImageRules, Made, Refusal};
use super::name::{self, FULL};
use super::{FileStatus, StoredFile};

/// Number of URLs whose results are kept. A URL that is older is looked for in the folder, and fetched again only if it failed.
const MAX_RESULTS: usize = 100_000;

/// What is fetched, and what is done with it.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    pub(super) expires: Duration,
    pub(super) max_size: u64,
    pub(super) redirects: bool,
    /// What is done with images; `None` if any file is stored, not only images.
    pub(super) images: Option<ImageRules>,
}

/// The folder, and the URLs of this run.
#[derive(Debug)]
pub(super) struct MediaStore {
    folder: PathBuf,
    rules: Arc<Rules>,
    results: Mutex<Results>,
    downloads: Semaphore,
    /// Why the folder can no longer be written.
    broken: Mutex<Option<String>>,
    has_logged_failure: AtomicBool,
}

/// Results by name; all requests for one URL share its result, also while it is fetched.
#[derive(Debug, Default)]
struct Results {
    by_stem: HashMap<String, Arc<OnceCell<StoredFile>>>,
    oldest_first: VecDeque<String>,
}

impl Results {
    fn of(&mut self, stem: &str) -> Arc<OnceCell<StoredFile>> {
        if let Some(known) = self.by_stem.get(stem) {
            return Arc::clone(known);
        }
        if self.oldest_first.len() >= MAX_RESULTS
            && let Some(oldest) = self.oldest_first.pop_front()
        {
            // Requests that still wait for it hold the cell.
            self.by_stem.remove(&oldest);
        }
        self.oldest_first.push_back(stem.to_owned());
        Arc::clone(self.by_stem.entry(stem.to_owned()).or_default())
    }
}

impl MediaStore {
    /// Makes the folder.
    pub(super) async fn open(folder: PathBuf, rules: Rules, at_once: usize) -> Result<Self> {
        let mut names = vec![FULL.to_owned()];
        let thumbs =
            rules.images.iter().flat_map(|images| images.thumbs.keys()).map(|name| format!("thumbs/{name}"));
        names.extend(thumbs);
        let made = folder.clone();
        let make = move || {
            files::create_dir_all(&made)?;
            names.iter().try_for_each(|name| {
                if let Some((above, _)) = name.split_once('/') {
                    files::create_dir(made.join(above))?;
                }
                files::create_dir(made.join(name))
            })
        };
        let shown = folder.display().to_string();
        spawn_blocking(make)
            .await?
            .map_err(|error: io::Error| Error::usage(format!("making the folder {shown}: {error}")))?;
        Ok(Self {
            folder,
            rules: Arc::new(rules),
            results: Mutex::default(),
            downloads: Semaphore::new(at_once),
            broken: Mutex::default(),
            has_logged_failure: AtomicBool::default(),
        })
    }

    /// The file of a URL, which is fetched unless it is there and young enough. Whatever the URL is and the server does is a result; an
    /// error is a stop of the crawl or a failure of the disk.
    pub(super) async fn fetch(&self, text: String, cx: &Context) -> Result<StoredFile> {
        let request = match Request::parse(&text) {
            Ok(request) if matches!(request.url.scheme(), "http" | "https") => request,
            Ok(request) => {
                let why = format!("the scheme {} is not fetched", request.url.scheme());
                return Ok(self.refuse(text, &why, cx));
            }
            Err(error) => return Ok(self.refuse(text, &error.to_string(), cx)),
        };
        let mut url = request.url;
        url.set_fragment(None);
        let stem = name::stem(&url);
        let cell = self.results.lock().unwrap_or_else(PoisonError::into_inner).of(&stem);
        let result = cell.get_or_try_init(|| self.obtain(url, &stem, cx)).await?;
        Ok(StoredFile { url: text, ..result.clone() })
    }

    /// A URL that is not fetched.
    pub(super) fn refuse(&self, url: String, why: &str, cx: &Context) -> StoredFile {
        self.told(failed(url, why.to_owned()), cx)
    }

    pub(super) fn verify(&self) -> Result<()> {
        match &*self.broken.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(why) => Err(Error::msg(format!("storing files in {}: {why}", self.folder.display()))),
            None => Ok(()),
        }
    }

    async fn obtain(&self, url: Url, stem: &str, cx: &Context) -> Result<StoredFile> {
        let permit = self.downloads.acquire().await.expect("it is never closed");
        let place = Place {
            folder: self.folder.clone(),
            url: url.clone(),
            stem: stem.to_owned(),
            rules: Arc::clone(&self.rules),
            stale: Vec::new(),
        };
        let now = UNIX_EPOCH + Duration::from_micros(cx.now().0);
        let (found, place) = spawn_blocking(move || {
            let mut place = place;
            (place.find(now), place)
        })
        .await?;
        let stored = match found {
            Some(found) => self.settled(found, &url)?,
            None => match self.download(&url, cx).await {
                Ok(response) => self.keep(&url, place, response).await?,
                // The page of the item is processed again by the next run.
                Err(error) if error.kind() == FetchErrorKind::Cancelled && cx.is_stopping() => {
                    return Err(error.into());
                }
                Err(error) => failed(url.into(), error.to_string()),
            },
        };
        drop(permit);
        Ok(self.told(stored, cx))
    }

    /// Downloads through the downloader chain and the slot of the host.
    async fn download(&self, url: &Url, cx: &Context) -> Result<Response, FetchError> {
        let request = Request::get(url.clone())
            .with_meta(meta::DOWNLOAD_BINARY, true)
            .with_meta(meta::DOWNLOAD_MAXSIZE, self.rules.max_size)
            // A large file is what was asked for.
            .with_meta(meta::DOWNLOAD_WARNSIZE, 0)
            .with_meta(meta::ALLOW_OFFSITE, true)
            .with_meta(meta::DONT_METAREFRESH, true)
            .with_meta(meta::DONT_REDIRECT, !self.rules.redirects);
        cx.download(request).await
    }

    /// Writes a response to the folder.
    async fn keep(&self, url: &Url, place: Place, response: Response) -> Result<StoredFile> {
        if !response.status.is_success() {
            return Ok(failed(url.to_string(), format!("status {}", response.status.as_u16())));
        }
        // With `download_truncate` a body that is too large is cut; a part of a file is not the file.
        let is_part = ["truncated", "partial", "dataloss", "download_stopped", "unread"];
        if let Some(flag) = is_part.into_iter().find(|flag| response.has_flag(flag)) {
            return Ok(failed(url.to_string(), format!("only a part was received ({flag})")));
        }
        if response.body.is_empty() {
            return Ok(failed(url.to_string(), "the body is empty".to_owned()));
        }
        let ending = match self.rules.images {
            None => name::ending(&response.headers, url),
            Some(_) => match name::image_ending(&response.body) {
                Some(ending) => ending,
                None => {
                    let why = "it is no image: neither JPEG, PNG, GIF nor WebP";
                    return Ok(failed(url.to_string(), why.to_owned()));
                }
            },
        };
        let status = if response.has_flag("cached") { FileStatus::Cached } else { FileStatus::Downloaded };
        let body = response.body;
        let kept = spawn_blocking(move || place.keep(body, ending, status)).await?;
        self.settled(kept, url)
    }

    /// The result for a URL. It is an error only if the disk failed: an image that is refused is a result, too.
    fn settled(&self, kept: Result<StoredFile, Fault>, url: &Url) -> Result<StoredFile> {
        match kept {
            Ok(stored) => Ok(stored),
            Err(Fault::Refused(Refusal::Unreadable(why))) => Ok(failed(url.to_string(), why)),
            Err(Fault::Refused(Refusal::Small(why))) => {
                Ok(StoredFile { status: FileStatus::Skipped, ..failed(url.to_string(), why) })
            }
            Err(Fault::Disk(path, error)) => Err(self.broke(&path, &error)),
        }
    }

    /// Remembers that the folder cannot be written, which ends the crawl at the next flush.
    fn broke(&self, path: &str, error: &io::Error) -> Error {
        let why = format!("{path}: {error}");
        let mut broken = self.broken.lock().unwrap_or_else(PoisonError::into_inner);
        Error::msg(broken.get_or_insert(why).clone())
    }

    /// Counts a result, under the names of Scrapy, and logs the first failure.
    fn told(&self, stored: StoredFile, cx: &Context) -> StoredFile {
        cx.stats().inc("file_count");
        cx.stats().inc(&format!("file_status_count/{}", stored.status.name()));
        // An image that is too small is no failure: the settings say that it is not wanted.
        if let Some(why) = stored.error.as_ref().filter(|_| stored.status == FileStatus::Failed) {
            let kind = if self.rules.images.is_some() { "images" } else { "files" };
            cx.emit(&Event::FileFailed { kind, url: &stored.url, error: why });
            if self.has_logged_failure.swap(true, Ordering::Relaxed) {
                return stored;
            }
            log::warn!(
                url = %stored.url.escape_debug(),
                "a file of an item could not be stored: {}; further ones are listed in their items and counted, not logged",
                why.escape_debug()
            );
        }
        stored
    }
}

/// Why a file is not stored.
enum Fault {
    /// The image is not as the settings want it.
    Refused(Refusal),
    /// This file cannot be read or written.
    Disk(String, io::Error),
}

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl Fault {
    fn disk(path: &str) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |error| Self::Disk(path, error)
    }
}

/// The place of a URL in the folder. Its methods block.
struct Place {
    folder: PathBuf,
    url: Url,
    stem: String,
    rules: Arc<Rules>,
    /// Files of the URL that are too old or of another format; they make room for a new one.
    stale: Vec<String>,
}

impl Place {
    /// The file that is there, with its thumbnails, if it is young enough. A file that cannot be read is as good as none.
    fn find(&mut self, now: SystemTime) -> Option<Result<StoredFile, Fault>> {
        let target = self.rules.images.as_ref().and_then(|images| images.convert);
        for ending in name::endings(&self.url) {
            let path = name::path(&self.stem, ending);
            let file = self.folder.join(&path);
            let Some(metadata) = file.symlink_metadata().ok().filter(fs::Metadata::is_file) else { continue };
            // A file of the future is new: the clock was set back.
            let age = metadata.modified().map(|at| now.duration_since(at).unwrap_or_default());
            let is_young = age.is_ok_and(|age| age < self.rules.expires);
            // An image of another format was stored before the settings wanted this one.
            let is_wanted = target.is_none_or(|target| target.ending() == ending);
            if is_young
                && is_wanted
                && let Ok((checksum, bytes)) = hash(&file)
            {
                let stored = self.stored(FileStatus::Uptodate, path, checksum, bytes);
                return Some(self.with_missing_thumbs(stored, ending));
            }
            self.stale.push(path);
        }
        None
    }

    /// Stores a file or an image as the rules want it, with all thumbnails.
    fn keep(&self, body: Bytes, ending: &'static str, status: FileStatus) -> Result<StoredFile, Fault> {
        let made = match &self.rules.images {
            None => Made::as_it_is(body, ending),
            Some(images) => {
                images.check_size(&body)?;
                images.make(body, ending, |_| true)?
            }
        };
        let path = name::path(&self.stem, made.ending);
        self.write(&path, &made.body).map_err(Fault::disk(&path))?;
        self.write_thumbs(&made)?;
        let checksum = hex(&Sha256::digest(&made.body));
        Ok(self.stored(status, path, checksum, made.body.len() as u64))
    }

    /// Makes the thumbnails that are missing of an image that is there.
    fn with_missing_thumbs(&self, stored: StoredFile, ending: &'static str) -> Result<StoredFile, Fault> {
        let is_there =
            |path: &str| self.folder.join(path).symlink_metadata().is_ok_and(|found| found.is_file());
        let (Some(images), Some(path)) = (&self.rules.images, &stored.path) else { return Ok(stored) };
        if !stored.thumbs.values().all(|path| is_there(path)) {
            let body = fs::read(self.folder.join(path)).map_err(Fault::disk(path))?;
            self.write_thumbs(&images.make(body.into(), ending, |name| !is_there(&stored.thumbs[name]))?)?;
        }
        Ok(stored)
    }

    /// Writes a file whole and durably, and removes those that an earlier run stored under other endings.
    fn write(&self, path: &str, body: &[u8]) -> io::Result<()> {
        files::write(self.folder.join(path), body)?;
        for stale in self.stale.iter().filter(|stale| *stale != path) {
            match files::remove_file(self.folder.join(stale)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    fn write_thumbs(&self, made: &Made) -> Result<(), Fault> {
        made.thumbs.iter().try_for_each(|(name, body)| {
            let path = self.thumb(name);
            files::write(self.folder.join(&path), body).map_err(Fault::disk(&path))
        })
    }

    fn thumb(&self, name: &str) -> String {
        format!("thumbs/{name}/{}.jpg", self.stem)
    }

    fn stored(&self, status: FileStatus, path: String, checksum: String, bytes: u64) -> StoredFile {
        let thumbs = self.rules.images.iter().flat_map(|images| images.thumbs.keys());
        StoredFile {
            url: self.url.to_string(),
            path: Some(path),
            checksum: Some(checksum),
            bytes: Some(bytes),
            status,
            error: None,
            thumbs: thumbs.map(|name| (name.clone(), self.thumb(name))).collect(),
        }
    }
}

fn failed(url: String, why: String) -> StoredFile {
    StoredFile {
        url,
        path: None,
        checksum: None,
        bytes: None,
        status: FileStatus::Failed,
        error: Some(why),
        thumbs: BTreeMap::new(),
    }
}

fn hash(path: &Path) -> io::Result<(String, u64)> {
    let (mut file, mut sha, mut length) = (File::open(path)?, Sha256::new(), 0);
    let mut piece = vec![0; 1 << 16];
    loop {
        match file.read(&mut piece)? {
            0 => return Ok((hex(&sha.finalize()), length)),
            read => {
                sha.update(&piece[..read]);
                length += read as u64;
            }
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

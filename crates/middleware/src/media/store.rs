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
    /// The thumbnails that are made; `None` if any file is stored, not only images.
    pub(super) images: Option<BTreeMap<String, (u32, u32)>>,
    #[cfg_attr(not(feature = "thumbnails"), expect(dead_code, reason = "only thumbnails read it"))]
    pub(super) max_pixels: u64,
}

/// The folder, and the URLs of this run.
#[derive(Debug)]
pub(super) struct MediaStore {
    folder: PathBuf,
    rules: Rules,
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

/// A file in the folder.
struct Found {
    path: String,
    checksum: String,
    bytes: u64,
}

impl MediaStore {
    /// Makes the folder.
    pub(super) async fn open(folder: PathBuf, rules: Rules, at_once: usize) -> Result<Self> {
        let mut names = vec![FULL.to_owned()];
        let thumbs = rules.images.iter().flat_map(BTreeMap::keys).map(|name| format!("thumbs/{name}"));
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
            rules,
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
        let place = self.downloads.acquire().await.expect("it is never closed");
        let found = {
            let (folder, url, stem) = (self.folder.clone(), url.clone(), stem.to_owned());
            let (now, expires) = (UNIX_EPOCH + Duration::from_micros(cx.now().0), self.rules.expires);
            spawn_blocking(move || find(&folder, &url, &stem, now, expires)).await?
        };
        let stored = match found {
            Some(found) => {
                let body = self.folder.join(&found.path);
                self.with_thumbs(stored(url.as_str(), found, FileStatus::Uptodate), stem, Source::File(body))
                    .await?
            }
            None => match self.download(&url, cx).await {
                Ok(response) => self.keep(&url, stem, response).await?,
                // The page of the item is processed again by the next run.
                Err(error) if error.kind() == FetchErrorKind::Cancelled && cx.is_stopping() => {
                    return Err(error.into());
                }
                Err(error) => failed(url.into(), error.to_string()),
            },
        };
        drop(place);
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
    async fn keep(&self, url: &Url, stem: &str, response: Response) -> Result<StoredFile> {
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
        let path = name::path(stem, ending);
        let written = {
            let (folder, path, body) = (self.folder.clone(), path.clone(), body.clone());
            let (url, stem) = (url.clone(), stem.to_owned());
            spawn_blocking(move || write(&folder, &path, &body, (&url, &stem))).await?
        };
        let checksum = written.map_err(|error| self.broke(&path, &error))?;
        let found = Found { path, checksum, bytes: body.len() as u64 };
        self.with_thumbs(stored(url.as_str(), found, status), stem, Source::Body(body)).await
    }

    /// Adds the thumbnails of an image. If they cannot be made, the image is a failure, because it cannot be read.
    #[cfg(feature = "thumbnails")]
    async fn with_thumbs(&self, mut stored: StoredFile, stem: &str, source: Source) -> Result<StoredFile> {
        use super::thumbnail::{self, Failure};
        let Some(thumbs) = self.rules.images.as_ref().filter(|thumbs| !thumbs.is_empty()) else {
            return Ok(stored);
        };
        let (folder, stem, thumbs) = (self.folder.clone(), stem.to_owned(), thumbs.clone());
        let max_pixels = self.rules.max_pixels;
        let made = spawn_blocking(move || {
            let is_new = matches!(source, Source::Body(_));
            thumbnail::make(&folder, &stem, &thumbs, max_pixels, is_new, || source.read())
        });
        match made.await? {
            Ok(made) => stored.thumbs = made,
            Err(Failure::Image(why)) => return Ok(failed(stored.url, why)),
            Err(Failure::Disk(error)) => return Err(self.broke("thumbs", &error)),
        }
        Ok(stored)
    }

    /// Without the feature `thumbnails` the settings ask for none.
    #[cfg(not(feature = "thumbnails"))]
    #[expect(clippy::unused_async, reason = "with the feature it waits")]
    async fn with_thumbs(&self, stored: StoredFile, _: &str, _: Source) -> Result<StoredFile> {
        Ok(stored)
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
        if let Some(why) = &stored.error {
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

/// Where the bytes of an image are.
#[cfg_attr(not(feature = "thumbnails"), expect(dead_code, reason = "only thumbnails read it"))]
enum Source {
    Body(Bytes),
    File(PathBuf),
}

#[cfg(feature = "thumbnails")]
impl Source {
    fn read(self) -> io::Result<Bytes> {
        match self {
            Self::Body(body) => Ok(body),
            Self::File(path) => Ok(fs::read(path)?.into()),
        }
    }
}

fn stored(url: &str, found: Found, status: FileStatus) -> StoredFile {
    StoredFile {
        url: url.to_owned(),
        path: Some(found.path),
        checksum: Some(found.checksum),
        bytes: Some(found.bytes),
        status,
        error: None,
        thumbs: BTreeMap::new(),
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

/// The file of a URL, if it is young enough. A file that cannot be read is as good as none.
fn find(folder: &Path, url: &Url, stem: &str, now: SystemTime, expires: Duration) -> Option<Found> {
    name::endings(url).find_map(|ending| {
        let path = name::path(stem, ending);
        let file = folder.join(&path);
        let metadata = file.symlink_metadata().ok().filter(fs::Metadata::is_file)?;
        // A file of the future is new: the clock was set back.
        let age = now.duration_since(metadata.modified().ok()?).unwrap_or_default();
        if age >= expires {
            return None;
        }
        let (checksum, bytes) = hash(&file).ok()?;
        Some(Found { path, checksum, bytes })
    })
}

/// Writes a file whole and durably, and removes one that an earlier run stored under another ending. Returns its checksum.
fn write(folder: &Path, path: &str, body: &[u8], (url, stem): (&Url, &str)) -> io::Result<String> {
    files::write(folder.join(path), body)?;
    for other in name::endings(url).map(|ending| name::path(stem, ending)).filter(|other| other != path) {
        let file = folder.join(other);
        if file.symlink_metadata().is_ok_and(|found| found.is_file()) {
            files::remove_file(file)?;
        }
    }
    Ok(hex(&Sha256::digest(body)))
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

//! Files and images that items name: they are fetched once, stored in a folder, and listed in the item.
//!
//! It is a pipeline and not a component, because it works on items. It has no list of what was fetched: the folder is the list, so
//! a crawl that was killed goes on with what is there.

mod image;
mod name;
mod store;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt, stream};
use huntsman_crawler::{ConcurrentPipeline, Context, Error, OnItem, Result, Settings, check_time, settings};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use url::Url;

use self::image::ImageRules;
use self::store::{MediaStore, Rules};

pub use self::image::ImageTarget;

settings! {
    /// Settings of [`Media`].
    pub struct MediaSettings checked by check {
        /// Folder in which a spider file's crawl stores the files that items name; if unset, they are not fetched.
        files_store: Option<String> = None;
        /// Field of an item that names files: a URL or a list of URLs.
        files_urls_field: String = "file_urls".to_owned();
        /// Field of an item in which the stored files are listed.
        files_result_field: String = "files".to_owned();
        /// Days after which a stored file is fetched again; a younger one is not.
        files_expires: f64 = 90.0;
        /// Folder in which a spider file's crawl stores the images that items name; if unset, they are not fetched.
        images_store: Option<String> = None;
        /// Field of an item that names images: a URL or a list of URLs.
        images_urls_field: String = "image_urls".to_owned();
        /// Field of an item in which the stored images are listed.
        images_result_field: String = "images".to_owned();
        /// Days after which a stored image is fetched again; a younger one is not.
        images_expires: f64 = 90.0;
        /// Thumbnails of images by name, each with the greatest width and height, such as {small = [50, 50]}. The program has to be
        /// built with the feature thumbnails.
        images_thumbs: BTreeMap<String, (u32, u32)> = BTreeMap::new();
        /// Smallest width of an image in pixels; a narrower one is not stored, and listed as skipped. Needs the feature thumbnails.
        images_min_width: u32 = 0;
        /// Smallest height of an image in pixels; a lower one is not stored, and listed as skipped. Needs the feature thumbnails.
        images_min_height: u32 = 0;
        /// Format in which images are stored: jpeg or png; if unset, as they are. Needs the feature thumbnails.
        images_convert: Option<ImageTarget> = None;
        /// Largest number of pixels of an image that is converted or of which thumbnails are made; one with more fails before it is
        /// decoded.
        images_max_pixels: u64 = 40_000_000;
        /// Largest size of a file or image in bytes; a larger one fails. 0 is no limit.
        media_max_size: u64 = 64 << 20;
        /// Largest number of files and of images of one item; those beyond it fail.
        media_max_urls: usize = 1_000;
        /// Number of files, and of images, that are fetched at once. So many times media_max_size is the memory that they may need.
        media_at_once: usize = 8;
        /// Follows redirects of files and images.
        media_allow_redirects: bool = true;
    }
}

fn check(settings: &MediaSettings) -> Result<()> {
    check_time("files_expires", settings.files_expires)?;
    check_time("images_expires", settings.images_expires)?;
    if settings.media_at_once == 0 {
        return Err(Error::usage("setting media_at_once: must be at least 1"));
    }
    // The name is a part of a path.
    let is_name = |name: &str| {
        (1..=64).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    for (name, (width, height)) in &settings.images_thumbs {
        if !is_name(name) || ![*width, *height].iter().all(|side| (1..=4_096).contains(side)) {
            return Err(Error::usage(format!(
                "setting images_thumbs: {name} = [{width}, {height}]: the name has letters, digits, - and _, each side 1 to 4096 pixels"
            )));
        }
    }
    let reading = [
        ("images_thumbs", !settings.images_thumbs.is_empty()),
        ("images_convert", settings.images_convert.is_some()),
        ("images_min_width", settings.images_min_width > 0),
        ("images_min_height", settings.images_min_height > 0),
    ];
    match reading.into_iter().find(|(_, is_set)| *is_set && !cfg!(feature = "thumbnails")) {
        Some((name, _)) => {
            Err(Error::usage(format!("setting {name}: build the program with the feature thumbnails")))
        }
        None => Ok(()),
    }
}

/// An item that names files.
pub trait MediaItem {
    /// The URLs in a field, such as `file_urls`.
    fn media_urls(&self, field: &str) -> Vec<String>;

    /// Takes what became of them, in the order of the URLs, for a field such as `files`.
    fn set_media(&mut self, field: &str, stored: Vec<StoredFile>);
}

impl MediaItem for Map<String, Value> {
    fn media_urls(&self, field: &str) -> Vec<String> {
        match self.get(field) {
            Some(Value::String(url)) => vec![url.clone()],
            Some(Value::Array(urls)) => {
                urls.iter().filter_map(|url| url.as_str().map(str::to_owned)).collect()
            }
            _ => Vec::new(),
        }
    }

    fn set_media(&mut self, field: &str, stored: Vec<StoredFile>) {
        let stored = serde_json::to_value(stored).expect("its fields are texts, numbers and tables of texts");
        self.insert(field.to_owned(), stored);
    }
}

impl MediaItem for Value {
    fn media_urls(&self, field: &str) -> Vec<String> {
        self.as_object().map_or_else(Vec::new, |object| object.media_urls(field))
    }

    fn set_media(&mut self, field: &str, stored: Vec<StoredFile>) {
        if let Some(object) = self.as_object_mut() {
            object.set_media(field, stored);
        }
    }
}

/// What became of one URL of an item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StoredFile {
    /// The URL as the item names it.
    pub url: String,
    /// The name of the file within the folder: `full/<SHA-1 of the URL>.<ending>`. `None` if it is not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// SHA-256 of the content, in hexadecimal digits. Scrapy has MD5, with which a site can give two files one checksum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksum: Option<String>,
    /// Size of the stored content in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// How the file came to be there.
    pub status: FileStatus,
    /// Why it failed, or was skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The names of thumbnails within the folder, by the names in the setting `images_thumbs`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub thumbs: BTreeMap<String, String>,
}

/// How a file came to be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileStatus {
    /// It was fetched by this run.
    Downloaded,
    /// It was there, and young enough.
    Uptodate,
    /// It came from the HTTP cache.
    Cached,
    /// It is not there.
    Failed,
    /// It is an image smaller than `images_min_width` or `images_min_height`, and not stored.
    Skipped,
}

impl FileStatus {
    fn name(self) -> &'static str {
        match self {
            Self::Downloaded => "downloaded",
            Self::Uptodate => "uptodate",
            Self::Cached => "cached",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        }
    }
}

/// What is fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Files,
    Images,
}

/// A pipeline that fetches the files or images that items name, and lists them in the items.
///
/// Downloads are requests of the crawl: they wait for the slot of their host, obey its robots.txt, and pass the downloader middlewares,
/// retries and all limits of the HTTP client. They may leave the scope of the crawl, because images of a site are often on another
/// host. Each URL is fetched once in a crawl, however many items name it, and not again by a later run while the stored file is
/// younger than `files_expires`.
///
/// A file that cannot be fetched is listed in the item with its error, counted in `file_status_count/failed`, and costs nothing else.
/// Only a folder that cannot be written ends the crawl.
///
/// A file needs memory of its size until it is written, at most `media_at_once` times `media_max_size`, and each URL
/// some 300 bytes for the results of the last 100,000 URLs.
///
/// ```no_run
/// use huntsman_crawler::{CrawlerBuilder, Result, Spider};
/// use huntsman_middleware::{Defaults, Media};
///
/// fn with_files<S: Spider<Item = serde_json::Value>>(spider: S) -> CrawlerBuilder<S> {
///     let builder = CrawlerBuilder::new(spider).plugin(Defaults);
///     builder.concurrent_pipeline(Media::files("files")).concurrent_pipeline(Media::images("images"))
/// }
/// ```
#[derive(Debug)]
pub struct Media {
    kind: Kind,
    folder: PathBuf,
    opened: Option<Opened>,
}

/// What is known once the settings are.
#[derive(Debug)]
struct Opened {
    store: MediaStore,
    urls_field: String,
    result_field: String,
    max_urls: usize,
    at_once: usize,
}

impl Media {
    /// Stores files in a folder, which is made if it is missing.
    pub fn files(folder: impl Into<PathBuf>) -> Self {
        Self { kind: Kind::Files, folder: folder.into(), opened: None }
    }

    /// Stores images in a folder, which is made if it is missing: JPEG, PNG, GIF and WebP by their first bytes. Another file is
    /// a failure. They are stored as they are, unless `images_convert` says otherwise.
    pub fn images(folder: impl Into<PathBuf>) -> Self {
        Self { kind: Kind::Images, folder: folder.into(), opened: None }
    }

    /// The pipelines that the settings `files_store` and `images_store` ask for.
    ///
    /// # Errors
    /// No part of the crawl declares the settings.
    pub fn of_settings(settings: &Settings) -> Result<Vec<Self>> {
        let own: MediaSettings = settings.of()?;
        let files = own.files_store.map(Self::files);
        Ok(files.into_iter().chain(own.images_store.map(Self::images)).collect())
    }

    /// Makes the folder. As a pipeline it is called by the crawl; a pipeline that has others inside calls it in its own `open`.
    ///
    /// # Errors
    /// The folder cannot be made, or the settings are not declared.
    pub async fn prepare(&mut self, cx: &Context) -> Result<()> {
        // A crawl without the built-in components has the defaults.
        let own: MediaSettings = cx.settings().of_or_default();
        let (expires, urls_field, result_field) = match self.kind {
            Kind::Files => (own.files_expires, own.files_urls_field, own.files_result_field),
            Kind::Images => (own.images_expires, own.images_urls_field, own.images_result_field),
        };
        let rules = Rules {
            expires: Duration::try_from_secs_f64(expires * 86_400.0).unwrap_or(Duration::MAX),
            max_size: own.media_max_size,
            redirects: own.media_allow_redirects,
            images: (self.kind == Kind::Images).then_some(ImageRules {
                min: (own.images_min_width, own.images_min_height),
                convert: own.images_convert,
                thumbs: own.images_thumbs,
                max_pixels: own.images_max_pixels,
            }),
        };
        let store = MediaStore::open(self.folder.clone(), rules, own.media_at_once).await?;
        let at_once = own.media_at_once;
        self.opened = Some(Opened { store, urls_field, result_field, max_urls: own.media_max_urls, at_once });
        Ok(())
    }

    /// Fetches what one item names, and lists it in the item. URLs that are relative are joined with `base`, if there is one.
    ///
    /// # Errors
    /// The folder cannot be written, the crawl stops before all is there, or [`prepare`](Self::prepare) was not called.
    pub async fn fill(&self, item: &mut impl MediaItem, base: Option<&Url>, cx: &Context) -> Result<()> {
        let opened = self.opened()?;
        let urls = item.media_urls(&opened.urls_field);
        if urls.is_empty() {
            return Ok(());
        }
        let fetched = stream::iter(urls.into_iter().enumerate()).map(async |(at, url)| {
            let url = match base.map(|base| base.join(&url)) {
                Some(Ok(joined)) => joined.into(),
                _ => url,
            };
            if at < opened.max_urls {
                opened.store.fetch(url, cx).await
            } else {
                Ok(opened.store.refuse(url, "the item names more than media_max_urls", cx))
            }
        });
        let stored = fetched.buffered(opened.at_once).try_collect().await?;
        item.set_media(&opened.result_field, stored);
        Ok(())
    }

    /// Whether all files could be written.
    ///
    /// # Errors
    /// A file could not be written; the error says why.
    pub fn verify(&self) -> Result<()> {
        self.opened()?.store.verify()
    }

    fn opened(&self) -> Result<&Opened> {
        self.opened.as_ref().ok_or_else(|| Error::usage("a pipeline of files is used before it was prepared"))
    }
}

impl<I: MediaItem + Send + 'static> ConcurrentPipeline<I> for Media {
    fn keeps_items(&self) -> bool {
        false
    }

    async fn open(&mut self, cx: &Context) -> Result<()> {
        self.prepare(cx).await
    }

    /// No limit: each download has its own, and an item may name many files of a slow host.
    fn timeout(&self, _: &Settings) -> Option<Duration> {
        None
    }

    async fn process_item(&self, mut item: I, cx: &Context) -> Result<OnItem<I>> {
        self.fill(&mut item, None, cx).await?;
        Ok(OnItem::Keep(item))
    }

    async fn flush(&self) -> Result<()> {
        self.verify()
    }
}

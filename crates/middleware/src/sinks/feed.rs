//! A feed: items written in one format to one file, or to one file per batch.

use std::fs::File;
use std::marker::PhantomData;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use huntsman_crawler::{
    Context, Error, Event, OnItem, Pipeline, Result, Settings, Timestamp, seconds, settings,
};
use huntsman_files::{self as files, Lock};
use serde::Serialize;

use super::delivery::{Completion, Deliveries, Whole};
use super::name::Name;
use super::place::{Place, is_remote};
use super::position::FilePosition;
use super::record::Fields;
use super::settled::LinesToAdd;
use super::target::{Compression, Writer, explain, open_to_append};

settings! {
    /// Settings of feeds.
    pub struct FeedSettings {
        /// Files of the items if the command line names none (`-o`, `--items`); the ending says the format. A relative name is within the output
        /// directory, if the crawl has one.
        feeds: Vec<String> = Vec::new();
        /// Number of items after which feeds are flushed. They are also flushed before a page is acknowledged.
        feed_flush_items: usize = 1_000;
        /// Seconds after which feeds are flushed.
        feed_flush_interval: f64 = 1.0;
        /// Neutralises CSV cells that begin like a formula, which a spreadsheet would run.
        feed_csv_guard: bool = true;
        /// Columns of a Parquet file or an SQLite table at most. Fields beyond are kept as a JSON object in the column `_rest`.
        feed_max_columns: usize = 1_000;
        /// Rows per row group of a Parquet file at most; one is also ended after 32 MiB of items.
        feed_parquet_group_rows: usize = 50_000;
    }
}

/// Serializes items. Implement it for your own format and use [`Feed`] for everything else.
pub trait Format: Default + Send + 'static {
    /// Name of the format in messages.
    const NAME: &'static str;
    /// Whether a file in this format can be appended to.
    const APPENDS: bool;
    /// Whether a file of this format can be read only when it is finished. Its items are then written to a journal first, a file whose name has
    /// `.jsonl` at its end, and [`completion`](Self::completion) makes the file of it.
    const IS_JOURNALED: bool = false;

    /// Reads the settings; called once.
    fn configure(&mut self, settings: &Settings) {
        let _ = settings;
    }

    /// Begins a file. `head` has the first bytes of a file that is appended to, and is empty for a new one.
    ///
    /// # Errors
    /// The existing file has other columns or another format.
    fn begin(&mut self, head: &[u8], fields: &FieldChoice<'_>, out: &mut Vec<u8>) -> Result<()>;

    /// Writes one item. After an error, the bytes that were added to `out` are removed again.
    ///
    /// # Errors
    /// The item cannot be written in this format; it is lost, the file stays complete.
    fn item(&mut self, item: &impl Serialize, fields: &FieldChoice<'_>, out: &mut Vec<u8>) -> Result<()>;

    /// Returns the bytes that close the document in its current state.
    fn tail(&self) -> &'static [u8] {
        b""
    }

    /// Whether records of the file may contain line breaks between quotes.
    fn is_quoted(&self) -> bool {
        false
    }

    /// Makes the file of a journal, for a format that has one.
    fn completion(&self, fields: &FieldChoice<'_>) -> Option<Completion> {
        let _ = fields;
        None
    }
}

/// The fields that a feed writes, passed to the format.
#[derive(Debug)]
pub struct FieldChoice<'a>(pub(super) &'a Fields);

/// A pipeline that writes items to a file or to standard output. The types are [`JsonLines`](super::JsonLines),
/// [`Json`](super::Json), [`Csv`](super::Csv) and [`Xml`](super::Xml).
///
/// The items of a page are flushed to the system before the page is acknowledged, so a killed process loses none of
/// them; a crash leaves at most one partial record, which is cut off when the file is appended to. A file whose name
/// ends with `.gz` or `.zst` is compressed. Names may have parameters: `%(batch_id)05d`, `%(batch_time)s`, `%(time)s`,
/// those of [`Feed::param`] and the arguments of the spider.
pub struct Feed<T, F> {
    name: Option<Name>,
    mode: Mode,
    format: F,
    fields: Fields,
    filter: Option<Filter<T>>,
    compression: Option<Compression>,
    batch_items: Option<u64>,
    store_empty: bool,
    /// The file that the constructor opened.
    ready: Option<Opened>,
    /// The position in a file that belongs to a job; `None` for other files.
    position: Option<FilePosition>,
    /// Whether a new job replaces an object that exists.
    replaces_object: bool,
    /// Lines that others add to the file.
    pub(super) lines: Option<LinesToAdd>,
    state: State,
    items: PhantomData<fn(T)>,
}

/// Selects the items that are written.
pub(super) type Filter<T> = Box<dyn Fn(&T) -> bool + Send>;

/// What to do with a file that exists already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Create,
    Append,
    Overwrite,
}

struct Opened {
    /// Locked, if it is not for two crawls at once.
    file: Lock,
    head: Vec<u8>,
    place: Place,
}

#[derive(Default)]
struct State {
    context: Option<Context>,
    writer: Option<Writer>,
    /// A second handle of the open file, so that it can be synced while it is written.
    file: Option<Arc<File>>,
    /// Holds the lock of the open file.
    lock: Option<Lock>,
    /// Name of the open file as the user has given it, for messages.
    current: String,
    /// Name of the file that is written in fact, for its errors: a journal has another name than the feed.
    written_name: String,
    /// Where the open file is; `None` for standard output.
    place: Option<Place>,
    deliveries: Deliveries,
    buffer: Vec<u8>,
    buffered_items: usize,
    flushed_at: Timestamp,
    /// Read once, because a lookup for each item costs as much as writing a field.
    settings: FeedSettings,
    batch: u64,
    /// The number of files that were opened.
    files: u64,
    /// Errors of files that could not be completed or uploaded.
    undelivered: Vec<Error>,
    in_batch: u64,
    written: u64,
    /// Set after a failed write: nothing more is written, so that the file ends with a whole record.
    broken: Option<String>,
}

/// Number of buffered bytes at which they are written.
const MAX_BUFFER: usize = 256 << 10;

impl<T, F: Format> Feed<T, F> {
    /// A feed that creates a new file. Its folder must exist.
    ///
    /// # Errors
    /// The file exists or cannot be created; the error says what to do.
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        Self::to_file(path.as_ref(), Mode::Create)
    }

    /// A feed that appends to a file, or creates it.
    ///
    /// # Errors
    /// The file cannot be opened, or the format cannot be appended to.
    pub fn append(path: impl AsRef<Path>) -> Result<Self> {
        if !F::APPENDS {
            let what = format!(
                "{} cannot be added to: overwrite {}, or write JSON lines (.jsonl)",
                F::NAME,
                path.as_ref().display()
            );
            return Err(Error::usage(what));
        }
        Self::to_file(path.as_ref(), Mode::Append)
    }

    /// Opens an uncompressed file that belongs to a job: a new job overwrites it, and a resumed job cuts off items that
    /// were written after its last commit, so that no item is lost or duplicated. A journal, and a file that is uploaded, are
    /// kept, because the job may go on with them; what is made of them is made anew each time that the crawl ends. An object of a bucket
    /// that is there before the job is not replaced, unless [`Feed::replace_object`] allows it. The position must be given to the builder:
    ///
    /// ```no_run
    /// # use huntsman_crawler::{CrawlerBuilder, Result, Spider};
    /// # use huntsman_middleware::sinks::JsonLines;
    /// # fn with_feed<S: Spider>(builder: CrawlerBuilder<S>) -> Result<CrawlerBuilder<S>>
    /// # where S::Item: serde::Serialize {
    /// let (feed, position) = JsonLines::of_job("items.jsonl")?;
    /// Ok(builder.pipeline(feed).persist(position))
    /// # }
    /// ```
    ///
    /// # Errors
    /// The file cannot be opened, is to be compressed, or the format cannot be appended to.
    pub fn of_job(path: impl AsRef<Path>) -> Result<(Self, FilePosition)> {
        let path = path.as_ref();
        let shown = path.display();
        if !F::APPENDS || Compression::of_name(&path.to_string_lossy()) != Compression::None {
            let what = format!(
                "{shown}: a job can go on with JSON lines and CSV that are not compressed, with Parquet and with SQLite only"
            );
            return Err(Error::usage(what));
        }
        let template =
            path.to_str().ok_or_else(|| Error::usage(format!("file name {shown}: not valid Unicode")))?;
        let mut feed = Self::new(Some(Name::new(template.to_owned())), Mode::Append);
        if !feed.name.as_ref().is_some_and(Name::is_plain) {
            return Err(Error::usage(format!(
                "file name {shown}: a file of a job has a name without parameters"
            )));
        }
        let place = Place::of(template.to_owned(), F::IS_JOURNALED)?;
        place.make_folder().map_err(|cause| explain("creating", template, cause))?;
        let is_object = place.object.is_some();
        let position = FilePosition::new(place.written)?;
        if is_object {
            position.unsettle();
        }
        feed.position = Some(position.clone());
        Ok((feed, position))
    }

    /// Lets a new job replace an object that is in the bucket already. Without it, such a crawl ends with an error when it begins. Other feeds
    /// say the same by [`Feed::overwrite`].
    pub fn replace_object(mut self) -> Self {
        self.replaces_object = true;
        self
    }

    /// A feed that creates a file, or overwrites an existing one.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn overwrite(path: impl AsRef<Path>) -> Result<Self> {
        Self::to_file(path.as_ref(), Mode::Overwrite)
    }

    /// A feed that writes to standard output.
    pub fn stdout() -> Self {
        Self::new(None, Mode::Overwrite)
    }

    fn to_file(path: &Path, mode: Mode) -> Result<Self> {
        let template = path
            .to_str()
            .ok_or_else(|| Error::usage(format!("file name {}: not valid Unicode", path.display())))?;
        if F::IS_JOURNALED && Compression::of_name(template) != Compression::None {
            let what =
                format!("file name {template}: {} is compressed inside; leave the last ending out", F::NAME);
            return Err(Error::usage(what));
        }
        let mut feed = Self::new(Some(Name::new(template.to_owned())), mode);
        // Whether an object may be written is asked when the crawl begins.
        if feed.name.as_ref().is_some_and(Name::is_plain) && !is_remote(template) {
            // The file is opened now, so that an error shows before hours of crawling.
            feed.ready = Some(feed.open_file(template.to_owned())?);
        }
        Ok(feed)
    }

    fn new(name: Option<Name>, mode: Mode) -> Self {
        Self {
            name,
            mode,
            format: F::default(),
            fields: Fields::default(),
            filter: None,
            compression: None,
            batch_items: None,
            store_empty: true,
            ready: None,
            position: None,
            replaces_object: false,
            lines: None,
            state: State::default(),
            items: PhantomData,
        }
    }

    /// Writes only these fields, in this order.
    pub fn fields<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.fields.chosen = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Writes a field under another name.
    pub fn rename(mut self, field: &str, title: &str) -> Self {
        self.fields.renamed.push((field.to_owned(), title.to_owned()));
        self
    }

    /// Writes only items for which the closure returns true; the others are still passed to the next pipeline.
    pub fn filter(mut self, wanted: impl Fn(&T) -> bool + Send + 'static) -> Self {
        self.filter = Some(Box::new(wanted));
        self
    }

    /// Sets the compression, whatever the file name is.
    pub fn compression(mut self, compression: Compression) -> Self {
        self.compression = Some(compression);
        self
    }

    /// Begins another file after this many items; the name must contain `%(batch_id)05d` or `%(batch_time)s`. Numbering
    /// continues after existing files, unless they are overwritten.
    pub fn batch_items(mut self, items: u64) -> Self {
        self.batch_items = Some(items.max(1));
        self
    }

    /// Whether a file without items is kept (default: yes).
    pub fn store_empty(mut self, keep: bool) -> Self {
        self.store_empty = keep;
        self
    }

    /// Sets a parameter for the file name, such as `name` for `%(name)s`.
    pub fn param(mut self, key: &str, value: &str) -> Self {
        if let Some(name) = &mut self.name {
            name.set(key, value);
        }
        self
    }

    /// The format, for its own options.
    pub(super) fn format_mut(&mut self) -> &mut F {
        &mut self.format
    }

    fn compression_of(&self, name: &str) -> Compression {
        // A journal is read again.
        if F::IS_JOURNALED {
            return Compression::None;
        }
        self.compression.unwrap_or_else(|| Compression::of_name(name))
    }

    fn open_file(&self, name: String) -> Result<Opened> {
        let place = Place::of(name, F::IS_JOURNALED)?;
        let (path, name) = (&place.written, &place.name);
        let doing = if self.mode == Mode::Append { "opening" } else { "creating" };
        place.make_folder().map_err(|cause| explain(doing, name, cause))?;
        if place.has_journal()
            && self.position.is_none()
            && self.mode != Mode::Overwrite
            && place.file.exists()
        {
            return Err(Error::usage(format!(
                "{} cannot be added to: overwrite {name}, or name a new file for each run, as with %(time)s",
                F::NAME
            )));
        }
        let shown = if place.has_journal() { path.display().to_string() } else { name.clone() };
        // A file that becomes another one is not for two crawls at once: the first one to end would take it away.
        let is_locked = place.has_journal() || place.object.is_some();
        let lock = |file| match is_locked {
            true => Lock::exclusive(file).map_err(|_| {
                Error::usage(format!("{doing} {shown}: another crawl writes it; name another file"))
            }),
            false => Ok(Lock::without(file)),
        };
        if is_locked && path.exists() {
            // Asked before it is cut or emptied.
            lock(files::open_write(path).map_err(|cause| explain(doing, &shown, cause))?)?;
        }
        let compression = self.compression_of(name);
        let opened = match self.mode {
            Mode::Create => files::create_new(path).map(|file| (file, Vec::new())),
            Mode::Overwrite => files::open_empty(path).map(|file| (file, Vec::new())),
            Mode::Append if self.format.is_quoted() => {
                open_to_append(path, compression, super::target::QuotedLines::default())
            }
            Mode::Append => open_to_append(path, compression, super::target::Lines::default()),
        };
        let (file, head) = opened.map_err(|cause| explain(doing, &shown, cause))?;
        Ok(Opened { file: lock(file)?, head, place })
    }

    /// The places of the next file that there is not yet. Journals that a killed run left on the way are completed.
    async fn next_place(&mut self, name: &Name, now: Timestamp) -> Result<Place> {
        loop {
            let place = Place::of(name.of_batch(self.state.batch, now)?, F::IS_JOURNALED)?;
            if self.mode != Mode::Append || !name.is_numbered() || !place.exists() {
                return Ok(place);
            }
            self.state.batch += 1;
            if !place.has_journal() || place.file.exists() {
                continue;
            }
            // A journal that another crawl writes is locked.
            let locked = |file| Lock::exclusive(file).ok();
            if let Some(journal) = files::open_append(&place.written).ok().and_then(locked) {
                let completion = self.format.completion(&FieldChoice(&self.fields));
                let whole = Whole { place, completion, is_of_job: false, items: 0, lock: Some(journal) };
                let errors = self.state.deliveries.begin(whole, self.state.context.as_ref()).await;
                self.state.undelivered.extend(errors);
            }
        }
    }

    /// Opens the file of the next batch.
    async fn next_file(&mut self) -> Result<()> {
        self.state.batch += 1;
        let now = self.state.context.as_ref().map_or(Timestamp(0), Context::now);
        let opened = match (self.ready.take(), self.name.clone()) {
            (Some(ready), _) => Some(ready),
            (None, None) => None,
            (None, Some(name)) => {
                let mut place = self.next_place(&name, now).await?;
                let may_be_taken = match &self.position {
                    // What a job has uploaded itself, it replaces whenever it ends.
                    Some(position) => !position.is_resumed() && !self.replaces_object,
                    None => self.mode != Mode::Overwrite,
                };
                // An object that is there is never replaced unasked. Further numbers follow the first one that is free.
                while self.state.files == 0 && may_be_taken && is_taken(&place).await? {
                    if !name.is_numbered() {
                        return Err(Error::usage(format!(
                            "{}: the object exists, and an object cannot be added to: overwrite it, or name a new one for each \
                             run, as with %(time)s",
                            place.name
                        )));
                    }
                    self.state.batch += 1;
                    place = self.next_place(&name, now).await?;
                }
                if let Some(position) = &self.position {
                    position.settle();
                }
                #[cfg(feature = "s3")]
                if place.object.is_some() && super::s3::is_marked(&place.file) {
                    // An earlier run has left it whole; its upload comes first.
                    self.state.deliveries.finish(self.state.context.as_ref()).await;
                    super::s3::unmark(&place.file)?;
                }
                Some(self.open_file(place.name)?)
            }
        };
        self.state.files += 1;
        let (writer, head) = match opened {
            Some(Opened { file, head, place }) => {
                let name = place.name.clone();
                let opening = |e| explain("opening", &name, e);
                let synced = file.try_clone().map_err(opening)?;
                self.state.file = Some(Arc::new(synced));
                let writer = file.try_clone().and_then(|file| Writer::new(file, self.compression_of(&name)));
                let writer = writer.map_err(opening)?;
                self.state.lock = Some(file);
                let is_other = place.has_journal();
                self.state.written_name =
                    if is_other { place.written.display().to_string() } else { name.clone() };
                self.state.current = name;
                self.state.place = Some(place);
                (writer, head)
            }
            None => {
                self.state.current = "standard output".to_owned();
                self.state.written_name.clone_from(&self.state.current);
                let writer = Writer::stdout(self.compression.unwrap_or_default())
                    .map_err(|cause| explain("opening", "standard output", cause))?;
                (writer, Vec::new())
            }
        };
        self.state.writer = Some(writer);
        self.state.in_batch = 0;
        if let (Some(cx), Some(file), None) = (&self.state.context, &self.state.file, &self.position) {
            cx.keep_durable(&self.state.current, file);
        }
        let Self { format, fields, state, .. } = self;
        format
            .begin(&head, &FieldChoice(fields), &mut state.buffer)
            .map_err(|error| error.context(format!("adding to {}", state.current)))
    }

    /// Begins the uploads that an earlier run could not finish.
    async fn go_on_uploading(&mut self, cx: &Context) {
        #[cfg(feature = "s3")]
        if let Some(object) =
            self.name.as_ref().and_then(|name| Place::of(name.template().to_owned(), false).ok()?.object)
        {
            for super::s3::Unfinished { object, path, lock } in super::s3::unfinished(&object.bucket) {
                let name = format!("s3://{}/{}", object.bucket, object.key);
                let place = Place { name, written: path.clone(), file: path, object: Some(object) };
                let whole = Whole { place, completion: None, is_of_job: false, items: 0, lock: Some(lock) };
                // Errors are told when they happen.
                self.state.deliveries.begin(whole, Some(cx)).await;
            }
        }
        let _ = cx;
    }

    async fn close_file(&mut self) -> Result<()> {
        let flushed = if self.position.is_some() { self.write_out() } else { self.check() };
        let Some(writer) = self.state.writer.take() else { return Ok(()) };
        let finished = flushed.and_then(|()| {
            self.add_lines();
            self.state.buffer.extend_from_slice(self.format.tail());
            let bytes = std::mem::take(&mut self.state.buffer);
            self.state.buffered_items = 0;
            writer.finish(&bytes).map_err(|cause| {
                let error = explain("writing", &self.state.written_name, cause);
                self.state.broken = Some(error.to_string());
                error
            })
        });
        (self.state.file, self.state.lock) = (None, None);
        let place = self.state.place.take();
        let items = self.state.in_batch;
        let cx = self.state.context.as_ref();
        match (place, &finished) {
            (Some(place), Ok(())) if place.object.is_some() || place.has_journal() => {
                let is_unwanted = self.state.written == 0 && !self.store_empty && self.position.is_none();
                if is_unwanted && self.mode != Mode::Append {
                    let _ = files::remove_file(&place.written);
                    return Ok(());
                }
                let completion = self.format.completion(&FieldChoice(&self.fields));
                let is_of_job = self.position.is_some();
                let whole = Whole { place, completion, is_of_job, items, lock: None };
                let errors = self.state.deliveries.begin(whole, cx).await;
                self.state.undelivered.extend(errors);
            }
            _ => {
                if let Some(cx) = cx {
                    let error = finished.as_ref().err().map(ToString::to_string);
                    let name = &self.state.current;
                    cx.emit(&Event::FeedSlotClosed { name, items, error: error.as_deref() });
                }
            }
        }
        finished
    }

    /// Waits for the files that are being completed or uploaded.
    #[cfg(all(test, feature = "parquet"))]
    pub(super) async fn settle(&mut self) {
        self.state.deliveries.finish(None).await;
    }

    fn check(&self) -> Result<()> {
        match &self.state.broken {
            Some(what) => Err(Error::msg(what.clone())),
            None => Ok(()),
        }
    }

    fn add_lines(&mut self) {
        if let Some(lines) = &self.lines {
            lines.take_into(&mut self.state.buffer);
        }
    }

    fn write_out(&mut self) -> Result<()> {
        self.check()?;
        self.add_lines();
        let Self { state, format, .. } = self;
        let Some(writer) = &mut state.writer else { return Ok(()) };
        if state.buffer.is_empty() {
            return Ok(());
        }
        let written = writer.write(&state.buffer, format.tail());
        state.buffer.clear();
        state.buffered_items = 0;
        if let Some(position) = &self.position {
            match (&written, writer.end()) {
                (Ok(()), Some(end)) => position.set(end),
                (Ok(()), None) => {}
                (Err(_), _) => position.fail(),
            }
        }
        written.map_err(|cause| {
            let error = explain("writing", &state.written_name, cause);
            state.broken = Some(error.to_string());
            error
        })
    }
}

/// Whether there is an object of this name already.
async fn is_taken(place: &Place) -> Result<bool> {
    #[cfg(feature = "s3")]
    if let Some(object) = &place.object {
        let asked = super::s3::exists(object).await;
        return asked.map_err(|error| error.context(format!("opening {}", place.name)));
    }
    let _ = place;
    Ok(false)
}

impl<T: Serialize + Send + 'static, F: Format> Pipeline<T> for Feed<T, F> {
    /// No limit: an item may begin a new file, and the last one is then completed.
    fn timeout(&self, _: &Settings) -> Option<Duration> {
        None
    }

    async fn open(&mut self, cx: &Context) -> Result<()> {
        if let (Some(_), Some(name)) = (self.batch_items, &self.name)
            && !name.is_batched()
        {
            let name = name.template().escape_debug();
            return Err(Error::usage(format!("file name \"{name}\": batches need %(batch_id)05d in it")));
        }
        if let Some(name) = &mut self.name {
            for (key, value) in &cx.settings().spider_args {
                name.set_default(key, value);
            }
        }
        if F::IS_JOURNALED && self.name.is_none() {
            return Err(Error::usage(format!("{} needs a file: it cannot go to standard output", F::NAME)));
        }
        self.format.configure(cx.settings());
        self.state.settings = cx.settings().of_or_default();
        self.state.flushed_at = cx.now();
        self.state.context = Some(cx.clone());
        self.go_on_uploading(cx).await;
        if self.store_empty || self.ready.is_some() {
            self.next_file().await?;
            self.write_out()?;
        }
        Ok(())
    }

    async fn process_item(&mut self, item: T, cx: &Context) -> Result<OnItem<T>> {
        if self.filter.as_ref().is_some_and(|wanted| !wanted(&item)) {
            return Ok(OnItem::Keep(item));
        }
        self.check()?;
        // Both are rare, and their futures take kilobytes, which would be copied for every item.
        if self.batch_items.is_some_and(|limit| self.state.in_batch >= limit) {
            Box::pin(self.close_file()).await?;
        }
        if self.state.writer.is_none() {
            Box::pin(self.next_file()).await?;
        }
        let whole = self.state.buffer.len();
        let Self { format, fields, state, .. } = self;
        if let Err(error) = format.item(&item, &FieldChoice(fields), &mut state.buffer) {
            state.buffer.truncate(whole);
            return Err(error.context(format!("writing an item to {}", state.current)));
        }
        state.in_batch += 1;
        state.written += 1;
        state.buffered_items += 1;
        let now = cx.now();
        let is_late = now.since(state.flushed_at) >= seconds(state.settings.feed_flush_interval);
        if is_late
            || state.buffered_items >= state.settings.feed_flush_items
            || state.buffer.len() >= MAX_BUFFER
        {
            state.flushed_at = now;
            self.write_out()?;
        }
        Ok(OnItem::Keep(item))
    }

    async fn flush(&mut self) -> Result<()> {
        if let Some(cx) = &self.state.context {
            self.state.flushed_at = cx.now();
        }
        self.write_out()
    }

    async fn close(&mut self) -> Result<()> {
        let closed = self.close_file().await.and_then(|()| self.check());
        let mut undelivered = std::mem::take(&mut self.state.undelivered);
        undelivered.extend(self.state.deliveries.finish(self.state.context.as_ref()).await);
        let is_file = self.name.is_some();
        let is_local = self.name.as_ref().is_some_and(|name| !is_remote(name.template()));
        if is_local
            && !F::IS_JOURNALED
            && !self.store_empty
            && self.state.written == 0
            && self.mode != Mode::Append
        {
            // The file was created only to check that it can be.
            let _ = files::remove_file(&self.state.current);
        }
        if let Some(cx) = &self.state.context {
            let end = if closed.is_ok() && undelivered.is_empty() { "success" } else { "failed" };
            let storage = match (is_file, is_local) {
                (false, _) => "stdout",
                (true, true) => "file",
                (true, false) => "s3",
            };
            cx.stats().inc(&format!("feedexport/{end}_count/{storage}"));
            let name = self.name.as_ref().map_or("standard output", Name::template);
            cx.emit(&Event::FeedExporterClosed { name, items: self.state.written });
        }
        // The items are in local files, so the crawl itself is well. A job is not done yet: it goes on and tries again.
        let retried = undelivered.into_iter().next().filter(|_| self.position.is_some());
        closed.and(retried.map_or(Ok(()), Err))
    }
}

impl<T, F: Format> std::fmt::Debug for Feed<T, F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = self.name.as_ref().map_or("standard output", Name::template);
        f.debug_struct("Feed").field("format", &F::NAME).field("name", &name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;

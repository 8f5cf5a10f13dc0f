//! A feed: items written in one format to one file, or to one file per batch.

use std::fs::File;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use huntsman_crawler::{
    Context, Error, Event, OnItem, Pipeline, Result, Settings, Timestamp, seconds, settings,
};
use huntsman_files as files;
use serde::Serialize;

use super::name::Name;
use super::position::FilePosition;
use super::record::Fields;
use super::target::{Compression, Writer, explain, open_to_append};

settings! {
    /// Settings of feeds.
    pub struct FeedSettings {
        /// Number of items after which feeds are flushed. They are also flushed before a page is acknowledged.
        feed_flush_items: usize = 1_000;
        /// Seconds after which feeds are flushed.
        feed_flush_interval: f64 = 1.0;
        /// Neutralises CSV cells that begin like a formula, which a spreadsheet would run.
        feed_csv_guard: bool = true;
    }
}

/// Serializes items. Implement it for your own format and use [`Feed`] for everything else.
pub trait Format: Default + Send + 'static {
    /// Name of the format in messages.
    const NAME: &'static str;
    /// Whether a file in this format can be appended to.
    const APPENDS: bool;

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
    state: State,
    items: PhantomData<fn(T)>,
}

/// Selects the items that are written.
type Filter<T> = Box<dyn Fn(&T) -> bool + Send>;

/// What to do with a file that exists already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Create,
    Append,
    Overwrite,
}

struct Opened {
    file: File,
    head: Vec<u8>,
    name: String,
}

#[derive(Default)]
struct State {
    context: Option<Context>,
    writer: Option<Writer>,
    /// A second handle of the open file, so that it can be synced while it is written.
    file: Option<Arc<File>>,
    /// Name of the open file, for messages.
    current: String,
    buffer: Vec<u8>,
    buffered_items: usize,
    flushed_at: Timestamp,
    batch: u64,
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
    /// were written after its last commit, so that no item is lost or duplicated. The position must be given to the
    /// builder:
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
            let what = format!("{shown}: a job can go on with plain JSON lines and CSV only");
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
        let position = FilePosition::new(path)?;
        feed.position = Some(position.clone());
        Ok((feed, position))
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
        let mut feed = Self::new(Some(Name::new(template.to_owned())), mode);
        if feed.name.as_ref().is_some_and(Name::is_plain) {
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
        self.compression.unwrap_or_else(|| Compression::of_name(name))
    }

    fn open_file(&self, name: String) -> Result<Opened> {
        let path = PathBuf::from(&name);
        let compression = self.compression_of(&name);
        let opened = match self.mode {
            Mode::Create => files::create_new(&path).map(|file| (file, Vec::new())),
            Mode::Overwrite => files::open_empty(&path).map(|file| (file, Vec::new())),
            Mode::Append if self.format.is_quoted() => {
                open_to_append(&path, compression, super::target::QuotedLines::default())
            }
            Mode::Append => open_to_append(&path, compression, super::target::Lines::default()),
        };
        let doing = if self.mode == Mode::Append { "opening" } else { "creating" };
        let (file, head) = opened.map_err(|cause| explain(doing, &name, cause))?;
        Ok(Opened { file, head, name })
    }

    /// Opens the file of the next batch.
    fn next_file(&mut self) -> Result<()> {
        self.state.batch += 1;
        let now = self.state.context.as_ref().map_or(Timestamp(0), Context::now);
        let opened = match (self.ready.take(), &self.name) {
            (Some(ready), _) => Some(ready),
            (None, None) => None,
            (None, Some(name)) => {
                let mut file = name.of_batch(self.state.batch, now)?;
                if self.mode == Mode::Append && name.is_numbered() {
                    while Path::new(&file).exists() {
                        self.state.batch += 1;
                        file = name.of_batch(self.state.batch, now)?;
                    }
                }
                Some(self.open_file(file)?)
            }
        };
        let (writer, head) = match opened {
            Some(Opened { file, head, name }) => {
                let synced = file.try_clone().map_err(|e| explain("opening", &name, e))?;
                self.state.file = Some(Arc::new(synced));
                let writer = Writer::new(file, self.compression_of(&name))
                    .map_err(|e| explain("opening", &name, e))?;
                self.state.current = name;
                (writer, head)
            }
            None => {
                self.state.current = "standard output".to_owned();
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

    fn close_file(&mut self) -> Result<()> {
        let flushed = if self.position.is_some() { self.write_out() } else { self.check() };
        let Some(writer) = self.state.writer.take() else { return Ok(()) };
        let finished = flushed.and_then(|()| {
            self.state.buffer.extend_from_slice(self.format.tail());
            let bytes = std::mem::take(&mut self.state.buffer);
            self.state.buffered_items = 0;
            writer.finish(&bytes).map_err(|cause| {
                let error = explain("writing", &self.state.current, cause);
                self.state.broken = Some(error.to_string());
                error
            })
        });
        self.state.file = None;
        if let Some(cx) = &self.state.context {
            let error = finished.as_ref().err().map(ToString::to_string);
            let (name, items) = (&self.state.current, self.state.in_batch);
            cx.emit(&Event::FeedSlotClosed { name, items, error: error.as_deref() });
        }
        finished
    }

    fn check(&self) -> Result<()> {
        match &self.state.broken {
            Some(what) => Err(Error::msg(what.clone())),
            None => Ok(()),
        }
    }

    fn write_out(&mut self) -> Result<()> {
        self.check()?;
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
            let error = explain("writing", &state.current, cause);
            state.broken = Some(error.to_string());
            error
        })
    }
}

impl<T: Serialize + Send + 'static, F: Format> Pipeline<T> for Feed<T, F> {
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
        self.format.configure(cx.settings());
        self.state.flushed_at = cx.now();
        self.state.context = Some(cx.clone());
        if self.store_empty || self.ready.is_some() {
            self.next_file()?;
            self.write_out()?;
        }
        Ok(())
    }

    async fn process_item(&mut self, item: T, cx: &Context) -> Result<OnItem<T>> {
        if self.filter.as_ref().is_some_and(|wanted| !wanted(&item)) {
            return Ok(OnItem::Keep(item));
        }
        self.check()?;
        if self.batch_items.is_some_and(|limit| self.state.in_batch >= limit) {
            self.close_file()?;
        }
        if self.state.writer.is_none() {
            self.next_file()?;
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
        let settings = cx.settings();
        let own: FeedSettings = settings.of_or_default();
        let is_late = cx.now().since(state.flushed_at) >= seconds(own.feed_flush_interval);
        if is_late || state.buffered_items >= own.feed_flush_items || state.buffer.len() >= MAX_BUFFER {
            state.flushed_at = cx.now();
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
        let closed = self.close_file().and_then(|()| self.check());
        let is_file = self.name.is_some();
        if is_file && !self.store_empty && self.state.written == 0 && self.mode != Mode::Append {
            // The file was created only to check that it can be.
            let _ = files::remove_file(&self.state.current);
        }
        if let Some(cx) = &self.state.context {
            let end = if closed.is_ok() { "success" } else { "failed" };
            let storage = if is_file { "file" } else { "stdout" };
            cx.stats().inc(&format!("feedexport/{end}_count/{storage}"));
            let name = self.name.as_ref().map_or("standard output", Name::template);
            cx.emit(&Event::FeedExporterClosed { name, items: self.state.written });
        }
        closed
    }
}

impl<T, F: Format> std::fmt::Debug for Feed<T, F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = self.name.as_ref().map_or("standard output", Name::template);
        f.debug_struct("Feed").field("format", &F::NAME).field("name", &name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Csv, Json, JsonLines, Xml};
    use super::*;
    use flate2::read::MultiGzDecoder;
    use serde_json::{Value, json};
    use std::io::Read;
    use std::time::Duration;

    /// An item of any shape; `{"bad": true}` cannot be written.
    #[derive(Debug)]
    struct Thing(Value);

    impl Serialize for Thing {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            use serde::ser::{Error as _, SerializeMap};
            if self.0 == json!({"bad": true}) {
                // Fails in the middle, after something was written.
                let mut map = serializer.serialize_map(None)?;
                map.serialize_entry("begun", &1)?;
                return Err(S::Error::custom("a bad item"));
            }
            self.0.serialize(serializer)
        }
    }

    struct Bench {
        folder: tempfile::TempDir,
        cx: Context,
    }

    fn bench() -> Bench {
        Bench { folder: tempfile::tempdir().unwrap(), cx: Context::detached(Settings::default()) }
    }

    impl Bench {
        fn path(&self, name: &str) -> PathBuf {
            self.folder.path().join(name)
        }

        fn text(&self, name: &str) -> String {
            std::fs::read_to_string(self.path(name)).unwrap()
        }

        fn names(&self) -> Vec<String> {
            let entries = std::fs::read_dir(self.folder.path()).unwrap();
            let mut names: Vec<String> =
                entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            names.sort_unstable();
            names
        }

        /// Writes items and closes the feed; returns the error messages of single items.
        async fn write<F: Format>(&self, mut feed: Feed<Thing, F>, items: &[Value]) -> Vec<String> {
            let mut errors = Vec::new();
            feed.open(&self.cx).await.unwrap();
            for item in items {
                if let Err(error) = feed.process_item(Thing(item.clone()), &self.cx).await {
                    errors.push(error.to_string());
                }
            }
            Pipeline::<Thing>::flush(&mut feed).await.unwrap();
            Pipeline::<Thing>::close(&mut feed).await.unwrap();
            errors
        }
    }

    fn gunzip(bytes: &[u8]) -> String {
        let mut text = String::new();
        MultiGzDecoder::new(bytes).read_to_string(&mut text).unwrap();
        text
    }

    #[tokio::test]
    async fn json_lines_are_added_to_and_a_bad_item_leaves_no_trace() {
        let bench = bench();
        let path = bench.path("a.jsonl");
        let errors = bench
            .write(
                JsonLines::create(&path).unwrap(),
                &[json!({"a": 1}), json!({"bad": true}), json!({"a": 2})],
            )
            .await;
        assert_eq!(errors.len(), 1);
        assert!(errors[0].contains("a.jsonl") && errors[0].contains("a bad item"), "{errors:?}");
        bench.write(JsonLines::append(&path).unwrap(), &[json!({"a": 3})]).await;
        assert_eq!(bench.text("a.jsonl"), "{\"a\":1}\n{\"a\":2}\n{\"a\":3}\n");
        bench.write(JsonLines::overwrite(&path).unwrap(), &[]).await;
        assert_eq!(bench.text("a.jsonl"), "");
        assert_eq!(bench.cx.stats().get("feedexport/success_count/file"), 3);
    }

    #[tokio::test]
    async fn json_is_a_document_after_every_flush() {
        let bench = bench();
        let mut feed: Json<Thing> = Json::create(bench.path("a.json")).unwrap();
        feed.open(&bench.cx).await.unwrap();
        let mut expected = Vec::new();
        for n in 0..4 {
            let read: Value = serde_json::from_str(&bench.text("a.json")).unwrap();
            assert_eq!(read, Value::Array(expected.clone()));
            feed.process_item(Thing(json!({"n": n})), &bench.cx).await.unwrap();
            assert!(feed.process_item(Thing(json!({"bad": true})), &bench.cx).await.is_err());
            Pipeline::<Thing>::flush(&mut feed).await.unwrap();
            expected.push(json!({"n": n}));
        }
        Pipeline::<Thing>::close(&mut feed).await.unwrap();
        assert_eq!(bench.text("a.json"), "[\n{\"n\":0},\n{\"n\":1},\n{\"n\":2},\n{\"n\":3}\n]\n");
        let error = Json::<Thing>::append(bench.path("a.json")).unwrap_err();
        assert!(error.is_usage() && error.to_string().contains(".jsonl"), "{error}");
    }

    #[tokio::test]
    async fn xml_is_a_document_after_every_flush() {
        let bench = bench();
        let mut feed: Xml<Thing> = Xml::create(bench.path("a.xml")).unwrap();
        feed.open(&bench.cx).await.unwrap();
        assert!(bench.text("a.xml").ends_with("<items>\n</items>\n"));
        for n in 0..2 {
            feed.process_item(Thing(json!({"n": n})), &bench.cx).await.unwrap();
            Pipeline::<Thing>::flush(&mut feed).await.unwrap();
            assert!(bench.text("a.xml").ends_with(&format!("<item><n>{n}</n></item>\n</items>\n")));
        }
        Pipeline::<Thing>::close(&mut feed).await.unwrap();
        assert_eq!(bench.text("a.xml").matches("</items>").count(), 1);
        assert!(Xml::<Thing>::append(bench.path("a.xml")).unwrap_err().is_usage());
    }

    #[tokio::test]
    async fn json_can_be_indented() {
        let bench = bench();
        bench.write(Json::create(bench.path("a.json")).unwrap().indent(2), &[json!({"a": [1]})]).await;
        assert_eq!(bench.text("a.json"), "[\n{\n  \"a\": [\n    1\n  ]\n}\n]\n");
    }

    #[tokio::test]
    async fn fields_are_chosen_ordered_and_renamed() {
        let bench = bench();
        let items = [json!({"a": 1, "b": 2, "c": 3}), json!({"c": 4})];
        let feed = JsonLines::create(bench.path("a.jsonl")).unwrap().fields(["c", "a"]).rename("a", "first");
        bench.write(feed, &items).await;
        assert_eq!(bench.text("a.jsonl"), "{\"c\":3,\"first\":1}\n{\"c\":4}\n");
        let feed = Csv::create(bench.path("a.csv")).unwrap().fields(["c", "a"]).rename("a", "first");
        bench.write(feed, &items).await;
        assert_eq!(bench.text("a.csv"), "c,first\n3,1\n4,\n");
    }

    #[tokio::test]
    async fn csv_quotes_joins_and_guards() {
        let bench = bench();
        let items = [
            json!({"name": "a, \"b\"\nc", "tags": ["x", "y"], "n": -5, "none": null, "yes": true}),
            json!({"name": "=1+1", "tags": [], "n": 0.5, "extra": "lost"}),
            json!({"name": "@x", "tags": ["+1", "2"], "yes": {"k": 1}}),
            json!({"name": "-1"}),
            json!({"name": "\tx"}),
            json!({"name": "\rx"}),
            json!({"name": "\n=x", "tags": ["＝1", "＋2"]}),
            json!({"name": "－1", "tags": ["＠x"]}),
        ];
        bench.write(Csv::create(bench.path("a.csv")).unwrap(), &items).await;
        let expected = "name,tags,n,none,yes\n\
            \"a, \"\"b\"\"\nc\",\"x,y\",-5,,true\n\
            '=1+1,,0.5,,\n\
            '@x,\"'+1,2\",,,\"{\"\"k\"\":1}\"\n\
            '-1,,,,\n\
            '\tx,,,,\n\
            \"'\rx\",,,,\n\
            \"'\n=x\",\"'＝1,＋2\",,,\n\
            '－1,'＠x,,,\n";
        assert_eq!(bench.text("a.csv"), expected);
        let mut settings = Settings::default();
        settings.change(|own: &mut FeedSettings| own.feed_csv_guard = false);
        let open = Bench { cx: Context::detached(settings), ..bench };
        open.write(Csv::overwrite(open.path("a.csv")).unwrap().join("|"), &items[1..3]).await;
        assert_eq!(open.text("a.csv"), "name,tags,n,extra\n=1+1,,0.5,lost\n@x,+1|2,,\n");
    }

    #[tokio::test]
    async fn csv_goes_on_under_the_columns_that_are_there() {
        let bench = bench();
        let path = bench.path("a.csv");
        bench.write(Csv::create(&path).unwrap().rename("b", "B"), &[json!({"a": 1, "b": "x\ny"})]).await;
        bench.write(Csv::append(&path).unwrap().rename("b", "B"), &[json!({"b": 2, "c": 3, "a": 4})]).await;
        assert_eq!(bench.text("a.csv"), "a,B\n1,\"x\ny\"\n4,2\n");
        let mut other = Csv::<Thing>::append(&path).unwrap().fields(["b", "a"]);
        let error = other.open(&bench.cx).await.unwrap_err().to_string();
        assert!(error.contains("a, B") && error.contains("b, a"), "{error}");
    }

    #[tokio::test]
    async fn a_torn_record_is_cut_off() {
        let bench = bench();
        std::fs::write(bench.path("a.jsonl"), "{\"a\":1}\n{\"a\":2").unwrap();
        bench.write(JsonLines::append(bench.path("a.jsonl")).unwrap(), &[json!({"a": 3})]).await;
        assert_eq!(bench.text("a.jsonl"), "{\"a\":1}\n{\"a\":3}\n");
        // The line break inside of quotes ends no record.
        std::fs::write(bench.path("a.csv"), "a,b\n1,2\n3,\"x\ny").unwrap();
        bench.write(Csv::append(bench.path("a.csv")).unwrap(), &[json!({"a": 5})]).await;
        assert_eq!(bench.text("a.csv"), "a,b\n1,2\n5,\n");
    }

    #[tokio::test]
    async fn a_compressed_file_is_readable_after_a_kill_and_goes_on() {
        for name in ["a.jsonl.gz", "a.jsonl.zst"] {
            let bench = bench();
            let path = bench.path(name);
            let read = |bytes: &[u8]| match name.ends_with("gz") {
                true => gunzip(bytes),
                false => String::from_utf8(zstd::stream::decode_all(bytes).unwrap()).unwrap(),
            };
            let mut killed: JsonLines<Thing> = JsonLines::create(&path).unwrap();
            killed.open(&bench.cx).await.unwrap();
            for n in 0..1_000 {
                killed.process_item(Thing(json!({"n": n})), &bench.cx).await.unwrap();
            }
            Pipeline::<Thing>::flush(&mut killed).await.unwrap();
            // The process is killed: the encoder never writes its end, and part of the next record is in the file.
            let mut torn = std::fs::read(&path).unwrap();
            std::mem::forget(killed);
            for lost in [0, 20] {
                torn.truncate(torn.len() - lost);
                std::fs::write(&path, &torn).unwrap();
                bench.write(JsonLines::append(&path).unwrap(), &[json!({"n": "again"})]).await;
                bench.write(JsonLines::append(&path).unwrap(), &[json!({"n": "once more"})]).await;
                let text = read(&std::fs::read(&path).unwrap());
                let lines: Vec<Value> =
                    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
                let whole = lines.len() - 2;
                assert!(if lost == 0 { whole == 1_000 } else { whole < 1_000 }, "{name}: {whole}");
                assert!((0..whole).all(|n| lines[n]["n"] == n), "{name}");
                assert_eq!(
                    (&lines[whole]["n"], &lines[whole + 1]["n"]),
                    (&json!("again"), &json!("once more"))
                );
                assert_eq!(bench.names(), [name]);
            }
        }
    }

    #[tokio::test]
    async fn batches_are_numbered_and_go_on() {
        let bench = bench();
        let name = bench.path("%(name)s-%(batch_id)03d.csv");
        let feed = || Csv::append(&name).unwrap().batch_items(2).param("name", "q");
        let items: Vec<Value> = (0..5).map(|n| json!({"n": n})).collect();
        bench.write(feed(), &items).await;
        assert_eq!(bench.names(), ["q-001.csv", "q-002.csv", "q-003.csv"]);
        assert_eq!(bench.text("q-002.csv"), "n\n2\n3\n");
        bench.write(feed(), &items[..1]).await;
        assert_eq!(bench.names().last().unwrap(), "q-004.csv");
        assert_eq!(bench.text("q-003.csv"), "n\n4\n");
        let mut unnumbered = JsonLines::<Thing>::create(bench.path("x.jsonl")).unwrap().batch_items(2);
        assert!(unnumbered.open(&bench.cx).await.unwrap_err().to_string().contains("%(batch_id)05d"));
    }

    #[tokio::test]
    async fn empty_files_are_kept_or_not() {
        let bench = bench();
        bench.write(JsonLines::create(bench.path("kept.jsonl")).unwrap(), &[]).await;
        bench.write(Json::create(bench.path("kept.json")).unwrap(), &[]).await;
        bench.write(JsonLines::create(bench.path("gone.jsonl")).unwrap().store_empty(false), &[]).await;
        bench
            .write(JsonLines::create(bench.path("gone-%(batch_id)d.jsonl")).unwrap().store_empty(false), &[])
            .await;
        assert_eq!(bench.names(), ["kept.json", "kept.jsonl"]);
        assert_eq!(bench.text("kept.json"), "[]\n");
    }

    #[tokio::test]
    async fn only_wanted_items_are_written() {
        let bench = bench();
        let feed =
            JsonLines::create(bench.path("a.jsonl")).unwrap().filter(|thing: &Thing| thing.0["n"] == 1);
        bench.write(feed, &[json!({"n": 0}), json!({"n": 1})]).await;
        assert_eq!(bench.text("a.jsonl"), "{\"n\":1}\n");
    }

    #[test]
    fn a_file_that_cannot_be_made_says_what_to_do() {
        let bench = bench();
        let fails = |path: PathBuf, what: &str| {
            let error = JsonLines::<Thing>::create(&path).unwrap_err().to_string();
            assert!(error.contains(what) && error.contains(path.to_str().unwrap()), "{error}");
        };
        fails(bench.path("no/such/folder.jsonl"), "make its folder first");
        std::fs::write(bench.path("there.jsonl"), "").unwrap();
        fails(bench.path("there.jsonl"), "append to it, overwrite it, or choose another name");
        let error = JsonLines::<Thing>::overwrite(bench.folder.path()).unwrap_err().to_string();
        assert!(error.contains("it is a folder"), "{error}");
    }

    #[tokio::test(start_paused = true)]
    async fn items_are_handed_over_by_number_and_by_time() {
        let mut settings = Settings::default();
        settings.change(|own: &mut FeedSettings| own.feed_flush_items = 3);
        settings.change(|own: &mut FeedSettings| own.feed_flush_interval = 1.0);
        let bench = Bench { folder: tempfile::tempdir().unwrap(), cx: Context::detached(settings) };
        let mut feed: JsonLines<Thing> = JsonLines::create(bench.path("a.jsonl")).unwrap();
        feed.open(&bench.cx).await.unwrap();
        for expected in [0, 0, 3, 3] {
            feed.process_item(Thing(json!(1)), &bench.cx).await.unwrap();
            assert_eq!(bench.text("a.jsonl").lines().count(), expected);
        }
        tokio::time::advance(Duration::from_secs(1)).await;
        feed.process_item(Thing(json!(1)), &bench.cx).await.unwrap();
        assert_eq!(bench.text("a.jsonl").lines().count(), 5);
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_full_disk_stops_the_feed_for_good() {
        let bench = bench();
        let mut feed: JsonLines<Thing> = JsonLines::append("/dev/full").unwrap();
        feed.open(&bench.cx).await.unwrap();
        feed.process_item(Thing(json!(1)), &bench.cx).await.unwrap();
        let error = Pipeline::<Thing>::flush(&mut feed).await.unwrap_err().to_string();
        assert!(error.contains("/dev/full") && error.contains("make room"), "{error}");
        assert!(feed.process_item(Thing(json!(2)), &bench.cx).await.is_err());
        assert!(Pipeline::<Thing>::flush(&mut feed).await.is_err());
        assert!(Pipeline::<Thing>::close(&mut feed).await.is_err());
        assert_eq!(bench.cx.stats().get("feedexport/failed_count/file"), 1);
    }
}

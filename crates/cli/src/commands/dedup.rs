//! `huntsman dedup`: finds near-duplicates among many documents.

mod bulk;

use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use huntsman::dedup::{
    Batches, Counts, Dedup, Error, Flags, HashLine, IdentityOptions, IfMissing, IndexLocation, Manifest,
    Settings, Source, Spellings, Stop, Story, Telemetry, Warnings, metrics_file,
};
use huntsman::detect::near::{
    DiskIndex, Document, Identity, IndexCheck, IndexError, IndexErrorKind, Language,
};
use huntsman::detect::simhash::Features;
use huntsman::human_bytes;
use huntsman::output::verify::Verdict;
use huntsman::signals::Signals;
use huntsman::warc::is_index_name;
use serde_json::{Value, json};

use crate::commands::verify::print;
use crate::dedup::{
    AddArgs, BuildArgs, DedupCommand, ExportArgs, HashArgs, IndexArgs, InputArgs, OrFailure, QueryArgs,
    RunArgs, StatsArgs, Stdout, Summary, at_the_end, failure, place, serve, told,
};
use crate::exit::{Exit, Failure, Outcome};
use crate::metrics;
use crate::progress::Screen;
use crate::render::{Table, count, counted, escape, escape_json, say, warn};

pub(crate) fn run(what: DedupCommand) -> Outcome {
    match what {
        DedupCommand::Hash(args) => hash(&args),
        DedupCommand::Add(args) => add(&args),
        DedupCommand::Build(args) => build(&args),
        DedupCommand::Query(args) => query(&args),
        DedupCommand::Stats(args) => stats(&args),
        DedupCommand::Export(args) => export(&args),
        DedupCommand::Join(args) => bulk::join(&args),
        DedupCommand::Cluster(args) => bulk::cluster(&args),
        DedupCommand::Sql(args) => bulk::sql(&args),
        DedupCommand::Verify(args) => verify(&args),
        DedupCommand::Repair(args) => repair(&args),
    }
}

/// A run over documents: its input, its counters and its output.
struct Run<'a> {
    args: &'a RunArgs,
    batches: Batches,
    manifest: Option<Arc<Manifest>>,
    /// The flag that gives the list of documents.
    list: &'static str,
    summary: Summary,
    telemetry: Arc<Telemetry>,
    stop: Stop,
    warnings: Warnings,
    /// The runtime serves metrics and receives signals.
    _runtime: tokio::runtime::Runtime,
}

/// The inputs of a run, checked before any of them is opened.
struct Prepared {
    sources: Vec<Source>,
    lang: Option<(Language, Box<str>)>,
    manifest: Option<Arc<Manifest>>,
}

fn language(lang: &str) -> Outcome<Language> {
    Language::parse(lang).map_err(|error| Failure::usage(format!("--lang {lang:?}: {error}")))
}

fn prepared(input: &InputArgs) -> Outcome<Prepared> {
    let lang = match &input.lang {
        Some(lang) => Some((language(lang)?, lang.as_str().into())),
        None => None,
    };
    let index = input.ids.as_deref().filter(|ids| is_index_name(&ids.to_string_lossy()));
    if let Some(index) = index {
        let members = Source::members(index, &input.inputs).or_failure()?;
        return Ok(Prepared { sources: vec![members], lang, manifest: None });
    }
    let manifest = manifest(input)?.map(Arc::new);
    let columns = input.columns.clone().unwrap_or_default();
    let of_rows = lang.as_ref().map(|(language, _)| *language);
    let sources = input.inputs.iter().map(|name| Source::find_with(name, &columns, of_rows).or_failure());
    Ok(Prepared { sources: sources.collect::<Outcome<_>>()?, lang, manifest })
}

/// The list of the documents to read, if there is one.
fn manifest(input: &InputArgs) -> Outcome<Option<Manifest>> {
    let column = input.ids_column.as_deref();
    match (&input.ids, &input.ids_sql) {
        (Some(list), _) => Manifest::read_column(list, column).or_failure().map(Some),
        (None, Some(query)) => chosen(query, column).map(Some),
        (None, None) => Ok(None),
    }
}

#[cfg(feature = "sql")]
fn chosen(query: &str, column: Option<&str>) -> Outcome<Manifest> {
    let chosen = Manifest::query(query, column).or_failure()?;
    say(&format!("--ids-sql: {}", counted(chosen.len() as u64, "document")));
    Ok(chosen)
}

#[cfg(not(feature = "sql"))]
fn chosen(_: &str, _: Option<&str>) -> Outcome<Manifest> {
    Err(Failure::usage(
        "--ids-sql: this build has no SQL; build it with the feature `sql`, or give a list with --ids",
    ))
}

impl Prepared {
    /// The features of the index: as wanted, else those of tables.
    fn features(&self, wanted: Option<Features>) -> Outcome<Option<Features>> {
        let mut features = wanted;
        for has in self.sources.iter().filter_map(Source::features) {
            let wanted = *features.get_or_insert(has);
            if wanted != has {
                return Err(Failure::usage(format!(
                    "a table has fingerprints of {has}, and not of {wanted}: they cannot be compared"
                )));
            }
        }
        Ok(features)
    }

    fn wanted(&self, index: &IndexArgs) -> Outcome<IdentityOptions> {
        let wanted = index.wanted();
        Ok(IdentityOptions { features: self.features(wanted.features)?, ..wanted })
    }
}

impl<'a> Run<'a> {
    fn start(prepared: Prepared, input: &InputArgs, features: Features, args: &'a RunArgs) -> Outcome<Self> {
        let (telemetry, stop) = (Arc::new(Telemetry::default()), Stop::default());
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(|error| Failure::crawl(format!("starting the runtime: {error}")))?;
        if let Some(address) = args.metrics {
            let metrics = runtime.block_on(metrics::bind(address, args.metrics_public))?;
            say(&format!("metrics at http://{}/metrics", metrics.address()));
            let served = Arc::clone(&telemetry);
            runtime.spawn(serve(move || served.families(), metrics));
        }
        let signalled = stop.clone();
        runtime.spawn(async move {
            let mut signals = Signals::listen();
            signals.next().await;
            say("stopping: what was read is finished; once more to stop at once");
            signalled.set();
            signals.next().await;
            std::process::exit(Exit::Interrupted as i32);
        });
        let manifest = prepared.manifest;
        let list = if input.ids_sql.is_some() { "--ids-sql" } else { "--ids" };
        let settings = Settings {
            sources: prepared.sources,
            max_document: input.max_document,
            features,
            lang: prepared.lang,
            manifest: manifest.clone(),
            archive_id: input.archive_id,
            workers: args.workers(),
            telemetry: Arc::clone(&telemetry),
            stop: stop.clone(),
        };
        let screen = Screen::with_progress();
        let warnings = told(&screen);
        let summary = Summary::new(screen, args.errors.as_deref())?;
        let batches = Batches::start(settings).or_failure()?;
        Ok(Self { args, batches, manifest, list, summary, telemetry, stop, warnings, _runtime: runtime })
    }

    /// The documents of the next batch; `None` at the end of the input.
    fn next(&mut self) -> Outcome<Option<Vec<Story>>> {
        self.summary.progress();
        let Some(batch) = self.batches.next().transpose().or_failure()? else { return Ok(None) };
        self.summary.read(&batch, &self.telemetry)?;
        Ok(Some(batch.stories))
    }

    fn end(self, run: Outcome<()>) -> Outcome {
        if let (Some(manifest), false) = (&self.manifest, self.stop.get()) {
            let (missing, some) = manifest.missing();
            if missing > 0 {
                let some = some.join(", ");
                warn(&format!("{}: {missing} of the list were not in the input, such as {some}", self.list));
            }
        }
        let metrics = self.args.metrics_file.as_deref().map_or(Ok(()), |path| {
            metrics_file::write(path, &at_the_end(self.telemetry.families()).text()).map_err(|error| {
                Failure::crawl(format!("--metrics-file {}: {error}", escape(&path.to_string_lossy())))
            })
        });
        self.summary.end(run.and(metrics), self.stop.get(), self.args.report.as_deref())
    }
}

fn hash(args: &HashArgs) -> Outcome {
    let prepared = prepared(&args.input)?;
    let features = prepared.features(args.features)?.unwrap_or_default();
    let mut run = Run::start(prepared, &args.input, features, &args.run)?;
    let mut out = Stdout::new();
    let done = (|| {
        while let Some(stories) = run.next()? {
            let mut lines = Vec::new();
            for story in &stories {
                run.summary.counts.skipped_short += u64::from(story.is_empty());
                let is_short = story.is_shorter_than(args.input.min_words);
                run.summary.counts.short += u64::from(is_short && !story.is_empty());
                serde_json::to_writer(&mut lines, &HashLine::of_story(story, args.input.min_words))?;
                lines.push(b'\n');
            }
            out.write_all(&lines)?;
            out.flush()?;
        }
        Ok(())
    })();
    run.end(done)
}

fn add(args: &AddArgs) -> Outcome {
    let flags = |warnings: &Warnings| appended(args.flags.as_deref(), warnings);
    flagging(&args.input, &args.index, &args.run, IfMissing::Create, flags, Dedup::add)
}

fn query(args: &QueryArgs) -> Outcome {
    let flags = |warnings: &Warnings| match args.flags.as_deref().filter(|path| *path != Path::new("-")) {
        Some(path) => Flags::replace(path, warnings),
        None => Ok(Flags::to(Stdout::new())),
    };
    flagging(&args.input, &args.index, &args.run, IfMissing::Fail, flags, Dedup::query)
}

/// The output for flags, appended to a file; stdout without a file name, or with `-`.
fn appended(path: Option<&Path>, warnings: &Warnings) -> Result<Flags, Error> {
    match path.filter(|path| *path != Path::new("-")) {
        Some(path) => Flags::append(path, warnings),
        None => Ok(Flags::to(Stdout::new())),
    }
}

/// Reads the input and flags documents that are near to indexed ones. Errors that can be known beforehand are
/// reported before any file is created.
fn flagging(
    input: &InputArgs,
    index: &IndexArgs,
    run: &RunArgs,
    missing: IfMissing,
    flags: impl FnOnce(&Warnings) -> Result<Flags, Error>,
    each: fn(&mut Dedup, Vec<Story>, &mut Counts) -> Result<(), Error>,
) -> Outcome {
    let prepared = prepared(input)?;
    let (place, wanted) = (place(index)?, prepared.wanted(index)?);
    let identity = place.identity(wanted, missing).or_failure()?;
    // There is no progress line yet.
    let warnings = told(&Screen::plain());
    let flags = flags(&warnings).or_failure()?;
    let index = Arc::new(place.open(identity, &warnings).or_failure()?);
    let mut run = Run::start(prepared, input, identity.features(), run)?;
    run.telemetry.set_index(&index);
    let mut spellings = Spellings::of(place.directory(), &run.warnings);
    spellings.set_index(&index, &run.warnings);
    let mut dedup = Dedup::new(Arc::clone(&index), flags)
        .min_words(input.min_words)
        .telemetry(Arc::clone(&run.telemetry))
        .spellings(spellings)
        .warnings(run.warnings.clone());
    let done = (|| {
        while let Some(stories) = run.next()? {
            each(&mut dedup, stories, &mut run.summary.counts).or_failure()?;
        }
        dedup.finish().or_failure()
    })();
    run.summary.ask(&index);
    run.end(done)
}

fn build(args: &BuildArgs) -> Outcome {
    if let Some(flags) = &args.flags {
        let flags = |warnings: &Warnings| appended(Some(flags), warnings);
        return flagging(&args.input, &args.index, &args.run, IfMissing::Create, flags, Dedup::add);
    }
    let prepared = prepared(&args.input)?;
    let place = place(&args.index)?;
    let identity = place.identity(prepared.wanted(&args.index)?, IfMissing::Create).or_failure()?;
    // Opens the index once, so that an index that cannot be opened is reported before anything is read.
    drop(place.open(identity, &told(&Screen::plain())).or_failure()?);
    let mut run = Run::start(prepared, &args.input, identity.features(), &args.run)?;
    let warnings = run.warnings.clone();
    let mut spellings = Spellings::of(place.directory(), &warnings);
    let mut read = Ok(());
    let documents = Documents {
        run: &mut run,
        spellings: &mut spellings,
        failed: &mut read,
        left: Vec::new().into_iter(),
    };
    let built = place.build(identity, documents, &warnings);
    let built = built.map(Arc::new).or_failure();
    if let Ok(index) = &built {
        spellings.set_index(index, &warnings);
    }
    spellings.save(&warnings);
    let done = read.and(built).and_then(|index| {
        run.telemetry.set_index(&index);
        run.summary.ask(&index);
        index.near().flush().map_err(|error| failure(&error))
    });
    run.end(done)
}

/// The documents of a run as an iterator, for building an index. It ends early if reading fails, and stores the error
/// in `failed`.
struct Documents<'r, 'a> {
    run: &'r mut Run<'a>,
    spellings: &'r mut Spellings,
    failed: &'r mut Outcome<()>,
    left: std::vec::IntoIter<Document>,
}

impl Iterator for Documents<'_, '_> {
    type Item = Document;

    fn next(&mut self) -> Option<Document> {
        loop {
            if let Some(document) = self.left.next() {
                return Some(document);
            }
            let stories = match self.run.next() {
                Ok(stories) => stories?,
                Err(failure) => {
                    *self.failed = Err(failure);
                    return None;
                }
            };
            let mut documents = Vec::with_capacity(stories.len());
            for story in stories {
                if story.is_empty() {
                    self.run.summary.counts.skipped_short += 1;
                    self.run.telemetry.record_skipped(Some(&story), "empty");
                    continue;
                }
                self.spellings.learn(story.document.language, &story.lang);
                documents.push(story.document);
            }
            self.left = documents.into_iter();
        }
    }
}

fn stats(args: &StatsArgs) -> Outcome {
    let index = place(&args.index)?.open_any(args.index.wanted(), &told(&Screen::plain())).or_failure()?;
    if args.json {
        writeln!(io::stdout(), "{}", index.stats_json().or_failure()?)?;
        return Ok(Exit::Done);
    }
    let stats = index.near().stats().map_err(|error| failure(&error))?;
    let (documents, bytes) = (stats.documents(), stats.total_bytes());
    let per = |bytes: u64, documents: u64| if documents == 0 { 0.0 } else { bytes as f64 / documents as f64 };
    let identity = index.near().identity();
    let mut table = Table::right(&[1, 2, 3]);
    table.row(["language", "documents", "bytes", "bytes a document"]);
    for (language, of) in &stats.languages {
        let bytes: u64 = of.bytes.values().sum();
        let each = format!("{:.1}", per(bytes, of.documents));
        table.row([language.to_string(), count(of.documents), human_bytes(bytes), each]);
    }
    for (part, bytes) in &stats.bytes {
        table.row([format!("({part})"), String::new(), human_bytes(*bytes), String::new()]);
    }
    table.row([
        "all".to_owned(),
        count(documents),
        human_bytes(bytes),
        format!("{:.1}", per(bytes, documents)),
    ]);
    let mut out = io::stdout().lock();
    writeln!(out, "made for {identity}")?;
    out.write_all(table.lines("").as_bytes())?;
    Ok(Exit::Done)
}

fn export(args: &ExportArgs) -> Outcome {
    let only = match &args.lang {
        Some(lang) => Some(language(lang)?),
        None => None,
    };
    let (place, warnings) = (place(&args.index)?, told(&Screen::plain()));
    let index = Arc::new(place.open_any(args.index.wanted(), &warnings).or_failure()?);
    if let Some(folder) = &args.parquet {
        return bulk::export(&index, folder, !args.no_bands, only);
    }
    let mut spellings = Spellings::of(place.directory(), &warnings);
    spellings.set_index(&index, &warnings);
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let mut written: Outcome<()> = Ok(());
    let visited = index.near().for_each(&mut |document| {
        if only.is_some_and(|only| only != document.language) {
            return ControlFlow::Continue(());
        }
        let line = HashLine::of_document(document, spellings.spelling_of(&document.language));
        written = serde_json::to_writer(&mut out, &line)
            .map_err(Failure::from)
            .and_then(|()| Ok(out.write_all(b"\n")?));
        if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    written?;
    visited.map_err(|error| failure(&error))?;
    out.flush()?;
    Ok(Exit::Done)
}

/// The directory of the index that is to be checked or repaired.
fn directory(index: &IndexArgs) -> Outcome<PathBuf> {
    match place(index)? {
        IndexLocation::Directory(path) => Ok(path),
        IndexLocation::Redis(_) => {
            Err(Failure::usage("--index: an index in Redis has no files to check; name a directory"))
        }
    }
}

fn verify(args: &StatsArgs) -> Outcome {
    let path = directory(&args.index)?;
    print(&Verdict::of_near_index(&path, &checked(&path)?), args.json)
}

fn checked(path: &Path) -> Outcome<IndexCheck> {
    DiskIndex::verify(path).map_err(|error| match error.kind() {
        IndexErrorKind::Format => Failure::usage(format!("--index {error}")),
        _ => failure(&error),
    })
}

fn repair(args: &StatsArgs) -> Outcome {
    let path = directory(&args.index)?;
    let failed = |error: IndexError| failure(&error);
    let check = checked(&path)?;
    let base = check.identity.unwrap_or_default();
    let (k, features) = (args.index.k.unwrap_or(base.k()), args.index.features.unwrap_or(base.features()));
    let identity = Identity::new(k, features).map_err(failed)?;
    let lost = DiskIndex::repair(&path, identity).map_err(failed)?;
    let kept = checked(&path)?;
    let bytes: u64 = lost.iter().map(|damage| damage.bytes).sum();
    if args.json {
        let lost: Vec<Value> = lost
            .iter()
            .map(|damage| json!({"file": damage.file, "at": damage.at, "bytes": damage.bytes, "torn": damage.is_torn}))
            .collect();
        let json =
            json!({"documents": kept.documents, "writes": kept.frames, "lost_bytes": bytes, "lost": lost});
        writeln!(io::stdout(), "{}", escape_json(&json.to_string()))?;
        return Ok(Exit::Done);
    }
    let mut out = io::stdout().lock();
    let (documents, writes) = (counted(kept.documents, "document"), counted(kept.frames, "write"));
    if lost.is_empty() && check.is_whole() {
        writeln!(out, "the index is whole: {documents} in {writes}; nothing was changed")?;
        return Ok(Exit::Done);
    }
    for damage in &lost {
        let file = escape(&damage.file.to_string_lossy()).into_owned();
        let bytes = counted(damage.bytes, "byte");
        writeln!(out, "lost: {bytes} from byte {} of {file} on", damage.at)?;
    }
    writeln!(out, "kept: {documents} in {writes}, for {identity}; {} lost", counted(bytes, "byte"))?;
    writeln!(
        out,
        "the damaged files are kept as *.damaged; `huntsman dedup add` of the same input brings lost documents back"
    )?;
    Ok(Exit::Done)
}

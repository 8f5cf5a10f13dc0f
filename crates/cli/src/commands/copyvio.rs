//! `huntsman copyvio compare`, `check` and `among`.

use std::collections::HashSet;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use huntsman::dedup::Source;
use huntsman::detect::copyvio::WindowIndex;
use huntsman::files;
use huntsman::human_bytes;
use huntsman::sweep::side_by_side::page;
use huntsman::sweep::{CheckPlan, Checked, Comparison, FoundPair, LinkedText, PairFinder, Workspace};

use crate::config::Config;
use crate::copyvio::{
    AmongArgs, CheckArgs, CompareArgs, CopyvioCommand, Documents, Input, Inputs, ShowArgs, pdf_reader,
};
use crate::dedup::sources;
use crate::exit::{Exit, Failure, Outcome};
use crate::logging;
use crate::progress::Screen;
use crate::render::{Style, Table, count, counted, escape, say, shorten, warn};

pub(crate) async fn run(what: CopyvioCommand) -> Outcome {
    match what {
        CopyvioCommand::Compare(args) => compare(*args).await,
        CopyvioCommand::Check(args) => check(*args).await,
        // Nothing in this command is asynchronous, and buckets are read on a runtime of their own.
        CopyvioCommand::Among(args) => {
            tokio::task::spawn_blocking(move || among(&args)).await.map_err(huntsman::Error::from)?
        }
    }
}

async fn compare(args: CompareArgs) -> Outcome {
    let mut names = vec![args.article.clone()];
    names.extend(args.sources.iter().cloned());
    if names.iter().filter(|name| *name == "-").count() > 1 {
        return Err(Failure::usage("stdin (-) can be read once"));
    }
    let inputs = names.iter().map(|name| Input::parse(name)).collect::<Outcome<Vec<_>>>()?;
    let config = Config::load(&args.settings, Inputs::command(), args.network.settings())?;
    logging::start(&config.settings, &Screen::plain())?;
    let texts = Inputs::fetch(&inputs, config).await?;
    let subject = article(&texts, &inputs[0], &args.article)?.subject(inputs[0].url());
    let boilerplate = args.common.boilerplate()?;
    let sources = args.sources.iter().zip(&inputs[1..]);
    let sources =
        sources.map(|(name, input)| (name.clone(), texts.read(input).map(|read| read.reading))).collect();
    let comparison =
        Comparison::of(args.article.clone(), &subject, args.degree, boilerplate.as_deref(), sources);
    show(&comparison, &args.show)
}

async fn check(args: CheckArgs) -> Outcome {
    let input = Input::parse(&args.article)?;
    let at = args.url.as_deref().map(Input::parse).transpose()?;
    if at.as_ref().is_some_and(|at| at.url().is_none()) {
        return Err(Failure::usage(
            "--url: should be the address of a page, such as https://example.org/article",
        ));
    }
    let plan =
        CheckPlan { keep_texts: args.show.html.is_some(), ..args.plan.plan(args.candidates.max_queries)? };
    let mut command = Inputs::command();
    command.extend(Workspace::settings());
    let config = Config::load(&args.settings, command, args.network.settings())?;
    logging::start(&config.settings, &Screen::plain())?;
    let layers = config.layers.clone();
    let sources = args.candidates.sources(&config.settings)?;
    let texts = Inputs::fetch(std::slice::from_ref(&input), config).await?;
    let subject =
        Arc::new(article(&texts, &input, &args.article)?.subject(at.as_ref().unwrap_or(&input).url()));
    let workspace = Workspace::start(pdf_reader(), |crawler| crawler.layers(layers))?;
    let checked = workspace.check(Arc::clone(&subject), &sources, plan).await?;
    // Requests that are still in flight are given up.
    drop(workspace);
    if !args.show.json {
        warn_of_failed_queries(&checked);
    }
    let comparison = Comparison::of_check(args.article.clone(), &subject, checked);
    if comparison.sources.is_empty() {
        warn(
            "there is nothing to compare with: no link to another site, no hit; name pages by --source, or look by --index or --search",
        );
    }
    show(&comparison, &args.show)
}

fn among(args: &AmongArgs) -> Outcome {
    let (inputs, against) = (sources(&args.inputs)?, sources(&args.against)?);
    if inputs.iter().chain(&against).filter(|source| matches!(source, Source::Stdin)).count() > 1 {
        return Err(Failure::usage("stdin (-) can be read once"));
    }
    let started = Instant::now();
    let named = |path| {
        files::open_empty(path).map_err(|error| Failure::usage(format!("--out {}: {error}", shown(path))))
    };
    let file = args.out.as_deref().map(named).transpose()?;
    let mut out: Box<dyn Write> = match &file {
        Some(file) => Box::new(BufWriter::new(file)),
        None => Box::new(BufWriter::new(io::stdout().lock())),
    };
    let mut report = |pair: FoundPair<'_>| -> Outcome<()> {
        serde_json::to_writer(&mut out, &pair.json())?;
        Ok(out.write_all(b"\n")?)
    };
    let run = usize::try_from(args.run).unwrap_or(usize::MAX);
    let mut finder = PairFinder::new(run, args.min_shared, args.all, args.common.boilerplate()?)?;
    let mut documents = Documents::new(args.max_document);
    let is_among_themselves = against.is_empty();
    for source in if is_among_themselves { &inputs } else { &against } {
        documents.each(source, &mut |id, text| Ok(finder.add(id, &text)?))?;
    }
    if is_among_themselves {
        finder.compare_all(&mut report)?;
    } else {
        for source in &inputs {
            documents.each(source, &mut |id, text| finder.compare(id, text, &mut report))?;
        }
    }
    out.flush()?;
    file.as_ref().map_or(Ok(()), files::sync)?;
    let counts = finder.counts();
    say(&format!(
        "{}, {} compared, {} told; index {}, {:.1} s",
        counted(documents.texts, "text"),
        counted(counts.compared, "pair"),
        count(counts.reported),
        human_bytes(counts.index_bytes),
        started.elapsed().as_secs_f64()
    ));
    if counts.common > 0 {
        warn(&format!(
            "of {} windows that stand in more than {} texts were left out: what they share beside these was looked at",
            counted(counts.common, "text"),
            count(WindowIndex::MAX_TEXTS as u64)
        ));
    }
    if documents.errors > 0 {
        warn(&format!("{} could not be read", counted(documents.errors, "document")));
    }
    Ok(Exit::Done)
}

/// Warns about queries that got no answer, once for each kind of error; the JSON output has all of them.
fn warn_of_failed_queries(checked: &Checked) {
    let mut printed = HashSet::new();
    for (by, error) in &checked.errors {
        if printed.insert((by, error)) {
            warn(&format!("{}: {}", escape(by), escape(error)));
        }
    }
}

/// Reads the text of an article.
fn article(texts: &Inputs, input: &Input, name: &str) -> Outcome<LinkedText> {
    texts.read(input).map_err(|why| Failure::crawl(format!("{}: {why}", escape(name))))
}

fn show(comparison: &Comparison, show: &ShowArgs) -> Outcome {
    if let Some(path) = &show.html {
        huntsman::files::write(path, page(comparison))
            .map_err(|error| Failure::crawl(format!("writing {}: {error}", shown(path))))?;
    }
    let mut stdout = io::stdout().lock();
    if show.json {
        serde_json::to_writer(&mut stdout, &comparison.json())?;
        writeln!(stdout)?;
    } else {
        stdout.write_all(summary(comparison, Style::stdout()).as_bytes())?;
    }
    Ok(Exit::Done)
}

fn shown(path: &Path) -> String {
    escape(&path.to_string_lossy()).into_owned()
}

/// A line for each source, the most suspicious first.
fn summary(comparison: &Comparison, style: Style) -> String {
    let coloured = |word: &str| match word {
        "suspected" => style.red(word),
        "possible" => style.yellow(word),
        other => style.green(other),
    };
    let mut table = Table::right(&[0, 3, 4]);
    table.row(["confidence", "band", "verdict", "score", "coverage", "source"]);
    for compared in comparison.ranked() {
        let confidence = compared.source.confidence;
        let percent = format!("{:.1} %", 100.0 * confidence.value());
        let band = coloured(&confidence.band().to_string());
        let name = escape(&shorten(&compared.name, 100)).into_owned();
        match compared.evidence() {
            Some(evidence) => table.row([
                percent,
                band,
                coloured(&evidence.verdict.to_string()),
                format!("{:.2}", evidence.score.value()),
                format!("{:.1} %", 100.0 * evidence.coverage),
                name,
            ]),
            None => table.row([
                "-".to_owned(),
                String::new(),
                String::new(),
                String::new(),
                String::new(),
                format!("{name}: {}", escape(&compared.reason())),
            ]),
        }
    }
    let mut out = if comparison.sources.is_empty() { String::new() } else { table.lines("") };
    if let Some(unified) = comparison.result.unified.filter(|_| comparison.sources.len() > 1) {
        let percent = 100.0 * unified.value();
        out.push_str(&format!(
            "all of them together: {percent:.1} %, {}\n",
            coloured(&unified.band().to_string())
        ));
    }
    out
}

//! `huntsman copyvio compare` and `check`.

use std::collections::HashSet;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use huntsman::middleware::copyvio::{CheckPlan, Checked, Subject, Workspace};

use crate::config::Config;
use crate::copyvio::{CheckArgs, CompareArgs, Comparison, CopyvioCommand, Input, Inputs, page, pdf_reader};
use crate::exit::{Exit, Failure, Outcome};
use crate::logging;
use crate::output::write_atomically;
use crate::progress::Screen;
use crate::render::{Style, Table, escape, shorten, warn};

pub(crate) async fn run(what: CopyvioCommand) -> Outcome {
    match what {
        CopyvioCommand::Compare(args) => compare(*args).await,
        CopyvioCommand::Check(args) => check(*args).await,
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
    let subject = subject(&texts, &inputs[0], &args.article)?;
    let sources = args.sources.iter().zip(&inputs[1..]);
    let sources =
        sources.map(|(name, input)| (name.clone(), texts.read(input).map(|read| read.reading))).collect();
    let comparison = Comparison::of(args.article.clone(), &subject, args.degree, sources);
    tell(&comparison, args.html.as_deref(), args.json)
}

async fn check(args: CheckArgs) -> Outcome {
    let input = Input::parse(&args.article)?;
    let plan = CheckPlan { keep_texts: args.html.is_some(), ..args.plan.plan(args.candidates.max_queries)? };
    let mut command = Inputs::command();
    command.extend(Workspace::settings());
    let config = Config::load(&args.settings, command, args.network.settings())?;
    logging::start(&config.settings, &Screen::plain())?;
    let layers = config.layers.clone();
    let sources = args.candidates.sources(&config.settings)?;
    let texts = Inputs::fetch(std::slice::from_ref(&input), config).await?;
    let subject = Arc::new(subject(&texts, &input, &args.article)?);
    let workspace = Workspace::start(pdf_reader(), |crawler| crawler.layers(layers))?;
    let checked = workspace.check(Arc::clone(&subject), &sources, plan).await?;
    // What is still on its way is nobody's business any more.
    drop(workspace);
    if !args.json {
        warn_of(&checked);
    }
    let comparison = Comparison::of_check(args.article.clone(), &subject, checked);
    tell(&comparison, args.html.as_deref(), args.json)
}

/// Says which questions had no answer, each trouble once; JSON has all of them.
fn warn_of(checked: &Checked) {
    let mut told = HashSet::new();
    for (by, error) in &checked.errors {
        if told.insert((by, error)) {
            warn(&format!("{}: {}", escape(by), escape(error)));
        }
    }
}

/// What an article says.
fn subject(texts: &Inputs, input: &Input, name: &str) -> Outcome<Subject> {
    let read = texts.read(input).map_err(|why| Failure::crawl(format!("{}: {why}", escape(name))))?;
    Ok(read.subject(input))
}

fn tell(comparison: &Comparison, html: Option<&Path>, json: bool) -> Outcome {
    if let Some(path) = html {
        write_atomically(path, page(comparison).as_bytes())
            .map_err(|error| Failure::crawl(format!("writing {}: {error}", shown(path))))?;
    }
    let mut stdout = io::stdout().lock();
    if json {
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
    table.row(["confidence", "", "verdict", "score", "coverage", "source"]);
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
    let mut out = table.lines("");
    if let Some(unified) = comparison.result.unified.filter(|_| comparison.sources.len() > 1) {
        let percent = 100.0 * unified.value();
        out.push_str(&format!(
            "all of them together: {percent:.1} %, {}\n",
            coloured(&unified.band().to_string())
        ));
    }
    out
}

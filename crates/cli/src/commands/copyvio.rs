//! `huntsman copyvio compare`.

use std::io::{self, Write};
use std::path::Path;

use crate::config::Config;
use crate::copyvio::{CompareArgs, Comparison, CopyvioCommand, Input, Inputs, page};
use crate::exit::{Exit, Failure, Outcome};
use crate::logging;
use crate::output::write_atomically;
use crate::progress::Screen;
use crate::render::{Style, Table, escape, shorten};

pub(crate) async fn run(what: CopyvioCommand) -> Outcome {
    match what {
        CopyvioCommand::Compare(args) => compare(*args).await,
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
    let article =
        texts.text(&inputs[0]).map_err(|why| Failure::crawl(format!("{}: {why}", escape(&args.article))))?;
    let sources = args.sources.iter().zip(&inputs[1..]);
    let sources = sources.map(|(name, input)| (name.clone(), texts.text(input))).collect();
    let comparison = Comparison::of(args.article.clone(), article, args.degree, sources);
    if let Some(path) = &args.html {
        write_atomically(path, page(&comparison).as_bytes())
            .map_err(|error| Failure::crawl(format!("writing {}: {error}", shown(path))))?;
    }
    let mut stdout = io::stdout().lock();
    if args.json {
        serde_json::to_writer(&mut stdout, &comparison.json())?;
        writeln!(stdout)?;
    } else {
        stdout.write_all(summary(&comparison, Style::stdout()).as_bytes())?;
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
        match &compared.evidence {
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

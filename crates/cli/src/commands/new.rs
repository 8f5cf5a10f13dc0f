//! `huntsman new` and `huntsman genspider`: a project of spiders, and a further spider in it.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use huntsman::{files, parse_web_url};

use crate::exit::{Exit, Failure, Outcome};
use crate::render::{escape, warn};
use crate::templates::{HUNTSMAN, PROJECT, PROJECT_NAME, Template};

/// Flags of `new`.
#[derive(Debug, Args)]
pub(crate) struct NewArgs {
    /// Name of the project: of its folder, its package and its program.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    /// Depends on Huntsman in this folder, a checkout, and not on the version of this command, which cargo must be able to
    /// download.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) path: Option<PathBuf>,
}

/// Flags of `genspider`.
#[derive(Debug, Args)]
pub(crate) struct GenspiderArgs {
    /// Name of the spider; its file is src/spiders/NAME.rs.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    /// Where it starts.
    #[arg(value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) url: String,

    /// Kind of the spider.
    #[arg(short = 't', long, value_name = "KIND", default_value = "basic")]
    pub(crate) template: Template,
}

/// Names that a package cannot have: those of crates that it needs.
const TAKEN: [&str; 7] = ["alloc", "core", "huntsman", "proc_macro", "serde", "std", "test"];

/// The longest list of arguments that `cargo fmt` leaves in one line.
const CALL_WIDTH: usize = 60;

/// The words of Rust that cannot be names.
const KEYWORDS: [&str; 51] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do", "dyn",
    "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop",
    "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "self", "static",
    "struct", "super", "trait", "true", "try", "type", "typeof", "unsafe", "unsized", "use", "virtual",
    "where", "while", "yield",
];

pub(crate) fn project(args: &NewArgs) -> Outcome {
    let name = valid_name(&args.name, "project")?;
    if TAKEN.contains(&module(name).as_str()) {
        return Err(Failure::usage(format!(
            "{name}: a crate that the project needs has this name; choose another"
        )));
    }
    let folder = Path::new(name);
    if fs::symlink_metadata(folder).is_ok() {
        return Err(Failure::usage(format!("{name}: it exists already; nothing was written")));
    }
    let huntsman = match &args.path {
        None => format!("version = \"{}\"", env!("CARGO_PKG_VERSION")),
        Some(path) => {
            let checkout = fs::canonicalize(path).ok().filter(|path| path.join("Cargo.toml").is_file());
            let checkout = checkout.ok_or_else(|| {
                Failure::usage(format!("--path {}: there is no package", escape(&path.to_string_lossy())))
            })?;
            format!("path = {}", serde_json::to_string(&checkout.to_string_lossy())?)
        }
    };
    for (path, text) in PROJECT {
        let text = text.replace(PROJECT_NAME, name).replace(HUNTSMAN, &huntsman);
        write_new(&folder.join(path), &text)?;
    }
    // The versions with which the checkout is tested; cargo takes those that the project needs. A checkout need not have the file.
    if let Some(lock) = args.path.as_ref().and_then(|path| fs::read_to_string(path.join("Cargo.lock")).ok()) {
        write_new(&folder.join("Cargo.lock"), &lock)?;
    }
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{name}/ is a project with one spider. Next:")?;
    writeln!(stdout, "  cd {name}")?;
    writeln!(stdout, "  cargo run -- crawl quotes -o quotes.jsonl")?;
    writeln!(stdout, "  huntsman genspider NAME URL")?;
    // What a project builds is mostly Huntsman itself.
    if std::env::var_os("CARGO_TARGET_DIR").is_none() {
        writeln!(
            stdout,
            "The first build takes minutes; projects share it if CARGO_TARGET_DIR names one folder for all."
        )?;
    }
    Ok(Exit::Done)
}

pub(crate) fn spider(args: &GenspiderArgs) -> Outcome {
    let name = valid_name(&args.name, "spider")?;
    let url = parse_web_url(&args.url)?;
    let main = Path::new("src/main.rs");
    if !main.is_file() || !Path::new("Cargo.toml").is_file() {
        return Err(Failure::usage(
            "there is no project in this folder (src/main.rs and Cargo.toml): go into one, or make one by `huntsman new NAME`",
        ));
    }
    let text = args.template.of_spider(name, &url);
    let module = module(name);
    let (path, added) = match args.template {
        Template::Toml => {
            let path = format!("spiders/{name}.toml");
            let load = format!("huntsman::DeclaredSpider::load(\"{path}\")");
            // As `cargo fmt` leaves it.
            let short = format!("\"{name}\", |_| {load}");
            let line = match short.len() <= CALL_WIDTH {
                true => format!(".spider({short})"),
                false => format!(".spider(\"{name}\", |_| {{\n    {load}\n}})"),
            };
            (PathBuf::from(path), vec![Line::spider(line)])
        }
        _ => (
            PathBuf::from(format!("src/spiders/{module}.rs")),
            vec![
                Line::module(format!("pub mod {module};")),
                Line::spider(format!(".spider(\"{name}\", spiders::{module}::spider)")),
            ],
        ),
    };
    // The file is written first: a line that names what is not there would keep the project from compiling.
    write_new(&path, &text)?;
    writeln!(io::stdout(), "{} is a new spider", path.display())?;
    for line in added {
        match line.place() {
            Ok(Some(text)) => files::write(line.file, text)
                .map_err(|error| Failure::crawl(format!("writing {}: {error}", line.file)))?,
            Ok(None) => {}
            Err(()) => warn(&format!("add to {}{}: {}", line.file, line.hint, line.text)),
        }
    }
    Ok(Exit::Done)
}

/// A line that makes a spider known.
struct Line {
    file: &'static str,
    text: String,
    /// Where the line belongs, for people.
    hint: &'static str,
    /// The line before which it is put; among the modules of the file if there is none.
    before: Option<&'static str>,
}

impl Line {
    fn module(text: String) -> Self {
        Self { file: "src/spiders/mod.rs", text, hint: "", before: None }
    }

    fn spider(text: String) -> Self {
        Self { file: "src/main.rs", text, hint: ", before .main()", before: Some(".main()") }
    }

    /// The text of the file with the line; `None` if it has the line already. It fails if there is no place for it.
    fn place(&self) -> Result<Option<String>, ()> {
        let found = fs::read_to_string(self.file).map_err(drop)?;
        let lines: Vec<&str> = found.lines().collect();
        if lines.iter().any(|line| self.text.lines().next() == Some(line.trim())) {
            return Ok(None);
        }
        let (at, indent) = match self.before {
            // In the order that `cargo fmt` gives modules.
            None => {
                let later = |line: &str| line.starts_with("pub mod ") && line > self.text.as_str();
                (lines.iter().position(|line| later(line)).unwrap_or(lines.len()), "")
            }
            Some(before) => {
                let mut places = lines.iter().enumerate().filter(|(_, line)| line.trim() == before);
                let (Some((at, line)), None) = (places.next(), places.next()) else { return Err(()) };
                (at, &line[..line.len() - line.trim_start().len()])
            }
        };
        let added: Vec<String> = self.text.lines().map(|line| format!("{indent}{line}")).collect();
        let added = added.iter().map(String::as_str);
        let all = lines[..at].iter().copied().chain(added).chain(lines[at..].iter().copied());
        Ok(Some(all.map(|line| format!("{line}\n")).collect()))
    }
}

/// A name that can be that of a file, a module and a package.
fn valid_name<'a>(name: &'a str, of: &str) -> Outcome<&'a str> {
    let has_letters = name.starts_with(|c: char| c.is_ascii_lowercase());
    let of_words =
        name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_'));
    if has_letters && of_words && name.len() <= 64 && !KEYWORDS.contains(&module(name).as_str()) {
        return Ok(name);
    }
    Err(Failure::usage(format!(
        "{}: the name of a {of} begins with a letter, has lower-case letters, digits, - and _ only, at most 64, and is no word of Rust",
        escape(name)
    )))
}

/// The name of the module.
fn module(name: &str) -> String {
    name.replace('-', "_")
}

/// Writes a file that does not exist yet, with its folders.
fn write_new(path: &Path, text: &str) -> Outcome<()> {
    let shown = escape(&path.to_string_lossy()).into_owned();
    let folder = path.parent().unwrap_or(Path::new(""));
    let made = match folder.as_os_str().is_empty() {
        true => Ok(()),
        false => files::create_dir_all(folder),
    };
    let written =
        made.and_then(|()| files::create_new(path)).and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            Failure::usage(format!("{shown}: the file exists already; it is left as it is"))
        }
        _ => Failure::crawl(format!("writing {shown}: {error}")),
    })
}

//! The project: spiders by name, and the commands that run them.

use std::ffi::OsString;
use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::FromArgMatches;
use huntsman_crawler::{CrawlerBuilder, HttpDownloader, Layers, Result, Spider, nearest};
use huntsman_middleware::{ConfigSources, CrawlSources, Defaults, Expectation};
use serde::Serialize;
use serde_json::Value;
use url::Url;

use crate::arguments::Arguments;
use crate::command::exit::{Exit, Failure, Outcome};
use crate::command::flags::SettingsArgs;
use crate::command::jobs::ServeCommand;
use crate::command::render::escape;
use crate::command::settings::listing;
use crate::command::{self, Config, on_runtime, panics};
use crate::command_line::{
    CheckArgs, Command, CommandLine, REST, SettingsCommandArgs, command_line, own_command,
};
use crate::parse::Sample;
use crate::typed::{AnyCrawl, Typed};
use crate::{bench, crawl, fixtures, parse, shell};

/// Makes the crawl of a spider from its arguments.
type Make = Box<dyn Fn(&Arguments) -> Result<Box<dyn AnyCrawl>>>;

/// Judges by its terms what a callback gives.
type Contract = Box<dyn Fn(&Value, &Expectation) -> Result<()>>;

/// Does the work of a command of a program from the arguments after its name.
type Work = Box<dyn Fn(&[OsString]) -> Result<()>>;

/// A program made of spiders, with commands to run them.
///
/// | command | what it does |
/// | --- | --- |
/// | `list` | lists the spiders |
/// | `crawl SPIDER [-a NAME=VALUE] [-s SETTING=VALUE] [-o FILE] [--out DIR]` | runs one |
/// | `control DIR status\|pause\|resume\|stop\|...` | looks at a crawl that runs with `--control`, and steers it |
/// | `serve jobs --dir DIR [--config FILE]` | runs spiders from a queue and at the times of cron lines |
/// | `jobs status\|list\|schedule\|cancel\|log\|items\|... --dir DIR` | asks that daemon |
/// | `parse URL [--spider SPIDER] [--callback LABEL] [--depth LINKS] [--pipelines]` | fetches one page and prints what its callback gives |
/// | `shell [URL] [-c COMMAND]` | tries selectors on a page, with the settings of a spider |
/// | `settings [SPIDER]` | lists the settings and where they come from |
/// | `check [SPIDER] [--accept]` | checks spiders, settings and fixtures without fetching anything |
/// | `bench` | measures how fast the program crawls on this machine |
/// | `version` | prints the version |
///
/// A setting has the value of the last of these that sets it: the profile, the spider and the program, the settings file
/// (`huntsman.toml` in the working directory: its top or `[settings]`, then `[spiders.NAME]`), variables of the environment
/// (`HUNTSMAN_DOWNLOAD_DELAY`), and flags. So the user of a program can change what its author has chosen.
///
/// The first SIGINT or SIGTERM (Ctrl-C) ends a crawl gently: requests in flight may end, and files are closed. The second one ends it at once.
pub struct Project {
    name: &'static str,
    version: &'static str,
    spiders: Vec<(String, Make)>,
    contracts: Vec<(String, Contract)>,
    commands: Vec<(&'static str, &'static str, Work)>,
}

/// A spider that a command works with.
pub(crate) struct Chosen<'a> {
    pub(crate) name: &'a str,
    pub(crate) crawl: Box<dyn AnyCrawl>,
}

impl Project {
    /// A project without spiders. The name is that of the program, `env!("CARGO_PKG_NAME")` in most.
    pub fn new(name: &'static str) -> Self {
        Self {
            name,
            version: env!("CARGO_PKG_VERSION"),
            spiders: Vec::new(),
            contracts: Vec::new(),
            commands: Vec::new(),
        }
    }

    /// Sets the version of the program, `env!("CARGO_PKG_VERSION")` in most; by default that of Huntsman.
    pub fn version(mut self, version: &'static str) -> Self {
        self.version = version;
        self
    }

    /// Adds a spider, which is made from the arguments of the command line. Its crawl is polite, as every crawl is.
    ///
    /// ```
    /// # use huntsman_crawler::{Output, Page, spider_fn};
    /// # use huntsman_project::Project;
    /// let parse = |page: &Page, out: &mut Output<String>| {
    ///     out.items(page.css("h1::text")?.get_all().to_vec());
    ///     Ok(())
    /// };
    /// let project = Project::new("shop").spider("titles", move |arguments| {
    ///     let shelf: String = arguments.require("shelf")?;
    ///     Ok(spider_fn([format!("https://books.example/{shelf}")], parse))
    /// });
    /// # let _ = project;
    /// ```
    pub fn spider<S>(self, name: impl Into<String>, make: impl Fn(&Arguments) -> Result<S> + 'static) -> Self
    where
        S: Spider<Item: Serialize>,
    {
        self.crawler(name, move |arguments| {
            let builder = CrawlerBuilder::new(make(arguments)?);
            Ok(builder.plugin(Defaults).downloader_with(HttpDownloader::new))
        })
    }

    /// Adds a spider with all that its crawl needs besides: pipelines, middlewares, components, settings. `huntsman::crawl` makes the
    /// builder. Values that it sets are defaults: the settings file, the environment and flags take precedence.
    pub fn crawler<S>(
        mut self,
        name: impl Into<String>,
        make: impl Fn(&Arguments) -> Result<CrawlerBuilder<S>> + 'static,
    ) -> Self
    where
        S: Spider<Item: Serialize>,
    {
        let make: Make = Box::new(move |arguments| Ok(Box::new(Typed::new(make(arguments)?)) as _));
        self.spiders.push((name.into(), make));
        self
    }

    /// Adds a contract of your own for fixtures. `check` calls it for each page whose file of expectations names it, with the terms that stand
    /// there (`{"contract": {"own": {"unique": "url"}}}`) and what the callback gave; its error is what is wrong.
    ///
    /// ```
    /// # use huntsman_crawler::Error;
    /// # use huntsman_project::Project;
    /// let project = Project::new("shop").contract("unique", |field, given| {
    ///     let field = field.as_str().unwrap_or_default();
    ///     let mut seen = std::collections::HashSet::new();
    ///     match given.items.iter().find(|item| !seen.insert(item[field].to_string())) {
    ///         Some(twice) => Err(Error::msg(format!("{field} {} comes twice", twice[field]))),
    ///         None => Ok(()),
    ///     }
    /// });
    /// # let _ = project;
    /// ```
    pub fn contract(
        mut self,
        name: impl Into<String>,
        judge: impl Fn(&Value, &Expectation) -> Result<()> + 'static,
    ) -> Self {
        self.contracts.push((name.into(), Box::new(judge)));
        self
    }

    /// Adds a command of your own, such as one that a crate with components brings. It gets the arguments after its name, is listed in the
    /// help with this text, and must not have the name of another command.
    ///
    /// ```
    /// # use huntsman_project::Project;
    /// let project = Project::new("shop").command("shelves", "Lists the shelves", |_| {
    ///     println!("poetry");
    ///     Ok(())
    /// });
    /// assert_eq!(project.run(["shop", "shelves"]) as u8, 0);
    /// ```
    pub fn command(
        mut self,
        name: &'static str,
        help: &'static str,
        work: impl Fn(&[OsString]) -> Result<()> + 'static,
    ) -> Self {
        self.commands.push((name, help, Box::new(work)));
        self
    }

    /// Runs the command that the arguments of this process name. It is meant to be all that `main` does: it sets up the process (files
    /// that it writes are private from now on), and prints errors on stderr.
    pub fn main(self) -> ExitCode {
        command::begin();
        self.run(std::env::args_os()).into()
    }

    /// Runs the command that these arguments name, the first of which is the name of the program. For programs that have more to do, and
    /// for tests; it must not be called within a runtime.
    pub fn run(&self, arguments: impl IntoIterator<Item = impl Into<OsString> + Clone>) -> Exit {
        let example = self.spiders.first().map_or("SPIDER", |(name, _)| name);
        let mut line = command_line(self.name, self.version, example);
        for (name, help, _) in &self.commands {
            if line.find_subcommand(name).is_some() || *name == "help" {
                let twice =
                    Failure::usage(format!("the program has two commands with the name {}", escape(name)));
                return command::ended(Err(twice));
            }
            line = line.subcommand(own_command(name, help));
        }
        let matches = line.try_get_matches_from(arguments);
        let own = matches.as_ref().ok().and_then(|matches| {
            let (name, given) = matches.subcommand()?;
            let (.., work) = self.commands.iter().find(|(own, ..)| *own == name)?;
            Some((work, given.get_many::<OsString>(REST).unwrap_or_default().cloned().collect::<Vec<_>>()))
        });
        if let Some((work, rest)) = own {
            return command::ended(panics::caught(|| Ok(work(&rest).map(|()| Exit::Done)?)));
        }
        match matches.and_then(|matches| CommandLine::from_arg_matches(&matches)) {
            Ok(line) => command::ended(panics::caught(|| self.perform(line.command))),
            // Help was asked for, or the arguments are wrong.
            Err(error) if command::told(&error) == 0 => Exit::Done,
            Err(_) => Exit::Usage,
        }
    }

    fn perform(&self, command: Command) -> Outcome {
        let mut names: Vec<&str> = self.names().collect();
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Failure::usage(format!(
                "the program has two spiders with the name {}",
                escape(twice[0])
            )));
        }
        match command {
            Command::List => {
                let list: String = self.names().map(|name| format!("{}\n", escape(name))).collect();
                io::stdout().lock().write_all(list.as_bytes())?;
                Ok(Exit::Done)
            }
            Command::Crawl(args) => on_runtime(crawl::run(self, *args)),
            Command::Control(args) => on_runtime(command::control::run(args)),
            Command::Serve { what: ServeCommand::Jobs(args) } => {
                let (program, folder) = (std::env::current_exe()?, std::env::current_dir()?);
                on_runtime(command::jobs::serve(args, |config| config.program(self.name, program, folder)))
            }
            Command::Jobs(args) => on_runtime(command::jobs::run(args)),
            Command::Parse(args) => on_runtime(parse::run(self, *args)),
            Command::Shell(args) => on_runtime(shell::run(self, *args)),
            Command::Settings(args) => self.settings(&args),
            Command::Check(args) => self.check(&args),
            Command::Bench(args) => on_runtime(bench::run(args)),
            Command::BenchServer(site) => on_runtime(command::bench::serve(site)),
            Command::Version => {
                writeln!(io::stdout(), "{} {}", self.name, self.version)?;
                Ok(Exit::Done)
            }
        }
    }

    fn settings(&self, args: &SettingsCommandArgs) -> Outcome {
        let arguments = Arguments::of_flags(&args.arguments)?;
        let text = if args.spider.is_none() && self.spiders.len() != 1 {
            let config = self.checked(Config::load(&args.settings, Vec::new(), Vec::new())?)?;
            listing(&config, &args.listing, || {
                Err(Failure::usage(format!("name a spider, whose components are listed: {}", self.listed())))
            })?
        } else {
            let chosen = self.choose(args.spider.as_deref(), &arguments)?;
            let config = Config::load(chosen.sources(&args.settings), Vec::new(), Vec::new())?;
            let config = self.checked(config)?;
            listing(&config, &args.listing, || chosen.dry(config.layers.clone(), &arguments))?
        };
        io::stdout().lock().write_all(text.as_bytes())?;
        Ok(Exit::Done)
    }

    fn check(&self, args: &CheckArgs) -> Outcome {
        let names: Vec<&str> = match &args.spider {
            Some(name) => vec![name],
            None => self.names().collect(),
        };
        let mut exit = Exit::Done;
        for name in names {
            let arguments = Arguments::of_flags(&args.arguments)?;
            let checked = self.choose(Some(name), &arguments).and_then(|chosen| {
                arguments.check()?;
                let config =
                    self.checked(Config::load(chosen.sources(&args.settings), Vec::new(), Vec::new())?)?;
                chosen.dry(config.layers, &arguments)
            });
            let own = format!("spider {}: ", escape(name));
            let told = |failure: &Failure| failure.message.trim_start_matches(&own).to_owned();
            match checked {
                Ok(_) => writeln!(io::stdout(), "{}: ok", escape(name))?,
                // Nobody can give arguments to all spiders at once.
                Err(failure) if args.spider.is_none() && arguments.lacks_one() => {
                    writeln!(io::stdout(), "{}: not checked: {}", escape(name), told(&failure))?;
                }
                Err(failure) => {
                    writeln!(io::stdout(), "{}: {}", escape(name), told(&failure))?;
                    exit = failure.exit;
                }
            }
        }
        match fixtures::check(self, args)? {
            Exit::Done => Ok(exit),
            failed if exit == Exit::Done => Ok(failed),
            _ => Ok(exit),
        }
    }

    /// The contract of this name.
    pub(crate) fn contract_of(&self, name: &str) -> Outcome<&Contract> {
        let known = || self.contracts.iter().map(|(name, _)| name.as_str());
        let found = self.contracts.iter().find(|(own, _)| own == name).map(|(_, judge)| judge);
        found.ok_or_else(|| {
            let hint = nearest(name, known()).map_or(String::new(), |near| format!("; did you mean {near}?"));
            Failure::usage(format!("the program has no such contract{hint}"))
        })
    }

    /// The names of the spiders, in the order in which they were added.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.spiders.iter().map(|(name, _)| name.as_str())
    }

    fn listed(&self) -> String {
        self.names().map(|name| escape(name).into_owned()).collect::<Vec<_>>().join(", ")
    }

    /// The name of the spider that is named, or of the only one.
    pub(crate) fn find(&self, name: Option<&str>) -> Outcome<&str> {
        Ok(&self.entry(name)?.0)
    }

    /// The spider of this name, or the only one, made from its arguments.
    pub(crate) fn choose(&self, name: Option<&str>, arguments: &Arguments) -> Outcome<Chosen<'_>> {
        let (name, make) = self.entry(name)?;
        let crawl = make(arguments).map_err(|error| error.context(format!("spider {}", escape(name))))?;
        Ok(Chosen { name, crawl })
    }

    fn entry(&self, name: Option<&str>) -> Outcome<&(String, Make)> {
        let found = match (name, self.spiders.as_slice()) {
            (_, []) => return Err(Failure::usage("the program has no spiders")),
            (None, [only]) => Some(only),
            (None, _) => return Err(Failure::usage(format!("name a spider: {}", self.listed()))),
            (Some(name), all) => all.iter().find(|(known, _)| known == name),
        };
        found.ok_or_else(|| {
            let name = name.unwrap_or_default();
            let hint = nearest(name, self.names())
                .map_or(String::new(), |near| format!("did you mean {}? ", escape(near)));
            Failure::usage(format!(
                "there is no spider {}; {hint}the spiders are: {}",
                escape(name),
                self.listed()
            ))
        })
    }

    /// The spider for a page: the named one, the only one, or the one that has the page's host among its domains.
    pub(crate) fn for_page(
        &self,
        name: Option<&str>,
        url: &Url,
        arguments: &Arguments,
    ) -> Outcome<Chosen<'_>> {
        if name.is_some() || self.spiders.len() < 2 {
            return self.choose(name, arguments);
        }
        let host = url.host_str().unwrap_or("");
        let has_host = |domain: &String| {
            host.strip_suffix(domain.as_str()).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        // A spider that cannot be made from these arguments is not the one that is meant.
        let mut fitting = self.names().filter_map(|name| {
            let chosen = self.choose(Some(name), arguments).ok()?;
            chosen.crawl.allowed_domains().iter().any(has_host).then_some(chosen)
        });
        match (fitting.next(), fitting.next()) {
            (Some(chosen), None) => Ok(chosen),
            (None, _) => Err(Failure::usage(format!(
                "no spider has {host} among its allowed domains; name one with --spider: {}",
                self.listed()
            ))),
            (Some(one), Some(other)) => Err(Failure::usage(format!(
                "{} and {} have {host} among their allowed domains; name one with --spider",
                escape(one.name),
                escape(other.name)
            ))),
        }
    }

    /// Settings whose file has tables for spiders of this program only.
    pub(crate) fn checked(&self, config: Config) -> Outcome<Config> {
        let unknown = config.spiders.iter().find(|name| !self.names().any(|known| known == name.as_str()));
        let Some(name) = unknown else { return Ok(config) };
        let file = config.file.as_deref().map(|path| path.to_string_lossy().into_owned()).unwrap_or_default();
        let hint = match nearest(name, self.names()) {
            Some(near) => format!("did you mean [spiders.{near}]?"),
            None => format!("there are {}", self.listed()),
        };
        Err(Failure::usage(format!(
            "{}: [spiders.{}]: there is no such spider; {hint}",
            escape(&file),
            escape(name)
        )))
    }
}

impl Chosen<'_> {
    /// Where the settings of the crawl come from.
    pub(crate) fn sources(&self, args: &SettingsArgs) -> ConfigSources {
        let crawl = CrawlSources {
            spider: self.name.to_owned(),
            table: self.crawl.table(),
            layers: self.crawl.layers(),
        };
        ConfigSources { crawl: Some(crawl), ..ConfigSources::from(args) }
    }

    /// The crawl, built without running it: no file of items is opened.
    fn dry(self, layers: Layers, arguments: &Arguments) -> Outcome<huntsman_crawler::Crawler> {
        let nothing = Sample::of(huntsman_crawler::Request::parse("https://example.org/")?);
        let (crawler, _) = self.crawl.sample(nothing, layers, arguments)?;
        Ok(crawler)
    }
}

impl fmt::Debug for Project {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let spiders: Vec<&str> = self.names().collect();
        f.debug_struct("Project")
            .field("name", &self.name)
            .field("version", &self.version)
            .field("spiders", &spiders)
            .finish()
    }
}

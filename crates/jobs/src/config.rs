//! The configuration of a daemon: a file of TOML with its limits, its projects and the lines of cron.
//!
//! Programs and spider files come from this file only: nothing that is sent to the daemon names what is executed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::tz::TimeZone;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::cron::Cron;
use crate::error::Error;
use crate::order::{Order, check_settings};

/// Limits of a daemon. All have defaults, and a key of the same name in the configuration.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// Most jobs that run at once. Default: the number of processors.
    pub max_proc: usize,
    /// Most jobs of one spider that run at once. Default: 1.
    pub per_spider: usize,
    /// Most jobs that wait. Default: 1,000.
    pub max_pending: usize,
    /// Number of finished jobs that the list keeps. Default: 500.
    pub history: usize,
    /// Number of finished jobs whose directories are kept. Default: 50.
    pub keep: usize,
    /// How often a job goes on whose process died: by a signal, or while the daemon did not run. Then it has failed. Default: 3.
    pub resume: u32,
    /// Seconds that running jobs get to end when the daemon stops. Default: 30.
    pub stop_time: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_proc: std::thread::available_parallelism().map_or(1, usize::from),
            per_spider: 1,
            max_pending: 1_000,
            history: 500,
            keep: 50,
            resume: 3,
            stop_time: 30,
        }
    }
}

impl Limits {
    pub(crate) fn stop_time(&self) -> Duration {
        Duration::from_secs(self.stop_time)
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        let at_least_one = [("max_proc", self.max_proc), ("per_spider", self.per_spider)];
        if let Some((name, _)) = at_least_one.into_iter().find(|(_, value)| *value == 0) {
            return Err(format!("{name} = 0: no job would run; use 1 or more"));
        }
        let sizes = [("max_pending", self.max_pending, 10_000), ("history", self.history, 10_000)];
        match sizes.into_iter().find(|(_, value, most)| value > most) {
            Some((name, value, most)) => Err(format!("{name} = {value}: use {most} or less")),
            None => Ok(()),
        }
    }
}

/// What a daemon runs, and when.
#[derive(Clone, Debug)]
pub struct Config {
    pub(crate) limits: Limits,
    pub(crate) port: u16,
    pub(crate) zone: TimeZone,
    pub(crate) zone_name: String,
    /// The command `huntsman`, which runs spider files.
    pub(crate) huntsman: Option<PathBuf>,
    pub(crate) projects: BTreeMap<String, Project>,
    pub(crate) lines: Vec<Line>,
}

/// A project: where its spiders are.
#[derive(Clone, Debug)]
pub(crate) struct Project {
    pub(crate) runs: Runs,
    /// The working directory of its jobs, where its `huntsman.toml` is.
    pub(crate) folder: PathBuf,
    pub(crate) settings: Map<String, Value>,
}

/// What is executed for a project.
#[derive(Clone, Debug)]
pub(crate) enum Runs {
    /// A program that is made with `huntsman::Project`.
    Program(PathBuf),
    /// Spider files by the names of their spiders.
    Files(BTreeMap<String, PathBuf>),
}

/// A line of cron with what it starts.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    /// The name under which the state of the line is stored.
    pub(crate) name: String,
    pub(crate) cron: Cron,
    pub(crate) order: Order,
    pub(crate) overlap: Overlap,
    pub(crate) missed: Missed,
}

/// What is done when a line is due while its last job is still there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Overlap {
    /// The run is left out.
    #[default]
    Skip,
    /// The run waits; while one of the line waits, further ones are left out.
    Queue,
}

/// What is done with runs that were due while the daemon did not run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Missed {
    /// They are left out.
    #[default]
    Skip,
    /// One run is made up for, however many were missed.
    Run,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    max_proc: Option<usize>,
    per_spider: Option<usize>,
    max_pending: Option<usize>,
    history: Option<usize>,
    keep: Option<usize>,
    resume: Option<u32>,
    stop_time: Option<u64>,
    #[serde(default)]
    port: u16,
    time_zone: Option<String>,
    huntsman: Option<PathBuf>,
    #[serde(default)]
    project: Vec<ProjectTable>,
    #[serde(default)]
    schedule: Vec<LineTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProjectTable {
    name: String,
    program: Option<PathBuf>,
    #[serde(default)]
    files: Vec<PathBuf>,
    folder: Option<PathBuf>,
    #[serde(default)]
    settings: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LineTable {
    name: Option<String>,
    project: String,
    spider: String,
    cron: String,
    #[serde(default)]
    args: BTreeMap<String, Value>,
    #[serde(default)]
    settings: Map<String, Value>,
    #[serde(default)]
    priority: i32,
    #[serde(default)]
    overlap: Overlap,
    #[serde(default)]
    missed: Missed,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            port: 0,
            zone: TimeZone::UTC,
            zone_name: "UTC".to_owned(),
            huntsman: None,
            projects: BTreeMap::new(),
            lines: Vec::new(),
        }
    }
}

impl Config {
    /// Reads a file. Paths in it are relative to its folder.
    ///
    /// # Errors
    /// The file cannot be read or is wrong; the error names the place.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let text = std::fs::read_to_string(path).map_err(|source| Error::File {
            doing: "reading",
            path: path.to_owned(),
            source,
        })?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let wrong = |why: String| Error::Config { path: path.to_owned(), why };
        let folder =
            std::path::absolute(folder.unwrap_or(Path::new("."))).map_err(|e| wrong(e.to_string()))?;
        Self::parse(&text, &folder).map_err(wrong)
    }

    /// Reads the text of a file whose paths are relative to a folder.
    pub(crate) fn parse(text: &str, folder: &Path) -> Result<Self, String> {
        let file: File = toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())?;
        let defaults = Limits::default();
        let limits = Limits {
            max_proc: file.max_proc.unwrap_or(defaults.max_proc),
            per_spider: file.per_spider.unwrap_or(defaults.per_spider),
            max_pending: file.max_pending.unwrap_or(defaults.max_pending),
            history: file.history.unwrap_or(defaults.history),
            keep: file.keep.unwrap_or(defaults.keep),
            resume: file.resume.unwrap_or(defaults.resume),
            stop_time: file.stop_time.unwrap_or(defaults.stop_time),
        };
        limits.check()?;
        let zone_name = file.time_zone.unwrap_or_else(|| "UTC".to_owned());
        let zone = zone(&zone_name)?;
        let huntsman = file.huntsman.map(|path| folder.join(path));
        let mut config = Self { limits, port: file.port, zone, zone_name, huntsman, ..Self::default() };
        for table in file.project {
            let (name, project) = table.project(folder)?;
            if config.projects.insert(name.clone(), project).is_some() {
                return Err(format!("there are two projects with the name {name:?}"));
            }
        }
        config.lines = file.schedule.into_iter().map(LineTable::line).collect::<Result<_, _>>()?;
        let mut names = BTreeSet::new();
        match config.lines.iter().find(|line| !names.insert(&line.name)) {
            Some(twice) => {
                Err(format!("there are two schedules {:?}: give them different names", twice.name))
            }
            None => Ok(config),
        }
    }

    /// Adds a program that is made with `huntsman::Project`, unless the file has a project of this name. Its jobs run in this folder.
    pub fn program(mut self, name: &str, program: PathBuf, folder: PathBuf) -> Self {
        let project = Project { runs: Runs::Program(program), folder, settings: Map::new() };
        self.projects.entry(name.to_owned()).or_insert(project);
        self
    }

    /// Sets the command `huntsman`, which runs spider files, unless the file names one.
    pub fn huntsman(mut self, program: PathBuf) -> Self {
        self.huntsman.get_or_insert(program);
        self
    }

    /// Sets the limits, whatever the file says.
    ///
    /// ```
    /// let mut limits = huntsman_jobs::Limits::default();
    /// limits.max_proc = 2;
    /// let config = huntsman_jobs::Config::default().limits(limits);
    /// # let _ = config;
    /// ```
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the port, 0 for a free one, whatever the file says.
    pub fn port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }
}

fn zone(name: &str) -> Result<TimeZone, String> {
    match name {
        "UTC" => Ok(TimeZone::UTC),
        "local" => TimeZone::try_system().map_err(|error| format!("time_zone = \"local\": {error}")),
        name => TimeZone::get(name).map_err(|error| {
            format!("time_zone = {name:?}: {error}; use UTC, local, or a name such as Europe/Berlin")
        }),
    }
}

impl ProjectTable {
    fn project(self, folder: &Path) -> Result<(String, Project), String> {
        let Self { name, .. } = self;
        let word = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if name.is_empty() || name.len() > 100 || !name.chars().all(word) {
            return Err(format!("project {name:?}: use letters, digits, and - _ . for its name"));
        }
        let runs = match (self.program, self.files.as_slice()) {
            (Some(program), []) => Runs::Program(folder.join(program)),
            (None, [_, ..]) => {
                let mut files = BTreeMap::new();
                for file in self.files {
                    let stem = file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
                    let spider = stem.unwrap_or_default();
                    if files.insert(spider.clone(), folder.join(file)).is_some() {
                        return Err(format!("project {name:?}: two files stand for the spider {spider:?}"));
                    }
                }
                Runs::Files(files)
            }
            _ => return Err(format!("project {name:?}: give it either `program` or `files`")),
        };
        let folder = self.folder.map_or_else(|| folder.to_owned(), |own| folder.join(own));
        check_settings(&self.settings).map_err(|error| format!("project {name:?}: {error}"))?;
        Ok((name, Project { runs, folder, settings: self.settings }))
    }
}

impl LineTable {
    fn line(self) -> Result<Line, String> {
        let name = self.name.unwrap_or_else(|| format!("{}/{} {}", self.project, self.spider, self.cron));
        let cron = self.cron.parse().map_err(|error| format!("schedule {name:?}: cron: {error}"))?;
        let order = Order {
            project: self.project,
            spider: self.spider,
            args: self.args,
            settings: self.settings,
            priority: self.priority,
        };
        order.check().map_err(|error| format!("schedule {name:?}: {error}"))?;
        Ok(Line { name, cron, order, overlap: self.overlap, missed: self.missed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Config, String> {
        Config::parse(text, Path::new("/srv/jobs"))
    }

    #[test]
    fn a_file_has_limits_projects_and_lines_with_defaults() {
        let config = parse(
            "max_proc = 2\n[[project]]\nname = 'shop'\nprogram = 'bin/shop'\n\
             [[project]]\nname = 'news'\nfiles = ['a.toml', 'x/b.toml']\nfolder = 'x'\n\
             [[schedule]]\nproject = 'shop'\nspider = 'books'\ncron = '0 3 * * *'\nargs = { pages = 3 }",
        )
        .unwrap();
        assert_eq!((config.limits.max_proc, config.limits.per_spider, config.port), (2, 1, 0));
        assert!(
            matches!(&config.projects["shop"].runs, Runs::Program(path) if path == Path::new("/srv/jobs/bin/shop"))
        );
        let news = &config.projects["news"];
        assert!(matches!(&news.runs, Runs::Files(files) if files.keys().eq(["a", "b"])));
        assert_eq!(news.folder, Path::new("/srv/jobs/x"));
        assert_eq!(config.lines[0].name, "shop/books 0 3 * * *");
        assert_eq!((config.lines[0].overlap, config.lines[0].missed), (Overlap::Skip, Missed::Skip));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        for (text, part) in [
            ("max_proc = 0", "max_proc = 0"),
            ("history = 99999", "10000 or less"),
            ("maxproc = 1", "maxproc"),
            ("time_zone = 'Mars/Base'", "Mars/Base"),
            ("[[project]]\nname = '../x'\nprogram = 'x'", "use letters"),
            ("[[project]]\nname = 'x'\nprogram = 'x'\nsettings = { 'a=b' = 1 }", "a=b"),
            ("[[project]]\nname = 'x'", "either `program` or `files`"),
            (
                "[[project]]\nname = 'x'\nprogram = 'a'\n[[project]]\nname = 'x'\nprogram = 'b'",
                "two projects",
            ),
            ("[[project]]\nname = 'x'\nfiles = ['a.toml', 'b/a.toml']", "two files"),
            ("[[schedule]]\nproject = 'x'\nspider = 'y'\ncron = '99 * * * *'", "x/y 99 * * * *"),
            ("[[schedule]]\nproject = 'x'\nspider = 'y'\ncron = '@daily'\nargs = { 'a=b' = 1 }", "a=b"),
            (
                "[[schedule]]\nproject = 'x'\nspider = 'y'\ncron = '@daily'\n\
                 [[schedule]]\nproject = 'x'\nspider = 'y'\ncron = '@daily'",
                "different names",
            ),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}

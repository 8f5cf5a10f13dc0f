//! The projects of the configuration: their spiders, and the commands that run them.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use huntsman_crawler::nearest;
use tokio::io::AsyncReadExt;
use tokio::process::Command;

use crate::config::{Config, Project, Runs};
use crate::error::Refusal;
use crate::order::{Order, flags};
use crate::result::Places;

/// Time in which a program has to list its spiders.
const LIST_TIME: Duration = Duration::from_secs(10);
/// Most bytes of such a list.
const MAX_LIST: u64 = 1 << 20;

/// The time of the last change of a program, and its spiders.
type List = (Option<SystemTime>, Vec<String>);

/// The projects by their names.
#[derive(Debug)]
pub(crate) struct Projects {
    projects: BTreeMap<String, Project>,
    huntsman: Option<PathBuf>,
    /// The spiders of programs, as long as the programs are the same.
    lists: Mutex<HashMap<PathBuf, List>>,
}

impl Projects {
    pub(crate) fn new(config: &Config) -> Self {
        Self { projects: config.projects.clone(), huntsman: config.huntsman.clone(), lists: Mutex::default() }
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.projects.keys().map(String::as_str)
    }

    fn project(&self, name: &str) -> Result<&Project, Refusal> {
        self.projects.get(name).ok_or_else(|| {
            let all: Vec<&str> = self.names().collect();
            Refusal::Unknown(match all.as_slice() {
                [] => "the configuration names no project; add a [[project]] to it".to_owned(),
                all => format!("there is no project {name:?}; the configuration has {}", all.join(", ")),
            })
        })
    }

    /// The spiders of a project.
    pub(crate) async fn spiders(&self, name: &str) -> Result<Vec<String>, Refusal> {
        let project = self.project(name)?;
        let program = match &project.runs {
            Runs::Files(files) => return Ok(files.keys().cloned().collect()),
            Runs::Program(program) => program,
        };
        let changed = std::fs::metadata(program).and_then(|found| found.modified()).ok();
        let lists = || self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, list)) = lists().get(program)
            && changed.is_some()
            && *at == changed
        {
            return Ok(list.clone());
        }
        let failed = |why: String| {
            Refusal::Failed(format!("project {name}: `{} list`: {why}", program.to_string_lossy()))
        };
        let text = tokio::time::timeout(LIST_TIME, listed(program, &project.folder)).await;
        let text = text.unwrap_or_else(|_| Err(format!("no answer within {} s", LIST_TIME.as_secs())));
        let list: Vec<String> = text.map_err(failed)?.lines().map(str::to_owned).collect();
        lists().insert(program.clone(), (changed, list.clone()));
        Ok(list)
    }

    /// Whether an order can be carried out.
    pub(crate) async fn check(&self, order: &Order) -> Result<(), Refusal> {
        order.check().map_err(Refusal::Wrong)?;
        let project = self.project(&order.project)?;
        let spiders = self.spiders(&order.project).await?;
        if !spiders.contains(&order.spider) {
            let hint = nearest(&order.spider, spiders.iter().map(String::as_str))
                .map_or(String::new(), |near| format!("; did you mean {near}?"));
            return Err(Refusal::Unknown(format!(
                "project {} has no spider {:?}{hint}; it has {}",
                order.project,
                order.spider,
                spiders.join(", ")
            )));
        }
        match project.runs {
            Runs::Files(_) if !order.args.is_empty() => Err(Refusal::Wrong(format!(
                "project {}: a spider file has no arguments; use settings",
                order.project
            ))),
            Runs::Files(_) if self.huntsman.is_none() => Err(Refusal::Failed(format!(
                "project {}: spider files are run by the command huntsman; name it in the configuration: huntsman = \"/usr/local/bin/huntsman\"",
                order.project
            ))),
            _ => Ok(()),
        }
    }

    /// The command of a job. The same command goes on with a job that was interrupted.
    pub(crate) fn command(&self, order: &Order, id: &str, places: &Places) -> Result<Command, String> {
        let project = self.project(&order.project).map_err(|error| error.to_string())?;
        let mut command = match (&project.runs, &self.huntsman) {
            (Runs::Program(program), _) => {
                let mut command = Command::new(program);
                command.arg("crawl").arg(&order.spider);
                command
            }
            (Runs::Files(files), Some(huntsman)) => {
                let file = files.get(&order.spider).ok_or("the configuration has no such spider")?;
                let mut command = Command::new(huntsman);
                command.arg("crawl").arg(file);
                command
            }
            (Runs::Files(_), None) => {
                return Err("the configuration does not name the command huntsman".to_owned());
            }
        };
        command.arg("--out").arg(places.crawl(id)).arg("--control");
        command.args(flags("--argument=", &order.args));
        // The last of equal settings holds.
        command.args(flags("--set=", &project.settings)).args(flags("--set=", &order.settings));
        command.current_dir(&project.folder).stdin(Stdio::null());
        // Ctrl-C at the terminal of the daemon is for the daemon, which then ends its jobs.
        #[cfg(unix)]
        command.process_group(0);
        Ok(command)
    }
}

/// What `PROGRAM list` prints.
async fn listed(program: &Path, folder: &Path) -> Result<String, String> {
    let mut command = Command::new(program);
    command.arg("list").current_dir(folder).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.kill_on_drop(true).spawn().map_err(|error| error.to_string())?;
    let mut text = String::new();
    if let Some(stdout) = child.stdout.take() {
        stdout.take(MAX_LIST).read_to_string(&mut text).await.map_err(|error| error.to_string())?;
    }
    let status = child.wait().await.map_err(|error| error.to_string())?;
    if status.success() { Ok(text) } else { Err(status.to_string()) }
}

//! A command that is crashed, and what must be true of its files.

use std::path::Path;
use std::process::Command;

use huntsman_testkit::RunningSite;

/// What is wrong with the files that a command left.
pub(crate) type Checked = Result<(), String>;

type Make = Box<dyn Fn(&Path) -> Command>;
type Check = Box<dyn Fn(&Path, Moment) -> Checked>;

/// When files are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// After one run that nothing disturbed.
    Undisturbed,
    /// After a crash or a fault, and the same command again.
    Completed,
}

/// A command in a directory of its own, named by relative paths.
pub(crate) struct Scenario {
    /// Servers that the command asks.
    pub(crate) sites: Vec<RunningSite>,
    /// Puts what it needs into an empty directory.
    pub(crate) prepare: Box<dyn Fn(&Path)>,
    /// The command that is crashed.
    pub(crate) command: Make,
    /// The command that makes everything whole, if it is another one.
    pub(crate) again: Option<Make>,
    /// What the files must be like in the end.
    pub(crate) check: Check,
    /// Whether it promises to survive a power cut in the midst of its work, or a kill only.
    pub(crate) survives_power_cuts: bool,
    /// It makes a file that must not exist before: the same command again may say that it is there, and whole.
    pub(crate) makes_a_new_file: bool,
}

impl Scenario {
    /// A command that needs nothing, promises everything, and is to be run again as it was.
    pub(crate) fn new(
        command: impl Fn(&Path) -> Command + 'static,
        check: impl Fn(&Path, Moment) -> Checked + 'static,
    ) -> Self {
        Self {
            sites: Vec::new(),
            prepare: Box::new(|_| {}),
            command: Box::new(command),
            again: None,
            check: Box::new(check),
            survives_power_cuts: true,
            makes_a_new_file: false,
        }
    }

    pub(crate) fn again(&self, directory: &Path) -> Command {
        self.again.as_ref().unwrap_or(&self.command)(directory)
    }
}

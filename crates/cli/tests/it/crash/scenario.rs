//! A scenario: a command that is crashed, and a check of its files.

use std::path::Path;
use std::process::Command;

use huntsman_testkit::RunningSite;

/// The result of checking the files of a command; the error says what is wrong.
pub(crate) type Checked = Result<(), String>;

type Make = Box<dyn Fn(&Path) -> Command>;
type Check = Box<dyn Fn(&Path, Moment) -> Checked>;

/// When the files are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// After one undisturbed run.
    Undisturbed,
    /// After a crash or a fault, and a second run of the same command.
    Completed,
}

/// A command in a directory of its own, named by relative paths.
pub(crate) struct Scenario {
    /// Servers that the command uses.
    pub(crate) sites: Vec<RunningSite>,
    /// Puts the command's input into an empty directory.
    pub(crate) prepare: Box<dyn Fn(&Path)>,
    /// The command that is crashed.
    pub(crate) command: Make,
    /// The command that completes everything after a crash, if it differs.
    pub(crate) again: Option<Make>,
    /// Checks the final files.
    pub(crate) check: Check,
    /// Whether the command promises to survive a power cut in the middle of its work, or only a kill.
    pub(crate) survives_power_cuts: bool,
    /// Whether the command creates a file that must not exist before: the second run may report that it exists and is
    /// complete.
    pub(crate) makes_a_new_file: bool,
}

impl Scenario {
    /// A scenario that needs no input, makes all promises, and is repeated with the same command.
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

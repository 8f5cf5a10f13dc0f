//! The settings of a command, from the sources that its flags name.

use huntsman::middleware::ConfigSources;

use crate::args::SettingsArgs;
use crate::render::warn;

pub(crate) use huntsman::middleware::Config;

impl From<&SettingsArgs> for ConfigSources {
    fn from(args: &SettingsArgs) -> Self {
        Self {
            profile: args.profile.clone(),
            file: args.config.clone(),
            spider: Vec::new(),
            set: args.set.clone(),
            on_ignored: |name| warn(&format!("{name}: no such setting; ignored")),
        }
    }
}

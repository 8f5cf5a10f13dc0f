//! The settings of a command, from the sources that its flags name.

use huntsman_middleware::ConfigSources;

use super::flags::SettingsArgs;
use super::render::warn;

pub use huntsman_middleware::Config;

impl From<&SettingsArgs> for ConfigSources {
    fn from(args: &SettingsArgs) -> Self {
        Self {
            profile: args.profile.clone(),
            file: args.config.clone(),
            set: args.set.clone(),
            on_ignored: |name| warn(&format!("{name}: no such setting; ignored")),
            ..Self::default()
        }
    }
}

/// Logs the settings that differ from the defaults, so that the log says what was run.
pub fn log_settings(config: &Config) {
    let changed: Vec<String> = config
        .changed()
        .into_iter()
        .map(|(name, value, layer)| format!("{name} = {value} ({})", layer.name()))
        .collect();
    tracing::info!(target: "huntsman::settings", profile = config.profile.name(), "settings: {}", changed.join(", "));
}

//! The settings of a program: profile, settings file, environment and flags, in layers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use huntsman_crawler::terminal::escape;
use huntsman_crawler::{
    Error, Layer, Layers, Profile, Result, SettingInfo, Settings, SettingsTable, nearest,
};
use serde_json::{Map, Value};

use crate::Defaults;

/// The settings file that is read from the working directory if no other is named.
const FILE: &str = "huntsman.toml";

const PREFIX: &str = "HUNTSMAN_";

/// Environment variables that have the prefix but are not settings.
const NOT_SETTINGS: [&str; 1] = ["token"];

/// Values by the names of settings.
type Values = Vec<(&'static str, Value)>;

/// Where the settings of a program come from, besides its own defaults and flags.
#[derive(Clone, Debug)]
pub struct ConfigSources {
    /// Name of the profile; without it, that of the variable `HUNTSMAN_PROFILE`, of the settings file, or `polite`.
    pub profile: Option<String>,
    /// Settings file in TOML; without it, `huntsman.toml` in the working directory if there is one. Its top-level keys are settings, and
    /// `profile`.
    pub file: Option<PathBuf>,
    /// Settings of the spider that is run. They take precedence over the settings file.
    pub spider: Vec<(&'static str, Value)>,
    /// The crawl of a program that is configured by its settings file, if there is one.
    pub crawl: Option<CrawlSources>,
    /// Pairs such as `retry_times=3`, as the flag `--set` of the command takes them.
    pub set: Vec<String>,
    /// Called with the name of each variable that begins with `HUNTSMAN_` and looks like no setting; such variables are ignored.
    pub on_ignored: fn(&str),
}

/// What a settings file finds in a program with several spiders.
#[derive(Clone, Debug)]
pub struct CrawlSources {
    /// The spider that is run: the table `spiders.NAME` of the settings file is for it alone, and takes precedence over the rest of the file.
    pub spider: String,
    /// All settings that its crawl has ([`CrawlerBuilder::settings_table`](huntsman_crawler::CrawlerBuilder::settings_table)).
    pub table: SettingsTable,
    /// What the program and the spider set
    /// ([`CrawlerBuilder::as_defaults`](huntsman_crawler::CrawlerBuilder::as_defaults), `given_layers`).
    pub layers: Layers,
}

impl Default for ConfigSources {
    fn default() -> Self {
        Self {
            profile: None,
            file: None,
            spider: Vec::new(),
            crawl: None,
            set: Vec::new(),
            on_ignored: |_| {},
        }
    }
}

/// The settings that a program runs with, and where they come from.
#[derive(Debug)]
pub struct Config {
    /// The profile in use.
    pub profile: Profile,
    /// The table of all settings that exist.
    pub table: SettingsTable,
    /// The values of each source.
    pub layers: Layers,
    /// The resolved settings: of each setting, the value of the layer with the highest priority.
    pub settings: Settings,
    /// The settings file that was read.
    pub file: Option<PathBuf>,
    /// The names of the spiders that the settings file has a table for.
    pub spiders: Vec<String>,
}

impl Config {
    /// Reads all sources. A later one takes precedence: the profile, `defaults` of the program, the settings file, the spider, variables of the
    /// environment (`HUNTSMAN_` and the setting in upper case), `flags` of the program, and [`ConfigSources::set`], which names the setting
    /// itself.
    ///
    /// In the settings file, a table `settings` is the same as the keys at its top. Tables `spiders.NAME` are for the spiders of a program
    /// ([`ConfigSources::crawl`]); without one they are not looked at.
    ///
    /// # Errors
    /// A source cannot be read, a setting does not exist or has a wrong value (the message names the source and the nearest name), or the
    /// profile `broad` has no contact in its User-Agent.
    pub fn load(sources: impl Into<ConfigSources>, defaults: Values, flags: Values) -> Result<Self> {
        let environment = std::env::vars_os().filter_map(|(name, value)| {
            let name = name.into_string().ok()?.strip_prefix(PREFIX)?.to_ascii_lowercase();
            Some((name, value.to_string_lossy().into_owned()))
        });
        Self::from_sources(&sources.into(), defaults, flags, environment.collect())
    }

    fn from_sources(
        sources: &ConfigSources,
        defaults: Values,
        flags: Values,
        mut environment: Vec<(String, String)>,
    ) -> Result<Self> {
        environment.retain(|(name, _)| !NOT_SETTINGS.contains(&name.as_str()));
        environment.sort();
        let file = file_of(sources.file.as_deref());
        let in_file = |error: Error| error.context(shown(&file));
        let FileValues { mut project, spiders } = match &file {
            Some(path) => FileValues::of(read(path)?).map_err(in_file)?,
            None => FileValues::default(),
        };
        let names = spiders.keys().cloned().collect();
        let own = sources.crawl.as_ref().and_then(|crawl| spiders.get(&crawl.spider)).cloned();
        let mut own = own.unwrap_or_default();
        let profile_in_file = match own.remove("profile").or(project.remove("profile")) {
            Some(Value::String(name)) => Some(name),
            Some(other) => {
                return Err(Error::usage(format!("{}: profile = {other}: use a name", shown(&file))));
            }
            None => None,
        };
        let profile_in_environment =
            environment.iter().find(|(name, _)| name == "profile").map(|(_, value)| value.clone());
        let profile: Profile = match sources.profile.clone().or(profile_in_environment).or(profile_in_file) {
            Some(name) => name.parse()?,
            None => sources.crawl.as_ref().map_or(Profile::default(), |crawl| crawl.layers.profile()),
        };

        let (table, mut layers) = match &sources.crawl {
            Some(crawl) => (crawl.table.clone(), crawl.layers.clone()),
            None => (Defaults::settings_table(), Layers::default()),
        };
        layers.set_profile(profile);
        for (name, value) in defaults {
            layers.set(Layer::Command, name, value);
        }
        for (name, value) in project.into_iter().chain(own) {
            let name = name.to_ascii_lowercase();
            table.check(&name, &value).map_err(in_file)?;
            layers.set(Layer::Project, &name, value);
        }
        for (name, value) in &sources.spider {
            layers.set(Layer::Spider, name, value.clone());
        }
        for (name, value) in environment.iter().filter(|(name, _)| name != "profile") {
            if !set_from_environment(&table, &mut layers, name, value)? {
                (sources.on_ignored)(&format!("{PREFIX}{}", name.to_ascii_uppercase()));
            }
        }
        for (name, value) in flags {
            layers.set(Layer::CommandLine, name, value);
        }
        for pair in &sources.set {
            let Some((name, value)) = pair.split_once('=') else {
                return Err(Error::usage(format!(
                    "--set {pair}: use KEY=VALUE, such as --set retry_times=3"
                )));
            };
            let name = name.trim().to_ascii_lowercase();
            let value = table.parse(&name, value).map_err(|error| error.context(format!("--set {name}")))?;
            layers.set(Layer::CommandLine, &name, value);
        }
        let settings = layers.resolve(&table)?;
        require_contact(profile, &settings)?;
        Ok(Self { profile, table, layers, settings, file, spiders: names })
    }

    /// Settings that differ from the defaults, with the layer that decided; secrets are masked.
    pub fn changed(&self) -> Vec<(&'static str, Value, Layer)> {
        let differs = |info: &&SettingInfo| self.settings.get(info.name) != Some((info.default)());
        self.table
            .iter()
            .filter(differs)
            .filter_map(|info| {
                let (layer, _) = self.layers.explain(info.name, &self.table).pop()?;
                Some((info.name, info.shown(self.settings.get(info.name)?), layer))
            })
            .collect()
    }
}

/// The values of a settings file: those for all crawls, and those for single spiders.
#[derive(Default)]
struct FileValues {
    project: Map<String, Value>,
    spiders: BTreeMap<String, Map<String, Value>>,
}

impl FileValues {
    fn of(mut project: Map<String, Value>) -> Result<Self> {
        // These tables are another way to write the settings whose names begin with theirs.
        for table in ["audit", "links"] {
            match project.remove(table) {
                None => {}
                Some(Value::Object(values)) => {
                    project
                        .extend(values.into_iter().map(|(name, value)| (format!("{table}_{name}"), value)));
                }
                Some(other) => {
                    return Err(Error::usage(format!(
                        "{table} = {other}: use a table of settings, [{table}]"
                    )));
                }
            }
        }
        let mut spiders = BTreeMap::new();
        match project.remove("spiders") {
            None => {}
            Some(Value::Object(tables)) => {
                for (name, values) in tables {
                    let Value::Object(values) = values else {
                        return Err(Error::usage(format!(
                            "spiders.{name} = {values}: use a table of settings, [spiders.{name}]"
                        )));
                    };
                    spiders.insert(name, values);
                }
            }
            Some(other) => {
                return Err(Error::usage(format!("spiders = {other}: use tables such as [spiders.NAME]")));
            }
        }
        match project.remove("settings") {
            None => {}
            Some(Value::Object(settings)) => {
                for (name, value) in settings {
                    if project.contains_key(&name) {
                        return Err(Error::usage(format!(
                            "{name} stands both at the top and in [settings]; remove one of them"
                        )));
                    }
                    project.insert(name, value);
                }
            }
            Some(other) => return Err(Error::usage(format!("settings = {other}: use a table, [settings]"))),
        }
        Ok(Self { project, spiders })
    }
}

fn shown(file: &Option<PathBuf>) -> String {
    file.as_deref().map_or_else(String::new, |path| escape(&path.to_string_lossy()).into_owned())
}

fn file_of(given: Option<&Path>) -> Option<PathBuf> {
    let there = || Some(PathBuf::from(FILE)).filter(|path| path.is_file());
    given.map(Path::to_owned).or_else(there)
}

/// The settings file as JSON values: its top-level keys are settings, and `profile`.
fn read(path: &Path) -> Result<Map<String, Value>> {
    let shown = escape(&path.to_string_lossy()).into_owned();
    let text = std::fs::read_to_string(path)
        .map_err(|error| Error::usage(format!("reading the settings file {shown}: {error}")))?;
    toml::from_str(&text)
        .map_err(|error| Error::usage(format!("settings file {shown}: {}", error.to_string().trim_end())))
}

/// Sets the value of a variable. A misspelt setting is an error; a variable that does not look like a setting belongs to another program,
/// and the result is false.
fn set_from_environment(table: &SettingsTable, layers: &mut Layers, name: &str, value: &str) -> Result<bool> {
    let known = || table.iter().map(|info| info.name);
    if !known().any(|setting| setting == name) && nearest(name, known()).is_none() {
        return Ok(false);
    }
    let in_environment =
        |error: Error| error.context(format!("environment {PREFIX}{}", name.to_ascii_uppercase()));
    layers.set(Layer::Environment, name, table.parse(name, value).map_err(in_environment)?);
    Ok(true)
}

/// A broad crawl must name a contact address.
fn require_contact(profile: Profile, settings: &Settings) -> Result<()> {
    let agent = &settings.user_agent;
    let has_contact = (agent.contains("http://") || agent.contains("https://") || agent.contains('@'))
        && !agent.contains("huntsman.invalid");
    if profile == Profile::Broad && !has_contact {
        return Err(Error::usage(
            "the profile broad needs a contact in the User-Agent: \
             --set user_agent=\"mybot/1.0 (+https://example.org/bot)\"",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn load(sources: &ConfigSources, flags: Values, environment: &[(&str, &str)]) -> Result<Config> {
        let environment = environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Config::from_sources(sources, vec![("max_parked_wait", json!(30.0))], flags, environment.collect())
    }

    fn message(result: Result<Config>) -> String {
        result.unwrap_err().to_string()
    }

    fn of_profile(name: &str) -> ConfigSources {
        ConfigSources { profile: Some(name.to_owned()), ..ConfigSources::default() }
    }

    fn of_file(path: PathBuf) -> ConfigSources {
        ConfigSources { file: Some(path), ..ConfigSources::default() }
    }

    fn of_set(pair: &str) -> ConfigSources {
        ConfigSources { set: vec![pair.to_owned()], ..ConfigSources::default() }
    }

    #[test]
    fn command_line_wins_over_environment_over_file_over_profile() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("h.toml");
        std::fs::write(
            &path,
            "profile = \"test\"\ndownload_delay = 2.5\nretry_times = 7\nmax_parked_wait = 9\n",
        )
        .unwrap();
        let environment = [("retry_times", "4"), ("depth_limit", "3")];
        let config = load(&of_file(path), vec![("depth_limit", json!(1))], &environment).unwrap();
        assert_eq!(config.profile, Profile::Test);
        let settings = config.settings;
        assert_eq!(settings.get("robotstxt_obey"), Some(json!(false)), "from the profile");
        assert_eq!(settings.download_delay, 2.5, "from the file");
        assert_eq!(settings.max_parked_wait, 9.0, "the file wins over the command");
        assert_eq!(settings.get("retry_times"), Some(json!(4)), "from the environment");
        assert_eq!(settings.get("depth_limit"), Some(json!(1)), "from the command line");
    }

    #[test]
    fn the_spider_wins_over_the_file_and_yields_to_environment_and_flags() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("h.toml");
        std::fs::write(&path, "download_delay = 2.5\nretry_times = 7\ndepth_limit = 9\n").unwrap();
        let spider = vec![("download_delay", json!(1)), ("retry_times", json!(3)), ("depth_limit", json!(4))];
        let sources = ConfigSources { spider, ..of_file(path) };
        let config = load(&sources, vec![("depth_limit", json!(2))], &[("retry_times", "5")]).unwrap();
        let number = |name| config.settings.get(name).and_then(|value: Value| value.as_f64());
        assert_eq!(
            (number("download_delay"), number("retry_times"), number("depth_limit")),
            (Some(1.0), Some(5.0), Some(2.0))
        );
    }

    #[test]
    fn the_table_of_a_spider_wins_over_the_rest_of_the_file_and_the_file_over_the_spider() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("h.toml");
        let text = "profile = \"audit\"\n[settings]\nretry_times = 7\ndepth_limit = 8\n\
            [spiders.books]\nprofile = \"test\"\ndepth_limit = 9\n[spiders.other]\nno_such_setting = 1\n";
        std::fs::write(&path, text).unwrap();
        let mut layers = Layers::default();
        for (name, value) in [("retry_times", 1), ("depth_limit", 1), ("redirect_max_times", 1)] {
            layers.set(Layer::SpiderDefaults, name, value);
        }
        let crawl = |spider: &str| {
            let spider = spider.to_owned();
            CrawlSources { spider, table: Defaults::settings_table(), layers: layers.clone() }
        };
        let of = |spider: &str| {
            let sources = ConfigSources { crawl: Some(crawl(spider)), ..of_file(path.clone()) };
            load(&sources, vec![], &[]).unwrap()
        };
        let numbers = |config: &Config| {
            ["retry_times", "depth_limit", "redirect_max_times"]
                .map(|name| config.settings.get(name).unwrap())
        };
        let books = of("books");
        assert_eq!((books.profile, numbers(&books)), (Profile::Test, [json!(7), json!(9), json!(1)]));
        let prices = of("prices");
        assert_eq!((prices.profile, numbers(&prices)), (Profile::Audit, [json!(7), json!(8), json!(1)]));
        assert_eq!(prices.spiders, ["books", "other"], "the program knows whether there are such spiders");
    }

    #[test]
    fn the_profile_flag_wins_over_the_file_and_the_environment() {
        assert_eq!(
            load(&of_profile("audit"), vec![], &[("profile", "test")]).unwrap().profile,
            Profile::Audit
        );
        assert_eq!(
            load(&ConfigSources::default(), vec![], &[("profile", "test")]).unwrap().profile,
            Profile::Test
        );
    }

    #[test]
    fn misspelt_settings_name_the_nearest_wherever_they_stand() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("h.toml");
        std::fs::write(&path, "retry_tmies = 3\n").unwrap();
        let in_file = message(load(&of_file(path), vec![], &[]));
        assert!(in_file.contains("h.toml") && in_file.contains("retry_times"), "{in_file}");
        let in_environment = message(load(&ConfigSources::default(), vec![], &[("donwload_delay", "1")]));
        assert!(in_environment.contains("HUNTSMAN_DONWLOAD_DELAY"), "{in_environment}");
        assert!(in_environment.contains("download_delay"), "{in_environment}");
        let in_flag = message(load(&of_set("coockies_enabled=false"), vec![], &[]));
        assert!(in_flag.contains("cookies_enabled"), "{in_flag}");
    }

    #[test]
    fn a_foreign_variable_is_no_error() {
        assert!(load(&ConfigSources::default(), vec![], &[("oracles", "/somewhere")]).is_ok());
    }

    #[test]
    fn set_needs_an_equals_sign() {
        assert!(message(load(&of_set("retry_times"), vec![], &[])).contains("KEY=VALUE"));
    }

    #[test]
    fn broad_crawls_need_a_contact() {
        let mut sources = of_profile("broad");
        assert!(message(load(&sources, vec![], &[])).contains("contact"));
        sources.set = vec!["user_agent=bot/1 (+https://bot.example/)".into()];
        assert!(load(&sources, vec![], &[]).is_ok());
    }

    #[test]
    fn changed_values_are_listed_and_secrets_are_not_shown() {
        let flags = vec![("http_auth", json!(["https://a.example=user:password"]))];
        let changed = load(&ConfigSources::default(), flags, &[]).unwrap().changed();
        let auth = changed.iter().find(|(name, ..)| *name == "http_auth").unwrap();
        assert_eq!((&auth.1, auth.2), (&json!("***"), Layer::CommandLine));
        assert!(!format!("{changed:?}").contains("password"));
        assert!(
            changed.iter().any(|(name, _, layer)| *name == "max_parked_wait" && *layer == Layer::Command)
        );
    }
}

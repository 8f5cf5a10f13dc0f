//! The command `settings`: lists the settings of a crawl and where each value comes from.

use std::fmt::Write as _;

use clap::Args;
use huntsman_crawler::{ComponentInfo, Crawler, Layer, SettingInfo, nearest};
use serde_json::{Map, Value, json};

use super::Config;
use super::exit::{Failure, Outcome};
use super::render::{Style, Table, escape};

/// Flags of a command that lists settings.
#[derive(Debug, Args)]
pub struct ListingArgs {
    /// Prints the value of one setting.
    #[arg(long, value_name = "NAME")]
    pub get: Option<String>,

    /// Shows which layers set each value; the last one wins.
    #[arg(long)]
    pub explain: bool,

    /// Lists the middlewares in their order instead.
    #[arg(long, conflicts_with_all = ["get", "explain"])]
    pub components: bool,

    /// Prints JSON.
    #[arg(long)]
    pub json: bool,
}

/// What the flags ask for, as text. `crawler` makes a crawl with these settings, whose components are listed.
///
/// # Errors
/// There is no such setting, or the crawl cannot be built.
pub fn listing(
    config: &Config,
    args: &ListingArgs,
    crawler: impl FnOnce() -> Outcome<Crawler>,
) -> Outcome<String> {
    match &args.get {
        None if args.components => Ok(components(&crawler()?, args.json)),
        Some(name) => one(config, &name.to_ascii_lowercase(), args),
        None if args.json => all_json(config, args.explain),
        None => Ok(all(config, args.explain)),
    }
}

/// The middlewares that a crawl with these settings has, in their order.
fn components(crawler: &Crawler, as_json: bool) -> String {
    let (downloader, spider) = crawler.components();
    if as_json {
        let rows = |infos: &[ComponentInfo]| -> Value {
            infos.iter().map(|info| json!({"name": info.name, "order": info.order})).collect()
        };
        return format!("{}\n", json!({"downloader": rows(downloader), "spider": rows(spider)}));
    }
    let rows = |infos: &[ComponentInfo]| {
        let mut table = Table::right(&[0]);
        for info in infos {
            table.row([info.order.map_or("off".to_owned(), |order| order.to_string()), info.name.to_owned()]);
        }
        table.lines("  ")
    };
    format!(
        "downloader middlewares: requests from top to bottom, answers from bottom to top\n{}\
         spider middlewares: pages from top to bottom, requests from bottom to top\n{}",
        rows(downloader),
        rows(spider)
    )
}

/// The name of a layer, with the file, variable or flag behind it in this run.
fn source(config: &Config, layer: Layer) -> String {
    match (layer, &config.file) {
        (Layer::Profile, _) => format!("profile {}", config.profile.name()),
        (Layer::Command, _) => "command crawl".to_owned(),
        (Layer::Project, Some(path)) => format!("settings file {}", path.display()),
        (layer, _) => layer.name().to_owned(),
    }
}

fn layers_json(config: &Config, name: &str) -> Value {
    let layers = config.layers.explain(name, &config.table).into_iter();
    layers
        .map(|(layer, value)| json!({"source": source(config, layer), "value": config.table.shown(name, value)}))
        .collect()
}

fn value_of(config: &Config, name: &str) -> Value {
    config.table.shown(name, config.settings.get(name).unwrap_or_default())
}

fn one(config: &Config, name: &str, args: &ListingArgs) -> Outcome<String> {
    if !config.table.iter().any(|info| info.name == name) {
        let known = config.table.iter().map(|info| info.name);
        let hint = nearest(name, known).map_or(String::new(), |near| format!("; did you mean {near}?"));
        return Err(Failure::usage(format!("unknown setting {}{hint}", escape(name))));
    }
    let value = value_of(config, name);
    if args.json {
        let mut out = json!({"name": name, "value": value});
        if args.explain {
            out["layers"] = layers_json(config, name);
        }
        return Ok(format!("{out}\n"));
    }
    if !args.explain {
        // Strings are printed without quotes, so that a script can use them.
        return Ok(match value {
            Value::String(text) => format!("{}\n", escape(&text)),
            other => format!("{other}\n"),
        });
    }
    let mut table = Table::default();
    for (layer, value) in config.layers.explain(name, &config.table) {
        table.row([source(config, layer), config.table.shown(name, value).to_string()]);
    }
    Ok(format!("{name} = {}\n{}", escape(&value.to_string()), table.lines("  ")))
}

fn all_json(config: &Config, explain: bool) -> Outcome<String> {
    let mut out = Map::new();
    for info in config.table.iter() {
        let value = value_of(config, info.name);
        let entry =
            if explain { json!({"value": value, "layers": layers_json(config, info.name)}) } else { value };
        out.insert(info.name.to_owned(), entry);
    }
    Ok(serde_json::to_string_pretty(&out)? + "\n")
}

fn all(config: &Config, explain: bool) -> String {
    let style = Style::stdout();
    let mut out = format!("# profile {}\n", config.profile.name());
    for info in config.table.iter() {
        out.push('\n');
        out.push_str(&entry(config, info, style, explain));
    }
    out
}

/// One setting as it could stand in a settings file: its documentation as comments, then the value.
fn entry(config: &Config, info: &SettingInfo, style: Style, explain: bool) -> String {
    let mut out = String::new();
    for line in wrap(&info.doc(), 96) {
        let _ = writeln!(out, "{}", style.dim(&format!("# {line}")));
    }
    let layers = config.layers.explain(info.name, &config.table);
    let value = value_of(config, info.name);
    let text = match &value {
        Value::Null => format!("# {} is not set", info.name),
        value => format!("{} = {}", info.name, toml_value(value)),
    };
    match layers.last() {
        Some((layer, _)) if *layer != Layer::Default => {
            let _ = write!(out, "{}  # {}", style.bold(&escape(&text)), source(config, *layer));
            if let Some((_, default)) = layers.first() {
                let _ = write!(out, "; default {}", config.table.shown(info.name, default.clone()));
            }
            out.push('\n');
        }
        _ => {
            let _ = writeln!(out, "{}", escape(&text));
        }
    }
    if explain {
        for (layer, value) in layers {
            let _ = writeln!(out, "#   {}: {}", source(config, layer), config.table.shown(info.name, value));
        }
    }
    out
}

/// A JSON value as TOML: the formats differ in tables and in how they write missing values.
pub fn toml_value(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let pairs: Vec<String> =
                map.iter().map(|(key, value)| format!("{} = {}", json!(key), toml_value(value))).collect();
            if pairs.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", pairs.join(", ")) }
        }
        Value::Array(values) => format!("[{}]", values.iter().map(toml_value).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}

fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is always a line");
        if line.is_empty() {
            line.push_str(word);
        } else if line.len() + 1 + word.len() <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::flags::SettingsArgs;
    use super::*;

    #[test]
    fn the_printed_table_is_a_settings_file() {
        let config = Config::load(&SettingsArgs::default(), Vec::new(), Vec::new()).unwrap();
        let printed = all(&config, true);
        let read: Map<String, Value> = toml::from_str(&printed).unwrap();
        for (name, value) in &read {
            let default = config.table.get(name).map(|info| (info.default)());
            assert_eq!(Some(value), default.as_ref(), "{name}");
        }
        assert!(read.len() > 100);
    }

    #[test]
    fn long_documentation_is_wrapped_between_words() {
        assert_eq!(wrap("aa bb cc dd", 5), ["aa bb", "cc dd"]);
    }
}

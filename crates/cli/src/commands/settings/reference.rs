//! `huntsman settings --markdown`: the page of the guide that lists all settings and all built-in components.

use std::fmt::{self, Write as _};

use huntsman::{ComponentInfo, GroupInfo, Profile, SettingInfo, Start};
use serde_json::Value;

use crate::command::settings::toml_value;
use crate::spider::SiteSpider;

const INTRODUCTION: &str = "\
<!-- Generated. After a change of settings or components: cargo run -- settings --markdown > docs/guide/settings-reference.md -->

# Settings reference

All components and settings of a crawl with the built-in components, as `huntsman settings --markdown` prints them. [Settings](settings.md) says where values are
set. The defaults are those of the profile `polite`; the last column names the profiles in which the value differs. Times are in seconds and
sizes in bytes, unless a line says otherwise.
";

const COMPONENTS: &str = "
## Components

Requests pass the downloader side from low to high order, and responses pass it from high to low. Pages pass the spider side from low to high order, and the
requests that they give pass it from high to low. The settings `downloader_middlewares` and `spider_middlewares` give a component another order, or switch it off.
";

const SETTINGS: &str = "
## Settings
";

/// The page as Markdown.
pub(super) fn page() -> String {
    let builder = huntsman::crawl(SiteSpider::new(Start::none(), false, false));
    let groups = builder.settings_table().groups();
    let (downloader, spider) = builder.components();
    let mut page = format!("{INTRODUCTION}{COMPONENTS}");
    for (side, components) in [("downloader", downloader), ("spider", spider)] {
        chain(&mut page, side, &components, groups).expect("a String takes all text");
    }
    page.push_str(SETTINGS);
    for group in groups {
        section(&mut page, group).expect("a String takes all text");
    }
    page
}

/// The components of one side in their order. The names of those that have settings are links to them.
fn chain(page: &mut String, side: &str, components: &[ComponentInfo], groups: &[GroupInfo]) -> fmt::Result {
    write!(page, "\n| order | {side} side |\n| ---: | --- |\n")?;
    for ComponentInfo { name, order } in components {
        let order = order.map_or(String::new(), |order| order.to_string());
        match groups.iter().any(|group| group.component == Some(name)) {
            true => writeln!(page, "| {order} | [`{name}`](#{name}) |")?,
            false => writeln!(page, "| {order} | `{name}` |")?,
        }
    }
    Ok(())
}

/// One group of settings.
fn section(page: &mut String, group: &GroupInfo) -> fmt::Result {
    let heading = group.component.unwrap_or_else(|| group.name.trim_end_matches("Settings"));
    writeln!(page, "\n### {heading}\n")?;
    match group.name {
        "EngineSettings" => {
            writeln!(page, "In a program: fields of `Settings`, such as `settings.download_delay`.\n")?
        }
        name => writeln!(page, "In a program: `settings.of::<{name}>()?`.\n")?,
    }
    writeln!(
        page,
        "| setting | type | default | what it does | in profiles |\n| --- | --- | --- | --- | --- |"
    )?;
    for info in group.settings {
        let secret = if info.is_secret() { " Secret: it is never shown." } else { "" };
        let SettingInfo { name, kind, .. } = info;
        let default = code(info, (info.default)());
        writeln!(
            page,
            "| `{name}` | `{kind}` | {default} | {}{secret} | {} |",
            cell(&info.doc()),
            profiles(info)
        )?;
    }
    Ok(())
}

/// The values in profiles that differ from the default.
fn profiles(info: &SettingInfo) -> String {
    let differing = |profile: Profile| {
        let value = (info.in_profile)(profile).filter(|value| *value != (info.default)())?;
        Some(format!("{}: {}", profile.name(), code(info, value)))
    };
    Profile::ALL.into_iter().filter_map(differing).collect::<Vec<_>>().join(", ")
}

/// A value as it is written in a settings file.
fn code(info: &SettingInfo, value: Value) -> String {
    match info.shown(value) {
        Value::Null => "not set".to_owned(),
        value => format!("`{}`", cell(&toml_value(&value))),
    }
}

/// Text in a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_page_of_the_guide_lists_what_is_registered() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/settings-reference.md");
        let written = std::fs::read_to_string(path).unwrap_or_default();
        let command = "cargo run -- settings --markdown > docs/guide/settings-reference.md";
        assert!(written == page(), "docs/guide/settings-reference.md is out of date; run: {command}");
    }

    #[test]
    fn the_reference_has_each_setting_and_each_component_with_its_order() {
        let page = page();
        for info in huntsman::middleware::Defaults::settings_table().iter() {
            assert!(page.contains(&format!("| `{}` | `{}` |", info.name, info.kind)), "{}", info.name);
        }
        assert!(page.contains("| 700 | [`cookies`](#cookies) |"));
        assert!(page.contains("| `download_delay` | `f64` | `1.0` | "));
        assert!(page.contains("| audit: `0.0`, test: `0.0` |"));
        assert!(
            page.contains(
                "| `httpauth_pass` | `String` | `\"\"` | Password for Basic authentication. Secret"
            )
        );
    }
}

//! Finds the references of a text: HTML, Markdown, or plain text.

use huntsman_html::{Scan, ScanOptions};
use linkify::{LinkFinder, LinkKind};
use pulldown_cmark::{Event, LinkType, Options, Parser, Tag, TagEnd};

use super::reference::{Base, Reference};
use crate::page::{collapsed, resource_kind};
use crate::place::Lines;

/// Maximum number of characters of the text of a link that are kept.
const MAX_TEXT: usize = 200;

/// How a text is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Html,
    Markdown,
    Plain,
}

impl Format {
    /// The format of a file, by the ending of its name; `None` if the ending is not among those with links.
    pub(crate) fn of_name(name: &str) -> Option<Self> {
        let (_, ending) = name.rsplit_once('.')?;
        Some(match ending.to_ascii_lowercase().as_str() {
            "html" | "htm" | "xhtml" => Self::Html,
            "md" | "markdown" | "mdx" | "mkd" => Self::Markdown,
            "txt" | "text" | "rst" | "adoc" => Self::Plain,
            _ => return None,
        })
    }
}

/// The references of a text, in the order in which they stand.
pub(crate) fn references(source: &str, text: &str, format: Format, base: Base) -> Vec<Reference> {
    let mut found = Found { lines: Lines::new(text), base, source, references: Vec::new() };
    match format {
        Format::Html => found.html(text, 0),
        Format::Markdown => found.markdown(text),
        Format::Plain => found.plain(text, 0),
    }
    found.references.sort_by_key(|reference| (reference.line, reference.column));
    found.references
}

struct Found<'a> {
    lines: Lines<'a>,
    base: Base,
    source: &'a str,
    references: Vec<Reference>,
}

impl Found<'_> {
    fn add(&mut self, offset: usize, href: &str, text: &str) {
        let (line, column) = self.lines.position(u32::try_from(offset).unwrap_or(u32::MAX));
        self.references.push(Reference {
            source: self.source.to_owned(),
            line,
            column,
            href: href.trim().to_owned(),
            text: collapsed(text).chars().take(MAX_TEXT).collect(),
            target: self.base.resolve(href),
        });
    }

    /// The references of HTML that begins at an offset of the text.
    fn html(&mut self, html: &str, begin: usize) {
        let scan = Scan::of(
            html,
            &ScanOptions { resources: true, text: false, audit: true, ..ScanOptions::default() },
        );
        self.base = self.base.clone().changed(scan.base_href(html));
        // The `<` stands right before the name of the tag, whose offset is given.
        let at = |offset: u32| begin + (offset as usize).saturating_sub(1);
        let names = scan.facts().map(|facts| facts.links.as_slice()).unwrap_or_default();
        for (number, link) in scan.links(html).enumerate() {
            let name = names.get(number).map_or(link.text, |fact| &fact.name);
            self.add(at(link.offset), link.href, name);
        }
        for resource in scan.resources(html).filter(|resource| resource_kind(resource.kind).is_some()) {
            self.add(at(resource.offset), resource.url, "");
        }
        for link in scan.link_elements(html) {
            // Other elements name hosts to connect to, or patterns.
            let is_loaded = ["stylesheet", "icon", "manifest", "alternate", "next", "prev", "license"];
            if let Some(href) = link.href.filter(|_| is_loaded.iter().any(|rel| link.has_rel(rel))) {
                self.add(at(link.offset), href, "");
            }
        }
    }

    fn markdown(&mut self, text: &str) {
        // Links and images that are open, with their text so far.
        let mut open: Vec<(usize, String, String)> = Vec::new();
        // Code and the data before the text are no text.
        let mut is_code = false;
        for (event, range) in Parser::new_ext(text, markdown_options()).into_offset_iter() {
            match event {
                Event::Start(Tag::Link { dest_url, link_type, .. }) => {
                    let href = if link_type == LinkType::Email {
                        format!("mailto:{dest_url}")
                    } else {
                        dest_url.to_string()
                    };
                    open.push((range.start, href, String::new()));
                }
                Event::Start(Tag::Image { dest_url, .. }) => {
                    open.push((range.start, dest_url.to_string(), String::new()));
                }
                Event::End(TagEnd::Link | TagEnd::Image) => {
                    if let Some((offset, href, name)) = open.pop() {
                        self.add(offset, &href, &name);
                    }
                }
                Event::Start(Tag::CodeBlock(_) | Tag::MetadataBlock(_)) => is_code = true,
                Event::End(TagEnd::CodeBlock | TagEnd::MetadataBlock(_)) => is_code = false,
                Event::Code(code) => open.iter_mut().for_each(|(_, _, name)| name.push_str(&code)),
                Event::Text(_) if open.is_empty() && !is_code => {
                    self.plain(&text[range.clone()], range.start)
                }
                Event::Text(words) => open.iter_mut().for_each(|(_, _, name)| name.push_str(&words)),
                Event::Html(html) | Event::InlineHtml(html) => self.html(&html, range.start),
                _ => {}
            }
        }
    }

    /// The URLs and e-mail addresses that stand in plain text.
    fn plain(&mut self, text: &str, begin: usize) {
        for link in LinkFinder::new().links(text) {
            match link.kind() {
                LinkKind::Url => self.add(begin + link.start(), link.as_str(), ""),
                LinkKind::Email => self.add(begin + link.start(), &format!("mailto:{}", link.as_str()), ""),
                _ => {}
            }
        }
    }
}

/// The names to which fragments of a text may lead.
pub(crate) fn anchors(text: &str, format: Format) -> Vec<String> {
    match format {
        Format::Html => of_html(text),
        Format::Markdown => of_markdown(text),
        Format::Plain => Vec::new(),
    }
}

/// The ids and names of HTML.
pub(crate) fn of_html(html: &str) -> Vec<String> {
    let scan = Scan::of(html, &ScanOptions { text: false, audit: true, ..ScanOptions::default() });
    let Some(facts) = scan.facts() else { return Vec::new() };
    facts.ids.iter().chain(&facts.names).map(|fact| fact.text.clone()).collect()
}

/// The anchors of Markdown: those that are written, and those that GitHub, GitLab and mdBook derive from headings.
fn of_markdown(text: &str) -> Vec<String> {
    let mut anchors = Vec::new();
    let mut derived: std::collections::HashMap<String, usize> = std::collections::HashMap::new();
    let mut heading: Option<String> = None;
    for event in Parser::new_ext(text, markdown_options()) {
        match event {
            Event::Start(Tag::Heading { id, .. }) => {
                anchors.extend(id.map(|id| id.to_string()));
                heading = Some(String::new());
            }
            Event::End(TagEnd::Heading(_)) => {
                let slug = slug(&heading.take().unwrap_or_default());
                let earlier = derived.entry(slug.clone()).or_default();
                anchors.push(if *earlier == 0 { slug } else { format!("{slug}-{earlier}") });
                *earlier += 1;
            }
            Event::Text(words) | Event::Code(words) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&words);
                }
            }
            Event::Html(html) | Event::InlineHtml(html) => anchors.extend(of_html(&html)),
            _ => {}
        }
    }
    anchors
}

/// The anchor of a heading: lower case, without punctuation, with a hyphen for each blank.
fn slug(heading: &str) -> String {
    let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

pub(crate) fn markdown_options() -> Options {
    Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_HEADING_ATTRIBUTES
        | Options::ENABLE_YAML_STYLE_METADATA_BLOCKS
        | Options::ENABLE_PLUSES_DELIMITED_METADATA_BLOCKS
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn found(text: &str, format: Format) -> Vec<(u32, u32, String, String)> {
        let base = Base::File { file: PathBuf::from("a.md"), root: None };
        let references = references("a.md", text, format, base);
        references.into_iter().map(|found| (found.line, found.column, found.href, found.text)).collect()
    }

    fn row(line: u32, column: u32, href: &str, text: &str) -> (u32, u32, String, String) {
        (line, column, href.to_owned(), text.to_owned())
    }

    #[test]
    fn markdown_has_links_images_references_html_and_bare_urls() {
        let text = "---\nsite: https://front.example/\n---\n# T\n\nSee [the *guide* `a`](guide.md \"Guide\"), ![logo](img/l.png),\n\
            <https://auto.example/>, [by name][n], https://bare.example/x(y).\n\n<a href=\"h.html\">H</a>, ann@a.example\n\n\
            ```\nhttps://code.example/\n```\n\n`https://inline.example`\n\n[n]: https://named.example/ \"N\"\n";
        assert_eq!(
            found(text, Format::Markdown),
            [
                row(6, 5, "guide.md", "the guide a"),
                row(6, 42, "img/l.png", "logo"),
                row(7, 1, "https://auto.example/", "https://auto.example/"),
                row(7, 26, "https://named.example/", "by name"),
                row(7, 40, "https://bare.example/x(y)", ""),
                row(9, 1, "h.html", ""),
                row(9, 25, "mailto:ann@a.example", ""),
            ]
        );
    }

    #[test]
    fn html_has_links_and_what_it_loads() {
        let text = "<link rel=stylesheet href=s.css><link rel=preconnect href='//x.example'>\n<a href=b.html>B <b>b</b></a><img src=i.png>\n<script src=j.js></script>";
        assert_eq!(
            found(text, Format::Html),
            [
                row(1, 1, "s.css", ""),
                row(2, 1, "b.html", "B b"),
                row(2, 30, "i.png", ""),
                row(3, 1, "j.js", "")
            ]
        );
    }

    #[test]
    fn plain_text_has_urls_and_addresses_without_the_punctuation_after_them() {
        assert_eq!(
            found("é (see https://a.example/x), or\nann@a.example.", Format::Plain),
            [row(1, 8, "https://a.example/x", ""), row(2, 1, "mailto:ann@a.example", "")]
        );
    }

    #[test]
    fn anchors_of_headings_are_those_that_hosts_of_code_make() {
        let text = "# What's `new`?\n## Same\n## Same\n### Über_uns & more {#about}\n<a name=old></a>\n";
        assert_eq!(
            anchors(text, Format::Markdown),
            ["whats-new", "same", "same-1", "about", "über_uns--more", "old"]
        );
    }
}

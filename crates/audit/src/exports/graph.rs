//! The graph of pages and links, and the map of redirects.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use huntsman_crawler::Result;
use serde_json::json;

use crate::audit::Audit;
use crate::code::PageClass;
use crate::record::{EdgeKind, Kind};
use crate::site::End;
use crate::tables::{table, written_text};
use crate::xml::escape;

/// A redirect and where it ends.
struct Redirect<'a> {
    from: &'a str,
    to: &'a str,
    status: Option<u16>,
    hops: usize,
}

impl Audit {
    /// Writes `graph.graphml` and `graph.dot` with the pages of the site and the links between them, and the redirects of the site as
    /// `redirects.csv`, `redirects.nginx.conf` (a map for `$request_uri`) and `redirects.htaccess` (for Apache's mod_alias).
    pub(super) fn write_graph(&self, directory: &Path) -> Result<()> {
        let pages: BTreeSet<&str> =
            self.site.pages(PageClass::Html).map(|record| record.url.as_str()).collect();
        let numbers: BTreeMap<&str, usize> =
            pages.iter().enumerate().map(|(number, url)| (*url, number)).collect();
        let mut edges: BTreeMap<(usize, usize), usize> = BTreeMap::new();
        for record in self.site.pages(PageClass::Html) {
            let targets = record.edges.iter().filter(|edge| edge.kind == EdgeKind::Link);
            for target in targets.filter_map(|edge| numbers.get(edge.to.as_str())) {
                *edges.entry((numbers[record.url.as_str()], *target)).or_default() += 1;
            }
        }
        written_text(&directory.join("graph.graphml"), &self.graphml(&pages, &edges))?;
        written_text(&directory.join("graph.dot"), &dot(&pages, &edges))?;
        let redirects = self.redirects();
        table(
            &directory.join("redirects.csv"),
            redirects.iter().map(|found| {
                json!({"from": found.from, "to": found.to, "status": found.status, "hops": found.hops})
            }),
        )?;
        written_text(&directory.join("redirects.nginx.conf"), &nginx(&redirects))?;
        written_text(&directory.join("redirects.htaccess"), &apache(&redirects))
    }

    fn graphml(&self, pages: &BTreeSet<&str>, edges: &BTreeMap<(usize, usize), usize>) -> String {
        let mut text = String::from(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n  \
             <key id=\"url\" for=\"node\" attr.name=\"url\" attr.type=\"string\"/>\n  \
             <key id=\"depth\" for=\"node\" attr.name=\"depth\" attr.type=\"int\"/>\n  \
             <key id=\"rank\" for=\"node\" attr.name=\"rank\" attr.type=\"double\"/>\n  \
             <key id=\"links\" for=\"edge\" attr.name=\"links\" attr.type=\"int\"/>\n  \
             <graph id=\"site\" edgedefault=\"directed\">\n",
        );
        for (number, url) in pages.iter().enumerate() {
            let _ = write!(text, "    <node id=\"n{number}\"><data key=\"url\">{}</data>", escape(url));
            if let Some(depth) = self.site.depth(url) {
                let _ = write!(text, "<data key=\"depth\">{depth}</data>");
            }
            if let Some(rank) = self.site.rank(url) {
                let _ = write!(text, "<data key=\"rank\">{rank:.3}</data>");
            }
            text.push_str("</node>\n");
        }
        for ((from, to), links) in edges {
            let _ = writeln!(
                text,
                "    <edge source=\"n{from}\" target=\"n{to}\"><data key=\"links\">{links}</data></edge>"
            );
        }
        text.push_str("  </graph>\n</graphml>\n");
        text
    }

    /// The redirects of the site that end at a page.
    fn redirects(&self) -> Vec<Redirect<'_>> {
        let own = self.site.records().filter(|record| record.kind == Kind::Page && record.redirect.is_some());
        let mut redirects: Vec<Redirect<'_>> = own
            .filter_map(|record| {
                let found = self.site.resolve(&record.url);
                match found.end {
                    End::At(end) if self.site.fault(end).is_none() => Some(Redirect {
                        from: &record.url,
                        to: &end.url,
                        status: record.status,
                        hops: found.hops.len(),
                    }),
                    _ => None,
                }
            })
            .collect();
        redirects.sort_by_key(|found| found.from);
        redirects
    }
}

fn dot(pages: &BTreeSet<&str>, edges: &BTreeMap<(usize, usize), usize>) -> String {
    let mut text = String::from("digraph site {\n  node [shape=box];\n");
    for (number, url) in pages.iter().enumerate() {
        let _ = writeln!(text, "  n{number} [label=\"{}\"];", quoted(url));
    }
    for ((from, to), links) in edges {
        let _ = writeln!(text, "  n{from} -> n{to} [weight={links}];");
    }
    text.push_str("}\n");
    text
}

/// A map for nginx: `map $request_uri $redirected { include redirects.nginx.conf; }`.
fn nginx(redirects: &[Redirect<'_>]) -> String {
    // A `$` would begin a variable, and cannot be escaped.
    let without_variables =
        redirects.iter().filter(|found| !found.from.contains('$') && !found.to.contains('$'));
    without_variables.fold(String::new(), |mut text, found| {
        let _ = writeln!(text, "\"{}\" \"{}\";", quoted(request_target(found.from)), quoted(found.to));
        text
    })
}

/// Rules of Apache's mod_alias, for URLs without a query, which it does not match.
fn apache(redirects: &[Redirect<'_>]) -> String {
    let without_query = redirects.iter().filter(|found| !found.from.contains('?'));
    without_query.fold(String::new(), |mut text, found| {
        let _ = writeln!(
            text,
            "Redirect 301 \"{}\" \"{}\"",
            quoted(request_target(found.from)),
            quoted(found.to)
        );
        text
    })
}

/// The path of a URL with its query.
fn request_target(url: &str) -> &str {
    let authority = url.find("://").map_or(0, |at| at + 3);
    url[authority..].find('/').map_or("/", |at| &url[authority + at..])
}

/// A text between double quotes of a configuration file.
fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

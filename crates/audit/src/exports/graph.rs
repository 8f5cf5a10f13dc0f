//! The graph of pages and links, for programs that draw and analyse graphs.

use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::path::Path;

use huntsman_crawler::Result;
use xxhash_rust::xxh3::xxh3_64;

use crate::audit::Audit;
use crate::record::EdgeKind;
use crate::tables::written;
use crate::xml::escape;

const HEAD: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n  \
     <key id=\"url\" for=\"node\" attr.name=\"url\" attr.type=\"string\"/>\n  \
     <key id=\"title\" for=\"node\" attr.name=\"title\" attr.type=\"string\"/>\n  \
     <key id=\"depth\" for=\"node\" attr.name=\"depth\" attr.type=\"int\"/>\n  \
     <key id=\"rank\" for=\"node\" attr.name=\"rank\" attr.type=\"double\"/>\n  \
     <key id=\"issues\" for=\"node\" attr.name=\"issues\" attr.type=\"int\"/>\n  \
     <key id=\"links\" for=\"edge\" attr.name=\"links\" attr.type=\"int\"/>\n  \
     <graph id=\"site\" edgedefault=\"directed\">\n";

impl Audit {
    /// Writes `graph.graphml` and `graph.dot`: the HTML pages of the site, and the links between them. Of each page it keeps a number.
    pub(super) fn write_graph(&self, directory: &Path) -> Result<()> {
        let mut numbers: HashMap<u64, u32> = HashMap::new();
        self.each_page(&mut |page| {
            if page.is_html() {
                let number = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
                numbers.insert(xxh3_64(page.url.as_bytes()), number);
            }
            Ok(())
        })?;
        written(&directory.join("graph.graphml"), |file| self.write_graphml(file, &numbers))?;
        written(&directory.join("graph.dot"), |file| self.write_dot(file, &numbers))
    }

    fn write_graphml(&self, file: &mut impl Write, numbers: &HashMap<u64, u32>) -> Result<()> {
        file.write_all(HEAD.as_bytes())?;
        let mut number = 0;
        self.each_page(&mut |page| {
            if !page.is_html() {
                return Ok(());
            }
            write!(file, "    <node id=\"n{number}\"><data key=\"url\">{}</data>", escape(page.url))?;
            if let Some(title) = page.title {
                write!(file, "<data key=\"title\">{}</data>", escape(title))?;
            }
            if let Some(depth) = page.depth {
                write!(file, "<data key=\"depth\">{depth}</data>")?;
            }
            if let Some(rank) = page.rank {
                write!(file, "<data key=\"rank\">{rank:.1}</data>")?;
            }
            writeln!(file, "<data key=\"issues\">{}</data></node>", page.issues)?;
            number += 1;
            Ok(())
        })?;
        self.each_link(numbers, &mut |from, to, links| {
            Ok(writeln!(
                file,
                "    <edge source=\"n{from}\" target=\"n{to}\"><data key=\"links\">{links}</data></edge>"
            )?)
        })?;
        Ok(file.write_all(b"  </graph>\n</graphml>\n")?)
    }

    fn write_dot(&self, file: &mut impl Write, numbers: &HashMap<u64, u32>) -> Result<()> {
        file.write_all(b"digraph site {\n  node [shape=box];\n")?;
        let mut number = 0;
        self.each_page(&mut |page| {
            if page.is_html() {
                let label = page.url.replace('\\', "\\\\").replace('"', "\\\"");
                writeln!(file, "  n{number} [label=\"{label}\"];")?;
                number += 1;
            }
            Ok(())
        })?;
        self.each_link(numbers, &mut |from, to, links| {
            Ok(writeln!(file, "  n{from} -> n{to} [weight={links}];")?)
        })?;
        Ok(file.write_all(b"}\n")?)
    }

    /// Reads which page links to which other one, and how often.
    fn each_link(
        &self,
        numbers: &HashMap<u64, u32>,
        each: &mut dyn FnMut(u32, u32, usize) -> Result<()>,
    ) -> Result<()> {
        let number = |url: &str| numbers.get(&xxh3_64(url.as_bytes())).copied();
        self.each_source(&mut |url, _, edges| {
            let Some(from) = number(url) else { return Ok(()) };
            let mut targets: BTreeMap<u32, usize> = BTreeMap::new();
            let links = edges.iter().filter(|edge| edge.kind == EdgeKind::Link);
            for target in links.filter_map(|edge| number(&edge.to)) {
                *targets.entry(target).or_default() += 1;
            }
            targets.into_iter().try_for_each(|(to, links)| each(from, to, links))
        })
    }
}

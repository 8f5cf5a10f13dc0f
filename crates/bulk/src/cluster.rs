//! Groups of near-duplicates, made of the pairs of a join.

use std::path::Path;
use std::str::FromStr;

use huntsman_detect::near::Language;

use crate::error::{Error, Result};
use crate::join::JoinDone;
use crate::row::Id;
use crate::table::{Cell, Kind, Shape, TableWriter};
use crate::tables::Tables;

/// How documents are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// All documents that pairs connect are one group. A chain joins unlike texts: this is for counting.
    Components,
    /// In the order of ids, a document is a copy if an earlier one that is kept is within k bits of it: this is for deleting.
    Greedy,
}

impl FromStr for Link {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "components" => Ok(Self::Components),
            "greedy" => Ok(Self::Greedy),
            _ => Err("use components or greedy".to_owned()),
        }
    }
}

/// What a clustering found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClusterReport {
    /// Documents that are in a pair or are a copy.
    pub documents: u64,
    /// Groups of them.
    pub clusters: u64,
}

/// The documents that occur in pairs or copies, in the order of language and id; a place in it stands for a document.
struct Nodes(Vec<(Language, Id)>);

impl Nodes {
    fn place(&self, language: Language, id: &Id) -> usize {
        let found = self.0.binary_search_by(|(one, other)| (*one, other).cmp(&(language, id)));
        found.expect("the documents are those of the tables")
    }
}

/// Makes `cluster` in the folder of a finished join: for each document that is in a pair or is a copy its cluster, the kept document of
/// that, and the distance to it, which is missing where no pair tells it. A cluster is named by its least id; that one is kept. A document
/// that is kept has itself. A copy is where its first document is.
///
/// Takes some 60 bytes of memory for each document with a number as its id, and its length more for a text.
///
/// # Errors
/// The join has not finished, or the disk fails.
pub fn cluster(folder: &Path, link: Link) -> Result<ClusterReport> {
    let done = JoinDone::read(folder)?
        .ok_or_else(|| Error::input(folder, "has no finished join; `huntsman dedup join` makes one"))?;
    let form = done.request.form;
    let tables = Tables { folder, form, are_texts: done.are_texts };
    let mut nodes = Vec::new();
    tables.each_row("pairs", ["lang", "a", "b"], &mut |lang, [a, b], _| {
        nodes.extend([(lang, a), (lang, b)]);
    })?;
    tables.each_row("same", ["lang", "id", "first"], &mut |lang, [id, first], _| {
        nodes.extend([(lang, id), (lang, first)]);
    })?;
    nodes.sort_unstable();
    nodes.dedup();
    let nodes = Nodes(nodes);
    let mut pairs = Vec::new();
    tables.each_row("pairs", ["lang", "a", "b"], &mut |lang, [a, b], distance| {
        pairs.push((nodes.place(lang, &a), nodes.place(lang, &b), distance));
    })?;
    let mut kept = match link {
        Link::Components => components(nodes.0.len(), &pairs),
        Link::Greedy => greedy(nodes.0.len(), &mut pairs),
    };
    // A copy has what its first document has; that one is before it.
    tables.each_row("same", ["lang", "id", "first"], &mut |lang, [id, first], _| {
        kept[nodes.place(lang, &id)] = kept[nodes.place(lang, &first)];
    })?;
    let kind = if done.are_texts { Kind::Text } else { Kind::Int64 };
    let columns = vec![
        ("id", kind),
        ("cluster", kind),
        ("kept", kind),
        ("distance", Kind::SomeInt32),
        ("lang", Kind::Text),
    ];
    let shape = Shape { form, columns, group_rows: 1 << 16, metadata: Vec::new() };
    let mut table = TableWriter::new(&folder.join("cluster"), shape)?;
    let cell = |at: usize| match &nodes.0[at].1 {
        Id::Number(number) => Cell::Int(*number),
        Id::Text(text) => Cell::Text(text),
    };
    let mut report = ClusterReport { documents: nodes.0.len() as u64, clusters: 0 };
    for (at, Kept { place, distance }) in kept.iter().enumerate() {
        report.clusters += u64::from(*place == at);
        let distance = distance.map_or(Cell::Missing, |distance| Cell::Int(distance.into()));
        table.row(&[cell(at), cell(*place), cell(*place), distance, Cell::Text(nodes.0[at].0.as_str())])?;
    }
    table.finish()?;
    Ok(report)
}

/// The kept document of a document, and the distance if a pair tells it.
#[derive(Clone, Copy, Debug)]
struct Kept {
    place: usize,
    distance: Option<u32>,
}

/// The root of each document is the least one of its component.
fn components(nodes: usize, pairs: &[(usize, usize, u32)]) -> Vec<Kept> {
    let mut parents: Vec<usize> = (0..nodes).collect();
    let root = |parents: &mut Vec<usize>, mut at: usize| {
        while parents[at] != at {
            parents[at] = parents[parents[at]];
            at = parents[at];
        }
        at
    };
    for (a, b, _) in pairs {
        let (a, b) = (root(&mut parents, *a), root(&mut parents, *b));
        parents[a.max(b)] = a.min(b);
    }
    let mut kept: Vec<Kept> = (0..nodes)
        .map(|at| {
            let place = root(&mut parents, at);
            Kept { place, distance: (place == at).then_some(0) }
        })
        .collect();
    for (a, b, distance) in pairs {
        if kept[*b].place == *a {
            kept[*b].distance = Some(*distance);
        }
    }
    kept
}

/// The nearest kept document before each, of several the first.
fn greedy(nodes: usize, pairs: &mut [(usize, usize, u32)]) -> Vec<Kept> {
    pairs.sort_unstable_by_key(|(a, b, distance)| (*b, *distance, *a));
    let mut kept: Vec<Kept> = (0..nodes).map(|place| Kept { place, distance: Some(0) }).collect();
    for (a, b, distance) in pairs {
        if kept[*a].place == *a && kept[*b].place == *b {
            kept[*b] = Kept { place: *a, distance: Some(*distance) };
        }
    }
    kept
}

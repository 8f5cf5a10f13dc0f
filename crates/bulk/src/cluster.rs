//! Groups of near-duplicates, made of the pairs of a join.

use std::cmp::Ordering;
use std::path::Path;
use std::str::FromStr;

use huntsman_detect::near::Language;

use crate::error::{Error, Result};
use crate::join::JoinDone;
use crate::parquet_file::Value;
use crate::row::Id;
use crate::table::{Cell, Kind, PART_BYTES, Shape, TableWriter};
use crate::tables::Tables;

/// How documents are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// All documents that pairs connect are one group. A chain joins unlike texts: this is for counting.
    Components,
    /// In order, a document is a copy if an earlier one that is kept is within k bits of it: this is for deleting.
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

/// Which document of a group is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keep {
    /// The one with the least value of the column that gives the order; without such a column, the one with the least id.
    #[default]
    First,
    /// The same, for a column of times.
    Oldest,
    /// The one with the greatest value of the column.
    Longest,
}

impl FromStr for Keep {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "first" => Ok(Self::First),
            "oldest" => Ok(Self::Oldest),
            "longest" => Ok(Self::Longest),
            _ => Err("use first, oldest or longest".to_owned()),
        }
    }
}

/// How the documents of a finished join are grouped, and which of each group is kept.
#[derive(Clone, Debug)]
pub struct Clustering {
    /// How documents are grouped.
    pub link: Link,
    /// Which document of a group is kept.
    pub keep: Keep,
    /// The column of the input that gives the order: numbers, or texts by their bytes, such as dates. `None` is the order of ids.
    pub order_by: Option<String>,
}

/// What a clustering found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClusterReport {
    /// Documents that are in a pair or are a copy.
    pub documents: u64,
    /// Groups of them.
    pub clusters: u64,
    /// Documents without a value in the column of the order; these come last.
    pub without_order: u64,
}

/// The documents that occur in pairs or copies, in the order of language and id; a place in it stands for a document.
struct Nodes(Vec<(Language, Id)>);

impl Nodes {
    fn find(&self, language: Language, id: &Id) -> Option<usize> {
        self.0.binary_search_by(|(one, other)| (*one, other).cmp(&(language, id))).ok()
    }

    fn place(&self, language: Language, id: &Id) -> usize {
        self.find(language, id).expect("the documents are those of the tables")
    }
}

/// What a join found, by the places of documents.
struct Graph {
    nodes: Nodes,
    /// Pairs of documents that stand for all with their fingerprints.
    pairs: Vec<(usize, usize, u32)>,
    /// The document that stands for each one.
    firsts: Vec<usize>,
}

impl Graph {
    fn read(tables: &Tables<'_>) -> Result<Self> {
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
        let mut firsts: Vec<usize> = (0..nodes.0.len()).collect();
        tables.each_row("same", ["lang", "id", "first"], &mut |lang, [id, first], _| {
            firsts[nodes.place(lang, &id)] = nodes.place(lang, &first);
        })?;
        Ok(Self { nodes, pairs, firsts })
    }
}

/// A value of the column of the order. Numbers are before texts.
#[derive(Clone, Debug)]
enum OrderValue {
    /// Whole numbers that are equal as fractions differ in the second part.
    Number(f64, i64),
    Text(Box<[u8]>),
}

impl OrderValue {
    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Missing => None,
            Value::Int(number) => Some(Self::Number(*number as f64, *number)),
            Value::Large(number) => Some(Self::Number(*number as f64, (*number >> 1) as i64)),
            Value::Float(number) => Some(Self::Number(*number, *number as i64)),
            Value::Bytes(bytes) => {
                Some(match str::from_utf8(bytes).ok().and_then(|text| text.parse().ok()) {
                    // A fraction in a file of texts.
                    Some(number) if f64::is_finite(number) => Self::Number(number, number as i64),
                    _ => Self::Text(bytes.as_slice().into()),
                })
            }
        }
    }

    fn order(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Number(a, exact_a), Self::Number(b, exact_b)) => a.total_cmp(b).then(exact_a.cmp(exact_b)),
            (Self::Text(a), Self::Text(b)) => a.cmp(b),
            (Self::Number(..), Self::Text(_)) => Ordering::Less,
            (Self::Text(_), Self::Number(..)) => Ordering::Greater,
        }
    }
}

impl Clustering {
    /// A clustering in the order of ids, which keeps the first document of each group.
    pub fn new(link: Link) -> Self {
        Self { link, keep: Keep::First, order_by: None }
    }

    /// Makes `cluster` in the folder of a finished join: for each document that is in a pair or is a copy its cluster, the kept document of
    /// that, and the distance to it, which is missing where no pair tells it. A cluster is named by its least id. A document that is kept
    /// has itself.
    ///
    /// A column for the order is read from the files of the join, which must still be what they were.
    ///
    /// Takes some 100 bytes of memory for each document with a number as its id, and its length more for a text.
    ///
    /// # Errors
    /// The join has not finished, its files lack the column or have changed, or the disk fails.
    pub fn run(&self, folder: &Path) -> Result<ClusterReport> {
        if self.keep == Keep::Longest && self.order_by.is_none() {
            let message = "--keep longest: name the column of lengths by --order-by";
            return Err(Error::Input { name: "cluster".to_owned(), message: message.to_owned() });
        }
        let done = JoinDone::read(folder)?
            .ok_or_else(|| Error::input(folder, "has no finished join; `huntsman dedup join` makes one"))?;
        let form = done.request.form;
        let graph = Graph::read(&Tables { folder, form, are_texts: done.are_texts })?;
        let (order, without_order) = self.order(&graph.nodes, &done)?;
        let kept = match self.link {
            Link::Components => components(&graph, &order),
            Link::Greedy => greedy(&graph, &order),
        };
        let nodes = &graph.nodes.0;
        // The documents are in the order of ids.
        let mut least: Vec<usize> = (0..nodes.len()).collect();
        for (at, kept) in kept.iter().enumerate().rev() {
            least[kept.place] = at;
        }
        let kind = if done.are_texts { Kind::Text } else { Kind::Int64 };
        let columns = vec![
            ("id", kind),
            ("cluster", kind),
            ("kept", kind),
            ("distance", Kind::SomeInt32),
            ("lang", Kind::Text),
        ];
        let shape =
            Shape { form, columns, group_rows: 1 << 16, part_bytes: PART_BYTES, metadata: Vec::new() };
        let mut table = TableWriter::new(&folder.join("cluster"), shape)?;
        let cell = |at: usize| match &nodes[at].1 {
            Id::Number(number) => Cell::Int(*number),
            Id::Text(text) => Cell::Text(text),
        };
        let mut report = ClusterReport { documents: nodes.len() as u64, clusters: 0, without_order };
        for (at, Kept { place, distance }) in kept.iter().enumerate() {
            report.clusters += u64::from(*place == at);
            let distance = distance.map_or(Cell::Missing, |distance| Cell::Int(distance.into()));
            let lang = Cell::Text(nodes[at].0.as_str());
            table.row(&[cell(at), cell(least[*place]), cell(*place), distance, lang])?;
        }
        table.finish()?;
        Ok(report)
    }

    /// The documents in order, and how many of them have no value.
    fn order(&self, nodes: &Nodes, done: &JoinDone) -> Result<(Vec<usize>, u64)> {
        let mut order: Vec<usize> = (0..nodes.0.len()).collect();
        let Some(column) = &self.order_by else { return Ok((order, 0)) };
        let mut values: Vec<Option<OrderValue>> = vec![None; nodes.0.len()];
        let input = done.request.input();
        // Of an id that occurs twice, the last row counts, as in the join.
        for file in done.request.files_in_order() {
            input.read_with(&file.place()?, Some(column), &mut |row, value| {
                let Some(row) = row else { return Ok(()) };
                let id = if done.are_texts { row.id.into_text() } else { row.id };
                if let Some(at) = nodes.find(row.language, &id) {
                    values[at] = OrderValue::of(value);
                }
                Ok(())
            })?;
        }
        // Documents with equal values stay in the order of ids.
        order.sort_by(|a, b| match (&values[*a], &values[*b]) {
            (Some(a), Some(b)) if self.keep == Keep::Longest => b.order(a),
            (Some(a), Some(b)) => a.order(b),
            (a, b) => b.is_some().cmp(&a.is_some()),
        });
        Ok((order, values.iter().filter(|value| value.is_none()).count() as u64))
    }
}

/// The kept document of a document, and the distance if a pair tells it.
#[derive(Clone, Copy, Debug)]
struct Kept {
    place: usize,
    distance: Option<u32>,
}

/// All that pairs and copies connect; of each component, the first document in the order is kept.
fn components(graph: &Graph, order: &[usize]) -> Vec<Kept> {
    let Graph { nodes, pairs, firsts } = graph;
    let mut parents: Vec<usize> = (0..nodes.0.len()).collect();
    let root = |parents: &mut Vec<usize>, mut at: usize| {
        while parents[at] != at {
            parents[at] = parents[parents[at]];
            at = parents[at];
        }
        at
    };
    let copies = firsts.iter().enumerate().map(|(at, first)| (at, *first));
    for (a, b) in pairs.iter().map(|(a, b, _)| (*a, *b)).chain(copies) {
        let (a, b) = (root(&mut parents, a), root(&mut parents, b));
        parents[a.max(b)] = a.min(b);
    }
    let mut kept = vec![None; nodes.0.len()];
    for at in order {
        kept[root(&mut parents, *at)].get_or_insert(*at);
    }
    let kept: Vec<usize> =
        (0..nodes.0.len()).map(|at| kept[root(&mut parents, at)].expect("each root has its own")).collect();
    // Of documents that stand for others: how far each is from the fingerprint of what is kept.
    let mut distances = vec![None; nodes.0.len()];
    for (a, b, distance) in pairs {
        for (a, b) in [(*a, *b), (*b, *a)] {
            if firsts[kept[a]] == b {
                distances[a] = Some(*distance);
            }
        }
    }
    let distance = |at: usize| if firsts[kept[at]] == firsts[at] { Some(0) } else { distances[firsts[at]] };
    (0..kept.len()).map(|at| Kept { place: kept[at], distance: distance(at) }).collect()
}

/// The nearest document that was kept before each, of several the first in the order.
fn greedy(graph: &Graph, order: &[usize]) -> Vec<Kept> {
    let Graph { nodes, pairs, firsts } = graph;
    // The neighbours of each document that stands for others: those of `at` are from `starts[at]` to `starts[at + 1]`.
    let mut starts = vec![0; nodes.0.len() + 1];
    for (a, b, _) in pairs {
        starts[*a + 1] += 1;
        starts[*b + 1] += 1;
    }
    for at in 1..starts.len() {
        starts[at] += starts[at - 1];
    }
    let (mut neighbours, mut next) = (vec![(0, 0); 2 * pairs.len()], starts.clone());
    for (a, b, distance) in pairs {
        for (a, b) in [(*a, *b), (*b, *a)] {
            neighbours[next[a]] = (b, *distance);
            next[a] += 1;
        }
    }
    let mut nearest: Vec<Option<Kept>> = vec![None; nodes.0.len()];
    let mut kept: Vec<Kept> = (0..nodes.0.len()).map(|place| Kept { place, distance: Some(0) }).collect();
    for at in order {
        let first = firsts[*at];
        if let Some(found) = nearest[first] {
            kept[*at] = found;
            continue;
        }
        // It is kept, and tells all that it is near to.
        let near = neighbours[starts[first]..starts[first + 1]].iter().copied();
        for (other, distance) in near.chain([(first, 0)]) {
            let known = nearest[other].and_then(|known| known.distance);
            if known.is_none_or(|known| distance < known) {
                nearest[other] = Some(Kept { place: *at, distance: Some(distance) });
            }
        }
    }
    kept
}

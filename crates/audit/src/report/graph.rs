//! The graph of a site's links, drawn beforehand: at most 300 nodes, which are pages or, on larger sites, the most linked pages and folders for
//! all others.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use huntsman_output::markup::Web;
use huntsman_output::render::{count, counted, shorten};
use maud::{Markup, html};

use super::directories::{Directory, folder_of};
use super::layout::{Placed, SIZE, Spot, layout};

/// Nodes of a drawing.
const MAX_NODES: usize = 300;
/// Folders among them, if there are more pages.
const MAX_FOLDERS: usize = 120;
/// Lines of a drawing besides those to the pages on the way from the start.
const MAX_LINES: usize = 700;
/// Names that are written beside nodes, and their characters.
const NAMES: usize = 26;
const NAME: usize = 26;

/// A page, or the pages of a folder that are no nodes of their own.
#[derive(Debug, Default)]
pub(super) struct Node {
    url: String,
    is_folder: bool,
    pages: usize,
    rank: f64,
    errors: usize,
    warnings: usize,
    depth: Option<u16>,
    links_in: usize,
    links_out: usize,
}

/// What the graph needs of a page.
#[derive(Clone, Debug)]
pub(super) struct PageOfGraph {
    pub(super) rank: f32,
    pub(super) depth: Option<u16>,
    pub(super) errors: u32,
    pub(super) warnings: u32,
}

/// The nodes, and the number of links between each two.
#[derive(Debug, Default)]
pub(super) struct Graph {
    nodes: Vec<Node>,
    /// The node of each page.
    of_page: Vec<u16>,
    links: HashMap<(u16, u16), usize>,
}

impl Graph {
    /// Chooses the nodes. `url` gives the URLs of the pages, which are in order.
    pub(super) fn new(pages: &[PageOfGraph], urls: &[Box<str>], directories: &[Directory]) -> Self {
        let mut graph = Self::default();
        let mut own = vec![false; pages.len()];
        let mut by_rank: Vec<usize> = (0..pages.len()).collect();
        by_rank.sort_by(|a, b| pages[*b].rank.total_cmp(&pages[*a].rank).then(a.cmp(b)));
        let mut folders: Vec<&Directory> = Vec::new();
        if pages.len() > MAX_NODES {
            folders = directories.iter().collect();
            folders.sort_by_key(|folder| (Reverse(folder.pages), folder.depth));
            folders.truncate(MAX_FOLDERS);
        }
        // One node is for pages in none of the folders.
        let alone = if pages.len() > MAX_NODES { MAX_NODES - folders.len() - 1 } else { pages.len() };
        by_rank.iter().take(alone).for_each(|page| own[*page] = true);
        let mut numbers: BTreeMap<&str, u16> = BTreeMap::new();
        for folder in &folders {
            numbers.insert(&folder.url, graph.add(&folder.url, true));
        }
        for (page, facts) in pages.iter().enumerate() {
            let url = &urls[page];
            let number = if own[page] {
                graph.add(url, false)
            } else {
                let folder = around(url).find_map(|folder| numbers.get(folder).copied());
                folder.unwrap_or_else(|| graph.others(&mut numbers))
            };
            graph.of_page.push(number);
            let node = &mut graph.nodes[usize::from(number)];
            node.pages += 1;
            node.rank += f64::from(facts.rank.max(0.0));
            node.errors += usize::from(facts.errors > 0);
            node.warnings += usize::from(facts.warnings > 0);
            node.depth = match (node.depth, facts.depth) {
                (Some(known), Some(depth)) => Some(known.min(depth)),
                (known, depth) => known.or(depth),
            };
        }
        graph
    }

    fn add(&mut self, url: &str, is_folder: bool) -> u16 {
        let number = u16::try_from(self.nodes.len()).unwrap_or(u16::MAX);
        self.nodes.push(Node { url: url.to_owned(), is_folder, ..Node::default() });
        number
    }

    /// The node of pages in none of the folders.
    fn others(&mut self, numbers: &mut BTreeMap<&str, u16>) -> u16 {
        if let Some(number) = numbers.get("") {
            return *number;
        }
        let number = self.add("", true);
        numbers.insert("", number);
        number
    }

    /// Adds a link between two pages.
    pub(super) fn link(&mut self, from: u32, to: u32) {
        let node = |page: u32| self.of_page.get(page as usize).copied();
        if let (Some(from), Some(to)) = (node(from), node(to))
            && from != to
        {
            *self.links.entry((from, to)).or_default() += 1;
        }
    }

    /// The drawing, and its numbers as a table.
    pub(super) fn view(&mut self) -> Markup {
        for ((from, to), links) in &self.links {
            self.nodes[usize::from(*from)].links_out += links;
            self.nodes[usize::from(*to)].links_in += links;
        }
        // Folders whose pages are all nodes of their own.
        let is_drawn = |node: &Node| node.pages > 0;
        let drawn: Vec<u16> =
            (0..self.nodes.len() as u16).filter(|at| is_drawn(&self.nodes[usize::from(*at)])).collect();
        if drawn.len() < 2 {
            return html! { p.soft { "There are too few pages for a drawing." } };
        }
        let placed = layout(&self.positions(&drawn));
        html! {
            figure.graph {
                (self.drawing(&drawn, &placed))
                figcaption {
                    "A dot is a page"
                    @if self.nodes.iter().any(|node| node.is_folder) { ", a ring the other pages of a folder" }
                    @if self.has_start() { ". The nearer to the middle, the fewer clicks from the start; the larger, the more PageRank. " }
                    @else { ". The larger, the more PageRank. " }
                    span.key { svg.dot viewBox="0 0 10 10" aria-hidden="true" { circle.clean cx="5" cy="5" r="5" {} } " without errors and warnings " }
                    span.key { svg.dot viewBox="0 0 10 10" aria-hidden="true" { circle.warning cx="5" cy="5" r="5" {} } " with warnings " }
                    span.key { svg.dot viewBox="0 0 10 10" aria-hidden="true" { circle.error cx="5" cy="5" r="5" {} } " with errors" }
                }
            }
            details {
                summary { "The same as a table" }
                (self.table(&drawn))
            }
        }
    }

    /// The number of the circle outside of all others, for pages that nothing leads to.
    fn outside(&self) -> u16 {
        self.nodes.iter().filter_map(|node| node.depth).max().map_or(0, |deepest| deepest.saturating_add(1))
    }

    /// What the layout needs: depth, and the node from which most links of a node nearer to the start come.
    fn positions(&self, drawn: &[u16]) -> Vec<Spot> {
        let place: HashMap<u16, usize> = drawn.iter().enumerate().map(|(at, node)| (*node, at)).collect();
        let outside = self.outside();
        let depth = |at: u16| self.nodes[usize::from(at)].depth.unwrap_or(outside);
        let mut best: HashMap<u16, (u16, usize, u16)> = HashMap::new();
        for ((from, to), links) in &self.links {
            if depth(*from) < depth(*to) {
                // The nearest one before, then the one with the most links.
                let new = (depth(*from), *links, u16::MAX - *from);
                let known = best.entry(*to).or_insert(new);
                *known = (*known).max(new);
            }
        }
        drawn
            .iter()
            .map(|at| {
                let node = &self.nodes[usize::from(*at)];
                let parent = best.get(at).and_then(|(.., from)| place.get(&(u16::MAX - from))).copied();
                Spot { depth: depth(*at), parent, radius: radius(node, self.most_rank()) }
            })
            .collect()
    }

    /// Whether it is known where readers begin.
    fn has_start(&self) -> bool {
        self.nodes.iter().any(|node| node.depth.is_some())
    }

    fn most_rank(&self) -> f64 {
        self.nodes.iter().map(|node| node.rank).fold(1.0, f64::max)
    }

    fn drawing(&self, drawn: &[u16], placed: &Placed) -> Markup {
        let place: HashMap<u16, usize> = drawn.iter().enumerate().map(|(at, node)| (*node, at)).collect();
        let is_way = |from: usize, to: usize| placed.spots[to].parent == Some(from);
        let mut lines: Vec<(usize, usize, usize)> = Vec::new();
        for ((from, to), links) in &self.links {
            if let (Some(from), Some(to)) = (place.get(from), place.get(to)) {
                lines.push((*from, *to, *links));
            }
        }
        lines.sort_by_key(|(from, to, links)| (Reverse(*links), *from, *to));
        let (ways, mut others): (Vec<_>, Vec<_>) =
            lines.into_iter().partition(|(from, to, _)| is_way(*from, *to));
        others.retain(|(from, to, _)| !is_way(*to, *from));
        others.truncate(MAX_LINES);
        let point = |at: usize| placed.points[at];
        let middle = SIZE / 2.0;
        html! {
            svg.links viewBox=(format!("0 0 {SIZE} {SIZE}")) role="img" aria-label="The links of the site" {
                @for (radius, depth) in &placed.rings {
                    circle.orbit cx=(middle) cy=(middle) r=(format!("{radius:.1}")) {}
                    text.orbit x=(middle) y=(format!("{:.1}", middle - radius + 11.0)) text-anchor="middle" {
                        @if *depth == self.outside() { @if self.has_start() { "no links" } } @else { (counted(u64::from(*depth), "click")) }
                    }
                }
                @for (from, to, _) in &others { path.other d=(curve(point(*from), point(*to), 0.35)) {} }
                @for (from, to, _) in &ways { path.way d=(curve(point(*from), point(*to), 0.12)) {} }
                @for (at, number) in drawn.iter().enumerate() {
                    @let node = &self.nodes[usize::from(*number)];
                    @let (x, y) = point(at);
                    a href=(Web(&node.link())) tabindex="-1" {
                        circle class=(node.class()) cx=(format!("{x:.1}")) cy=(format!("{y:.1}")) r=(format!("{:.1}", placed.spots[at].radius)) {
                            title { (Web(&node.told())) }
                        }
                    }
                }
                @for (at, x, y, anchor) in self.names(drawn, placed) {
                    text.name x=(format!("{x:.1}")) y=(format!("{y:.1}")) text-anchor=(anchor) { (Web(&self.nodes[usize::from(drawn[at])].name())) }
                }
            }
        }
    }

    /// Which nodes have their names written beside them, and where: the largest ones, as far as there is room.
    fn names(&self, drawn: &[u16], placed: &Placed) -> Vec<(usize, f64, f64, &'static str)> {
        const LINE: f64 = 13.0;
        const LETTER: f64 = 6.4;
        let mut order: Vec<usize> = (0..drawn.len()).collect();
        order.sort_by(|a, b| placed.spots[*b].radius.total_cmp(&placed.spots[*a].radius).then(a.cmp(b)));
        let mut taken: Vec<[f64; 4]> = Vec::new();
        let mut names = Vec::new();
        for at in order {
            if names.len() == NAMES {
                break;
            }
            let ((x, y), radius) = (placed.points[at], placed.spots[at].radius);
            let width = self.nodes[usize::from(drawn[at])].name().chars().count() as f64 * LETTER;
            let is_right = x + radius + 4.0 + width < SIZE;
            let left = if is_right { x + radius + 4.0 } else { x - radius - 4.0 - width };
            let place = [left, y - LINE / 2.0, left + width, y + LINE / 2.0];
            let overlaps = |other: &[f64; 4]| {
                place[0] < other[2] && other[0] < place[2] && place[1] < other[3] && other[1] < place[3]
            };
            if left < 0.0 || taken.iter().any(overlaps) {
                continue;
            }
            taken.push(place);
            let (x, anchor) = if is_right { (left, "start") } else { (left + width, "end") };
            names.push((at, x, y + 4.0, anchor));
        }
        names
    }

    fn table(&self, drawn: &[u16]) -> Markup {
        let mut nodes: Vec<&Node> = drawn.iter().map(|at| &self.nodes[usize::from(*at)]).collect();
        nodes.sort_by(|a, b| b.rank.total_cmp(&a.rank).then(a.url.cmp(&b.url)));
        html! {
            table data-sort {
                thead {
                    tr {
                        th scope="col" { "Page or folder" } th.n scope="col" { "Pages" } th.n scope="col" { "PageRank" } th.n scope="col" { "Clicks" }
                        th.n scope="col" { "Links in" } th.n scope="col" { "Links out" } th.n scope="col" { "With errors" } th.n scope="col" { "With warnings" }
                    }
                }
                tbody {
                    @for node in nodes {
                        tr {
                            td.url { a href=(Web(&node.link())) { (Web(if node.url.is_empty() { "all others" } else { &node.url })) @if node.is_folder { "*" } } }
                            td.n { (count(node.pages as u64)) }
                            td.n { (format!("{:.1}", node.rank)) }
                            td.n { @if let Some(depth) = node.depth { (depth) } }
                            td.n { (count(node.links_in as u64)) }
                            td.n { (count(node.links_out as u64)) }
                            td.n { (count(node.errors as u64)) }
                            td.n { (count(node.warnings as u64)) }
                        }
                    }
                }
            }
        }
    }
}

impl Node {
    fn link(&self) -> String {
        match self.is_folder {
            true => super::link_to_folder(&self.url),
            false => super::link_to_page(&self.url),
        }
    }

    /// The name beside it: the path of a page, or the last folder.
    fn name(&self) -> String {
        let start = self.url.find("://").map_or(0, |at| at + 3);
        let path = self.url[start..].find('/').map_or("/", |at| &self.url[start + at..]);
        match self.is_folder {
            true if self.url.is_empty() => "all others".to_owned(),
            true => shorten(&format!("{path}*"), NAME).into_owned(),
            false => shorten(path, NAME).into_owned(),
        }
    }

    fn class(&self) -> String {
        let state = match self {
            Self { errors: 1.., .. } => "error",
            Self { warnings: 1.., .. } => "warning",
            _ => "clean",
        };
        if self.is_folder { format!("{state} folder") } else { state.to_owned() }
    }

    /// What a reader sees who points at it.
    fn told(&self) -> String {
        let pages = match self.is_folder {
            true => format!("{}* ({})", self.url, counted(self.pages as u64, "page")),
            false => self.url.clone(),
        };
        let clicks = self.depth.map_or_else(
            || "not linked from the start".to_owned(),
            |depth| counted(u64::from(depth), "click"),
        );
        format!(
            "{pages}\n{clicks}, PageRank {:.1}, {} to it, {} from it",
            self.rank,
            counted(self.links_in as u64, "link"),
            self.links_out
        )
    }
}

/// The folders around a URL, the nearest first.
fn around(url: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(folder_of(url)), |folder| {
        let shorter = folder_of(folder.strip_suffix('/')?);
        (shorter.len() < folder.len() && !shorter.ends_with("://")).then_some(shorter)
    })
}

/// The area of a dot stands for the rank.
fn radius(node: &Node, most: f64) -> f64 {
    3.0 + 15.0 * (node.rank / most).sqrt()
}

/// A line from one point to another, bent towards the middle.
fn curve((x1, y1): (f64, f64), (x2, y2): (f64, f64), bend: f64) -> String {
    let middle = SIZE / 2.0;
    let towards = |a: f64, b: f64| {
        let half = (a + b) / 2.0;
        half + (middle - half) * bend
    };
    format!("M{x1:.1} {y1:.1}Q{:.1} {:.1} {x2:.1} {y2:.1}", towards(x1, x2), towards(y1, y2))
}

#[cfg(test)]
mod tests {
    use super::super::directories::Directories;
    use super::*;

    #[test]
    fn a_large_site_has_at_most_300_nodes_and_all_its_pages_are_in_one() {
        let mut urls: Vec<Box<str>> =
            (0..4_000).map(|at| format!("https://a.example/{}/{at}", at % 500).into()).collect();
        urls.extend((0..50).map(|at| format!("https://{at}.example/").into()));
        urls.sort();
        let mut directories = Directories::default();
        urls.iter().for_each(|url| directories.add(url, true, 0.0, [0; 3]));
        let pages: Vec<PageOfGraph> = (0..urls.len())
            .map(|at| PageOfGraph {
                rank: (at % 97) as f32,
                depth: Some((at % 5) as u16),
                errors: 0,
                warnings: 1,
            })
            .collect();
        let mut graph = Graph::new(&pages, &urls, &directories.finish());
        for at in 1..urls.len() as u32 {
            graph.link(at / 10, at);
        }
        assert_eq!(graph.nodes.iter().map(|node| node.pages).sum::<usize>(), urls.len());
        let html = graph.view().into_string();
        let drawn = html.matches("<a href=").count() / 2;
        assert!(graph.nodes.len() <= MAX_NODES && drawn > 200, "{} {drawn}", graph.nodes.len());
        assert!(html.contains("The same as a table"));
    }
}

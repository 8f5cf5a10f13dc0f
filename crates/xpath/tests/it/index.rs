//! Lists of nodes by name against plain walks, on random trees.

use huntsman_xpath::{Document, Node, Postings, Scope, Value, XPath};

/// A generator that is good enough to make trees (xorshift64*).
struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % most
    }

    fn one_of<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len() as u64) as usize]
    }
}

const NAMES: [&str; 5] = ["a", "b", "k", "li", "p"];

/// A tree in which elements and attributes share names.
fn tree(random: &mut Random, is_html: bool) -> Document {
    let mut builder = Document::builder(is_html);
    let (mut depth, nodes) = (1, 20 + random.below(300));
    builder.open("", "r").unwrap();
    for _ in 0..nodes {
        match random.below(9) {
            0..=3 if depth < 12 => {
                builder.open("", random.one_of(&NAMES)).unwrap();
                depth += 1;
                for _ in 0..random.below(4) {
                    let (name, value) = (random.one_of(&NAMES), random.one_of(&["x", "y", "z z"]));
                    builder.attribute("", name, value).unwrap();
                }
            }
            4 | 5 => builder.text(random.one_of(&["x", "one two ", "\n"])).unwrap(),
            6 => builder.comment("c").unwrap(),
            _ if depth > 1 => {
                builder.close();
                depth -= 1;
            }
            _ => {}
        }
    }
    builder.finish()
}

fn nodes(document: &Document, from: Node, path: &str) -> Vec<usize> {
    match XPath::new(path).unwrap().evaluate(document, from, &Scope::new()).unwrap() {
        Value::Nodes(nodes) => nodes.into_iter().map(Node::index).collect(),
        other => panic!("{path}: {other:?}"),
    }
}

#[test]
fn postings_are_what_a_filter_finds() {
    for seed in 1..200 {
        let mut random = Random(seed);
        let keys = 1 + random.below(6);
        let pairs: Vec<(u32, u32)> =
            (0..random.below(200)).map(|place| (random.below(keys) as u32, 2 * place as u32)).collect();
        let postings = Postings::of(keys as usize, pairs.iter().copied());
        for key in 0..keys as u32 + 2 {
            let from = random.below(420) as u32;
            let range = from..from + random.below(200) as u32;
            let model = pairs.iter().filter(|(of, place)| *of == key && range.contains(place));
            let model: Vec<u32> = model.map(|(_, place)| *place).collect();
            assert_eq!(postings.within(key as usize, range.clone()), model, "seed {seed}, {key}, {range:?}");
        }
    }
}

#[test]
fn listed_nodes_are_those_of_a_plain_walk() {
    // What the lists serve, beside the same with tests that only a walk can do: `true()` keeps two steps apart.
    let pairs = [
        ("//NAME", "//*[name() = 'NAME']"),
        (".//NAME", ".//*[name() = 'NAME']"),
        ("descendant-or-self::NAME", "descendant-or-self::*[name() = 'NAME']"),
        ("following::NAME", "following::*[name() = 'NAME']"),
        ("preceding::NAME", "preceding::*[name() = 'NAME']"),
        ("//@NAME", "/descendant-or-self::node()[true()]/attribute::*[name() = 'NAME']"),
        (".//@NAME", "descendant-or-self::node()[true()]/@*[name() = 'NAME']"),
        (".//@*", "descendant-or-self::node()[true()]/@*"),
        (".//@NAME[. = 'x']", "descendant-or-self::node()[true()]/@NAME[. = 'x']"),
        ("//NAME/@k", "//*[name() = 'NAME']/@*[name() = 'k']"),
        ("//NAME[1]", "/descendant-or-self::node()[true()]/*[name() = 'NAME'][position() = 1]"),
        (".//NAME[last()]", "descendant-or-self::node()[true()]/*[name() = 'NAME'][position() = last()]"),
        (".//NAME[2]/a", "descendant-or-self::node()[true()]/*[name() = 'NAME'][position() = 2]/child::a"),
        ("//NAME//b[1]", "//NAME/descendant-or-self::node()[true()]/b[1]"),
        ("//b//NAME[position() > 1]", "//b/descendant-or-self::node()[true()]/NAME[position() > 1]"),
        ("//*[2]", "/descendant-or-self::node()[true()]/*[2]"),
        ("//text()", "//node()[self::text()]"),
        (".//text()[1]", "descendant-or-self::node()[true()]/text()[1]"),
        ("//comment()", "//node()[self::comment()]"),
        ("//*[NAME]", "//*[count(child::NAME) > 0]"),
        ("//*[.//NAME]", "//*[descendant::*[name() = 'NAME'][position() >= 1]]"),
        ("//*[@NAME = 'x']", "//*[@*[name() = 'NAME'][. = 'x']]"),
        ("//*[not(@NAME)]", "//*[count(@*[name() = 'NAME']) = 0]"),
        ("//*[NAME/@k = 'x']", "//*[count(NAME[1 = 1]/@k[. = 'x']) >= 1]"),
        ("//*[contains(.//NAME/a, 'o')]", "//*[contains((.//NAME/a)[1], 'o')]"),
        ("//*[string(ancestor::NAME/@a) = 'x']", "//*[string((ancestor::NAME/@a)[1]) = 'x']"),
        ("//*[string(preceding-sibling::NAME) = 'x']", "//*[string((preceding-sibling::NAME)[1]) = 'x']"),
        ("//*[count(.//NAME) = 2]", "//*[.//NAME][count((.//NAME)[true()]) = 2]"),
        ("//*[.//NAME/*/@k]", "//*[(.//NAME/*/@k)[true()]]"),
        ("id('x y')", "//*[@id = 'x' or @id = 'y']"),
    ];
    for seed in 1..60 {
        let mut random = Random(seed);
        let document = tree(&mut random, seed % 2 == 0);
        for (listed, walked) in pairs {
            let name = random.one_of(&["a", "b", "k", "li", "p", "absent"]);
            let from = (0..random.below(document.len() as u64))
                .fold(document.root(), |last, _| document.descendants(last).next().unwrap_or(last));
            for from in [document.root(), from] {
                let (listed, walked) = (listed.replace("NAME", name), walked.replace("NAME", name));
                assert_eq!(
                    nodes(&document, from, &listed),
                    nodes(&document, from, &walked),
                    "seed {seed}: {listed} at {from:?} of {}",
                    document.markup(document.root())
                );
            }
        }
    }
}

#[test]
fn a_name_test_means_elements_unless_the_axis_is_that_of_attributes() {
    let document = Document::read_xml("<r a='1'><a/></r>").unwrap();
    assert!(nodes(&document, document.root(), "//@a/self::a | //@a/descendant-or-self::a").is_empty());
    assert_eq!(nodes(&document, document.root(), "//a | //@a").len(), 2);
}

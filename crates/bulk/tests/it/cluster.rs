//! Clusters are those of a naive graph, and greedy ones what flags of each day say.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use huntsman_bulk::{Clustering, Form, Keep, Link};
use huntsman_detect::near::{Document, Identity, Language, MemoryIndex, NearIndex};
use huntsman_detect::simhash::{Features, SimHash};

use crate::made::{Pairs, join, made, pairs, table};

/// Language and id, with language and id of what is kept.
type Kept = BTreeMap<(String, String), String>;

fn found(out: &Path) -> Kept {
    let rows = table(out.join("cluster")).into_iter();
    rows.map(|row| ((row[4].clone(), row[0].clone()), row[2].clone())).collect()
}

/// The least id that can be reached over pairs, by walking until nothing changes.
fn naive_components(pairs: &Pairs) -> Kept {
    let mut least: Kept = BTreeMap::new();
    for (lang, a, b, _) in pairs {
        least.insert((lang.clone(), a.clone()), a.clone());
        least.insert((lang.clone(), b.clone()), b.clone());
    }
    loop {
        let before = least.clone();
        for (lang, a, b, _) in pairs {
            let [a, b] = [a, b].map(|id| (lang.clone(), id.clone()));
            let id = least[&a].clone().min(least[&b].clone());
            least.insert(a, id.clone());
            least.insert(b, id);
        }
        if least == before {
            return least;
        }
    }
}

#[test]
fn components_are_those_of_a_naive_graph_and_copies_are_in_them() {
    let folder = tempfile::tempdir().unwrap();
    let made = made(31, 4_000, 5, 0);
    let (input, out) = (folder.path().join("in.jsonl"), folder.path().join("out"));
    made.lines(&input);
    for form in [Form::Csv, Form::Tsv, Form::Jsonl, Form::Parquet] {
        let mut join = join(&input, &out, 5);
        (join.form, join.fresh) = (form, true);
        join.run(&|_| ()).unwrap();
        let report = Clustering::new(Link::Components).run(&out).unwrap();
        if form != Form::Csv {
            assert!(report.clusters > 100, "{form}");
            continue;
        }
        let mut expected = naive_components(&pairs(&out));
        for row in table(out.join("same")) {
            let first = (row[2].clone(), row[1].clone());
            let kept = expected.entry(first).or_insert(row[1].clone()).clone();
            expected.insert((row[2].clone(), row[0].clone()), kept);
        }
        assert_eq!(found(&out), expected);
        let clusters = expected.iter().filter(|((_, id), kept)| id == *kept).count();
        assert_eq!((report.documents, report.clusters), (expected.len() as u64, clusters as u64));
    }
}

#[test]
fn a_greedy_copy_is_near_to_a_kept_document() {
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (folder.path().join("in.jsonl"), folder.path().join("out"));
    // Each is 2 bits from the next: the third one is too far from the first.
    let chain = [0_u128, 0b11, 0b1111, 0b11_1111];
    let lines = chain.iter().enumerate().map(|(id, hash)| {
        format!("{{\"id\":{id},\"lang\":\"en\",\"simhash\":\"{:032x}\"}}\n", hash | 1 << 99)
    });
    std::fs::write(&input, lines.collect::<String>()).unwrap();
    join(&input, &out, 3).run(&|_| ()).unwrap();
    Clustering::new(Link::Greedy).run(&out).unwrap();
    let kept: Vec<_> = found(&out).into_values().collect();
    assert_eq!(kept, ["0", "0", "2", "2"]);
    Clustering::new(Link::Components).run(&out).unwrap();
    assert_eq!(found(&out).into_values().collect::<BTreeSet<_>>().len(), 1);
}

/// A document with its value in the column `words`, which some lack.
struct Ordered {
    lang: &'static str,
    id: String,
    hash: u128,
    words: Option<i64>,
}

/// Made-up documents, of which neighbours in a chain are near, as Parquet has no order of its own.
fn ordered(seed: u64) -> Vec<Ordered> {
    let rows = made(seed, 3_000, 3, 0).rows;
    let words = |at: usize| (at * 7_919 % 401) as i64 - 200;
    let documents = rows.into_iter().enumerate().map(|(at, (id, lang, hash))| {
        // Every fifth one is the first step of a chain: its neighbour's neighbour is too far from it.
        Ordered { lang, id, hash, words: (at % 11 > 0).then(|| words(at)) }
    });
    let mut documents: Vec<Ordered> = documents.collect();
    for at in 0..600 {
        let Ordered { lang, hash, .. } = documents[at * 5];
        for step in 1..4_u32 {
            let hash = hash ^ ((1_u128 << (2 * step)) - 1) << (at % 100);
            let id = format!("chain-{}-{at}", (at as u32 * 31 + step * 17) % 97 * 10 + step);
            documents.push(Ordered { lang, id, hash, words: Some(words(at * 3 + step as usize)) });
        }
    }
    documents
}

fn joined(documents: &[Ordered], folder: &Path) -> std::path::PathBuf {
    let (input, out) = (folder.join("in.csv"), folder.join("out"));
    let mut lines = "id,lang,simhash,words\n".to_owned();
    for Ordered { lang, id, hash, words } in documents {
        let words = words.map_or(String::new(), |words| words.to_string());
        writeln!(lines, "{id},{lang},{hash:032x},{words}").unwrap();
    }
    std::fs::write(&input, lines).unwrap();
    let mut join = join(&input, &out, 3);
    join.fresh = true;
    join.run(&|_| ()).unwrap();
    out
}

/// The rows of `cluster` by language and id: cluster, kept, distance.
fn rows(out: &Path) -> BTreeMap<(String, String), [String; 3]> {
    let rows = table(out.join("cluster")).into_iter();
    rows.map(|row| ((row[4].clone(), row[0].clone()), [row[1].clone(), row[2].clone(), row[3].clone()]))
        .collect()
}

/// The documents in an order: those without a value come last, and equal ones in the order of their ids.
fn in_order(documents: &[Ordered], keep: Keep) -> Vec<&Ordered> {
    let mut all: Vec<&Ordered> = documents.iter().collect();
    all.sort_by_key(|of| {
        let words = of.words.map(|words| if keep == Keep::Longest { -words } else { words });
        (of.lang, words.is_none(), words, of.id.clone())
    });
    all
}

#[test]
fn greedy_keeps_what_an_index_that_was_asked_and_filled_in_the_same_order_says() {
    let folder = tempfile::tempdir().unwrap();
    let (mut copies, mut flagged) = (0, 0);
    for (seed, keep) in [(41, Keep::Oldest), (42, Keep::First), (43, Keep::Longest)] {
        let documents = ordered(seed);
        let out = joined(&documents, folder.path());
        let clustering = Clustering { link: Link::Greedy, keep, order_by: Some("words".to_owned()) };
        let report = clustering.run(&out).unwrap();
        assert!(report.without_order > 0);
        let found = rows(&out);
        // As `dedup add` does with each document: ask, tell, insert.
        let index = MemoryIndex::new(Identity::new(3, Features::default()).unwrap());
        let mut ranks: BTreeMap<(&str, String), usize> = BTreeMap::new();
        let mut kept: BTreeSet<(&str, String)> = BTreeSet::new();
        for (rank, of) in in_order(&documents, keep).into_iter().enumerate() {
            let (language, hash) = (Language::parse(of.lang).unwrap(), SimHash(of.hash));
            let near = index.near(&[(language, hash)]).unwrap().remove(0);
            flagged += usize::from(!near.is_empty());
            index.insert(&[Document { language, id: of.id.as_str().into(), hash }]).unwrap();
            ranks.insert((of.lang, of.id.clone()), rank);
            let near = near.iter().map(|near| (near.distance, (of.lang, near.id.to_string())));
            let nearest =
                near.filter(|(_, id)| kept.contains(id)).min_by_key(|(distance, id)| (*distance, ranks[id]));
            let row = found.get(&(of.lang.to_owned(), of.id.clone()));
            match nearest {
                Some((distance, (_, id))) => {
                    copies += 1;
                    let [_, kept, told] = row.expect("a copy is in a cluster");
                    assert_eq!((kept, told), (&id, &distance.to_string()), "{} of seed {seed}", of.id);
                }
                None => {
                    kept.insert((of.lang, of.id.clone()));
                    assert!(row.is_none_or(|[_, kept, told]| *kept == of.id && told == "0"), "{}", of.id);
                }
            }
        }
        for ((lang, id), [cluster, kept, _]) in &found {
            let others = found.iter().filter(|((other, _), row)| other == lang && row[1] == *kept);
            let least = others.map(|((_, id), _)| id).min();
            assert_eq!(Some(cluster), least, "{id}");
        }
    }
    // A flag also names copies, so in chains more documents have one.
    assert!(copies > 1_000 && flagged > copies + 100, "{copies} copies, {flagged} flagged");
}

#[test]
fn of_each_component_the_first_oldest_or_longest_document_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let documents = ordered(51);
    let out = joined(&documents, folder.path());
    Clustering::new(Link::Components).run(&out).unwrap();
    let by_id = rows(&out);
    assert!(by_id.values().all(|[cluster, kept, _]| cluster == kept));
    let hashes: BTreeMap<(String, String), u128> =
        documents.iter().map(|of| ((of.lang.to_owned(), of.id.clone()), of.hash)).collect();
    for keep in [Keep::Oldest, Keep::Longest] {
        let clustering = Clustering { link: Link::Components, keep, order_by: Some("words".to_owned()) };
        clustering.run(&out).unwrap();
        let found = rows(&out);
        let mut expected: BTreeMap<(String, String), String> = BTreeMap::new();
        for of in in_order(&documents, keep) {
            if let Some([cluster, ..]) = by_id.get(&(of.lang.to_owned(), of.id.clone())) {
                expected.entry((of.lang.to_owned(), cluster.clone())).or_insert(of.id.clone());
            }
        }
        let mut others = 0;
        for ((lang, id), [cluster, kept, distance]) in &found {
            let at = |id: &String| hashes[&(lang.clone(), id.clone())];
            assert_eq!(*cluster, by_id[&(lang.clone(), id.clone())][0]);
            assert_eq!(*kept, expected[&(lang.clone(), cluster.clone())], "{keep:?}: {id}");
            let bits = (at(id) ^ at(kept)).count_ones();
            // Of documents that are not a pair, the distance is not told.
            assert_eq!(
                *distance,
                if bits <= 3 { bits.to_string() } else { String::new() },
                "{id} and {kept}"
            );
            others += usize::from(kept != cluster);
        }
        assert_eq!(found.len(), by_id.len());
        assert!(others > 100, "{others}");
    }
}

#[test]
fn an_order_needs_its_column_and_the_files_of_the_join() {
    let folder = tempfile::tempdir().unwrap();
    let out = joined(&ordered(61), folder.path());
    let refused = |keep, order_by: Option<&str>| {
        let order_by = order_by.map(str::to_owned);
        let error = Clustering { link: Link::Greedy, keep, order_by }.run(&out).unwrap_err();
        assert!(error.is_usage(), "{error}");
        error.to_string()
    };
    assert!(refused(Keep::Longest, None).contains("--order-by"));
    assert!(refused(Keep::Oldest, Some("date")).contains("no column date; it has id, lang, simhash, words"));
    std::fs::write(folder.path().join("in.csv"), "id,lang,simhash,words\n").unwrap();
    assert!(refused(Keep::Oldest, Some("words")).contains("in.csv: was changed"));
}

//! Clusters are those of a naive graph, and greedy ones what flags of each day say.

use std::collections::{BTreeMap, BTreeSet};

use huntsman_bulk::{Form, Link, cluster};

use crate::made::{Pairs, join, made, pairs, table};

/// Language and id, with language and id of what is kept.
type Kept = BTreeMap<(String, String), String>;

fn found(out: &std::path::Path) -> Kept {
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
        let report = cluster(&out, Link::Components).unwrap();
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
    cluster(&out, Link::Greedy).unwrap();
    let kept: Vec<_> = found(&out).into_values().collect();
    assert_eq!(kept, ["0", "0", "2", "2"]);
    cluster(&out, Link::Components).unwrap();
    assert_eq!(found(&out).into_values().collect::<BTreeSet<_>>().len(), 1);
}

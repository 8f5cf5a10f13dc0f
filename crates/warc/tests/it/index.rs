//! The index of many files, sorted within little memory.

use huntsman_warc::{CdxjIndex, Options, Record, RecordKind, WarcReader, WarcWriter, index_file};

/// A file with captures in no order, some of them twice.
fn file(seed: u64) -> Vec<u8> {
    let mut warc = WarcWriter::new(Vec::new(), Options::default());
    for n in 0..400_u64 {
        let page = n.wrapping_mul(7_919).wrapping_add(seed) % 350;
        let body = format!("<p>{page}");
        let record = Record::new(RecordKind::Response, "2026-01-01T00:00:00Z")
            .field("WARC-Target-URI", &format!("http://site.example/p\u{e4}ge/{page}"))
            .http(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n", body.as_bytes());
        warc.write(&record).unwrap();
    }
    warc.finish().unwrap()
}

#[test]
fn lines_beyond_the_memory_are_sorted_as_those_within_it() {
    let files: Vec<Vec<u8>> = (0..3).map(file).collect();
    // The last file is named twice.
    let named: Vec<(&str, &[u8])> = ["a", "b", "c", "c"]
        .into_iter()
        .zip([&files[0], &files[1], &files[2], &files[2]].map(|f| &f[..]))
        .collect();
    let mut expected = Vec::new();
    for (name, file) in &named {
        index_file(&mut WarcReader::new(*file), name, |line| expected.push(line)).unwrap();
    }
    expected.sort();
    expected.dedup();
    assert_eq!(expected.len(), 1_200);
    // From a run for each line to all in memory.
    for memory in [1, 5_000, 60_000, 100_000_000] {
        let mut index = CdxjIndex::with_memory(memory);
        for (name, file) in &named {
            assert!(index.add(&mut WarcReader::new(*file), name).unwrap().is_empty());
        }
        let lines: Vec<String> = index.lines().unwrap().map(Result::unwrap).collect();
        assert_eq!(lines, expected, "{memory} bytes of memory");
    }
}

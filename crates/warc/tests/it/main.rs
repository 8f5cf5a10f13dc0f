//! Files that are written, damaged and read again.

mod captures;
mod damage;
mod index;
mod posted;
mod tools;
mod wacz;

use huntsman_warc::{Options, Record, RecordKind, WarcReader};

/// The id and the block of each record of a file, and the errors on the way.
fn read(file: &[u8]) -> (Vec<(String, Vec<u8>)>, Vec<String>) {
    let mut reader = WarcReader::new(file);
    let (mut records, mut errors) = (Vec::new(), Vec::new());
    loop {
        let next = reader.next_head().and_then(|head| {
            let Some(head) = head else { return Ok(None) };
            let block = reader.block(u64::MAX)?;
            reader.finish()?;
            Ok(Some((head.get("X-Number").unwrap_or_default().to_owned(), block.bytes)))
        });
        match next {
            Ok(Some(record)) => records.push(record),
            Ok(None) => return (records, errors),
            Err(error) => errors.push(error.to_string()),
        }
        assert!(errors.len() < 1000, "it ends: {:?}", errors.last());
    }
}

/// Bodies that compress to members of many sizes.
fn bodies() -> Vec<Vec<u8>> {
    let noise = |length: usize, seed: u32| -> Vec<u8> {
        let mut state = seed | 1;
        std::iter::repeat_with(|| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state.to_be_bytes()[0]
        })
        .take(length)
        .collect()
    };
    vec![
        Vec::new(),
        b"x".to_vec(),
        b"WARC/1.1\r\nWARC-Type: response\r\n\r\n".to_vec(),
        noise(200_000, 1),
        b"<p>hello</p>".repeat(30_000),
        noise(70_000, 2),
        b"the end".to_vec(),
    ]
}

fn records(bodies: &[Vec<u8>]) -> Vec<Record<'_>> {
    let numbered = bodies.iter().enumerate();
    numbered
        .map(|(n, body)| {
            Record::new(RecordKind::Response, "2026-01-01T00:00:00Z")
                .field("WARC-Target-URI", "http://site.example/")
                .field("X-Number", &n.to_string())
                .http(b"HTTP/1.1 200 OK\r\n\r\n", body)
                // Both forms of members, the lines of another record among the stored bytes.
                .packed(n % 2 == 1 || n == 2)
        })
        .collect()
}

fn blocks(bodies: &[Vec<u8>]) -> Vec<(String, Vec<u8>)> {
    let block = |body: &Vec<u8>| [b"HTTP/1.1 200 OK\r\n\r\n", &body[..]].concat();
    bodies.iter().enumerate().map(|(n, body)| (n.to_string(), block(body))).collect()
}

#[test]
fn records_come_back_from_members_from_one_stream_and_without_compression() {
    use std::io::Write;
    let bodies = bodies();
    let plain: Vec<u8> =
        records(&bodies).iter().flat_map(|record| record.to_bytes(Default::default())).collect();
    let members: Vec<u8> =
        records(&bodies).iter().flat_map(|record| record.to_member(Options::default())).collect();
    let mut stream = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    stream.write_all(&plain).unwrap();
    let stream = stream.finish().unwrap();
    for file in [&plain, &members, &stream] {
        assert_eq!(read(file), (blocks(&bodies), Vec::new()));
    }
    let spans = |file: &[u8]| {
        let mut reader = WarcReader::new(file);
        let mut spans = Vec::new();
        while reader.next_head().unwrap().is_some() {
            spans.push(reader.finish().unwrap().unwrap());
        }
        spans
    };
    for file in [&plain, &members] {
        let mut at = 0;
        for span in spans(file) {
            assert!(span.is_separate && span.offset == at, "{span:?} {at}");
            at += span.length;
            let (from, to) = (usize::try_from(span.offset).unwrap(), usize::try_from(at).unwrap());
            assert_eq!(read(&file[from..to]).0.len(), 1, "{span:?} is one record");
        }
        assert_eq!(at, file.len() as u64);
    }
    assert!(spans(&stream).iter().all(|span| !span.is_separate || span.offset == 0));
}

#[test]
fn old_versions_folded_fields_and_bare_line_ends_are_read() {
    let file = b"WARC/0.17\nWARC-Type: response\nX-Number: a\n b\nwarc-target-uri: <http://a.example/>\n\
        Content-Length: 2\n\nhi\n\nWARC/0.18\r\nContent-Length: 0\r\n\r\n\r\n\r\nWARC/1.0\r\nWARC-Protocol: h2\r\n\
        WARC-Protocol: tls/1.3\r\nContent-Length: 1\r\n\r\nx\r\n\r\n";
    let mut reader = WarcReader::new(&file[..]);
    let first = reader.next_head().unwrap().unwrap();
    assert_eq!((first.version(), first.get("x-number")), ("0.17", Some("a b")));
    assert_eq!(first.target(), Some("http://a.example/"));
    assert_eq!(reader.next_head().unwrap().unwrap().version(), "0.18");
    let third = reader.next_head().unwrap().unwrap();
    assert_eq!(third.all("WARC-Protocol").collect::<Vec<_>>(), ["h2", "tls/1.3"]);
    assert_eq!(reader.block(10).unwrap().bytes, b"x");
    assert_eq!(reader.next_head().unwrap(), None);
}

#[test]
fn other_formats_are_refused_by_name() {
    for (start, name) in [
        (&b"\x28\xb5\x2f\xfd rest of a frame"[..], "zstd"),
        (b"\x5d\x2a\x4d\x18 a dictionary here", "zstd"),
        (b"filedesc://a.arc 0.0.0.0 2001", "ARC"),
        (b"PK\x03\x04 a file of a ZIP", "WACZ"),
    ] {
        let mut reader = WarcReader::new(start);
        let error = reader.next_head().unwrap_err();
        assert!(!error.is_damage() && error.to_string().contains(name), "{error}");
        assert_eq!(reader.next_head().unwrap(), None, "it ends");
    }
}

#[test]
fn a_block_is_read_up_to_its_limit_and_the_next_record_is_found() {
    let bodies = bodies();
    let file: Vec<u8> =
        records(&bodies).iter().flat_map(|record| record.to_member(Options::default())).collect();
    let mut reader = WarcReader::new(&file[..]);
    let mut cut = 0;
    for expected in blocks(&bodies) {
        reader.next_head().unwrap().unwrap();
        let block = reader.block(1000).unwrap();
        assert_eq!(block.bytes, expected.1[..expected.1.len().min(1000)]);
        assert_eq!(block.is_cut, expected.1.len() > 1000);
        cut += usize::from(block.is_cut);
    }
    assert_eq!(cut, 3);
}

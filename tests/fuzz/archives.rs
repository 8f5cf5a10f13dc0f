//! Archives: files of any program, cut, hurt or made up.

use huntsman::warc::{Archives, CaptureKey, Captures, Check, Payload, WarcReader, index_file};

/// Longest block that is kept.
const MAX_BLOCK: u64 = 1 << 20;

/// Reading ends, spans do not overlap and are within the file, and bodies do not exceed their limit.
pub(crate) fn warc(data: &[u8]) {
    let mut reader = WarcReader::new(data);
    let (mut behind, mut steps) = (0, 0_usize);
    loop {
        let record = reader.next_head().and_then(|head| {
            let Some(head) = head else { return Ok(None) };
            let block = reader.block(MAX_BLOCK)?;
            assert!(block.bytes.len() as u64 <= MAX_BLOCK);
            Ok(Some((head, block.bytes, reader.finish()?)))
        });
        match record {
            Ok(Some((head, block, Some(span)))) => {
                if span.is_separate {
                    assert!(span.offset >= behind, "records do not overlap");
                    behind = span.offset + span.length;
                }
                assert!(span.offset + span.length <= data.len() as u64, "a record is within its file");
                if let Ok(body) = Payload::new(&head, block).decoded(MAX_BLOCK) {
                    assert!(body.len() as u64 <= MAX_BLOCK);
                }
            }
            Ok(Some((.., None))) => unreachable!("a record whose head was read has a place"),
            Ok(None) => break,
            Err(error) => assert!(error.offset() <= data.len() as u64, "damage is within the file"),
        }
        steps += 1;
        assert!(steps <= 2 * data.len() + 2, "reading ends");
    }
    let _ = Check::default().file("a.warc", &mut WarcReader::new(data));
    let _ = index_file(&mut WarcReader::new(data), "a.warc", |line| assert!(!line.contains('\n')));
}

/// A packed file, and the lines of an index: what is found is within the file, and answers or tells why not.
pub(crate) fn wacz(data: &[u8]) {
    let folder = tempfile::tempdir().expect("a directory for temporary files");
    for name in ["a.wacz", "a.cdxj"] {
        let path = folder.path().join(name);
        std::fs::write(&path, data).expect("a file in an own directory");
        let Ok(archives) = Archives::named(&[path]) else { continue };
        for file in archives.files() {
            assert!(file.length().expect("it is there") <= data.len() as u64, "a part is within its file");
        }
        let Ok(captures) = Captures::read(&archives, |_, _| {}) else { continue };
        let key = CaptureKey::of("http://site.example/").expect("a URL");
        for capture in captures.of(key) {
            if let Ok(answer) = captures.answer(capture, MAX_BLOCK) {
                assert!(answer.payload.body().len() as u64 <= MAX_BLOCK);
            }
        }
    }
}

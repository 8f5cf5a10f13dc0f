//! Data that an index of near-duplicates reads: its log, and the responses of a Redis server.

use huntsman::detect::near::{DiskIndex, Identity, IndexErrorKind, NearIndex, fuzz};

thread_local! {
    /// An index whose log is rewritten for each input.
    static INDEX: tempfile::TempDir = {
        let folder = tempfile::tempdir().expect("a folder");
        DiskIndex::open(folder.path(), Identity::default()).expect("an empty index");
        folder
    };
}

/// Whether a segment begins with a valid header, the payloads of its frames, and raw bytes that are written after
/// them.
type Segment<'a> = (bool, Vec<&'a [u8]>, &'a [u8]);

/// Pieces of a log, each after its kind and length: payloads of frames, raw bytes, beginnings of segments. The index
/// must be opened, or refused and then repaired.
pub(crate) fn index(data: &[u8]) {
    let mut segments: Vec<Segment<'_>> = vec![(true, Vec::new(), &[])];
    let mut records = 0;
    let mut rest = data;
    while let [kind, high, low, tail @ ..] = rest {
        let (piece, tail) = tail.split_at(usize::from(u16::from_be_bytes([*high, *low])).min(tail.len()));
        rest = tail;
        let (_, payloads, damage) = segments.last_mut().expect("there is one from the beginning");
        match kind % 4 {
            0 | 1 => {
                records += fuzz::records(piece).unwrap_or(0);
                payloads.push(piece);
            }
            2 => *damage = piece,
            _ if segments.len() < 4 => segments.push((kind & 4 == 0, Vec::new(), &[])),
            _ => {}
        }
    }
    INDEX.with(|folder| {
        for entry in std::fs::read_dir(folder.path()).expect("it can be read") {
            let entry = entry.expect("it can be read");
            if entry.file_name().to_string_lossy().starts_with("log-") {
                std::fs::remove_file(entry.path()).expect("it can be removed");
            }
        }
        for ((is_base, payloads, damage), number) in segments.iter().zip(1..) {
            let mut bytes = fuzz::segment(number, *is_base, payloads);
            bytes.extend(*damage);
            std::fs::write(folder.path().join(format!("log-{number:010}")), bytes)
                .expect("it can be written");
        }
        let open = || DiskIndex::open(folder.path(), Identity::default());
        let opened = match open() {
            Ok(index) => index,
            Err(error) => {
                assert_eq!(error.kind(), IndexErrorKind::Damaged, "{error}");
                DiskIndex::repair(folder.path(), Identity::default()).expect("it can be repaired");
                open().expect("what was repaired opens")
            }
        };
        let documents = opened.stats().expect("it is in memory").documents();
        assert!(documents <= records as u64, "{documents} documents of {records} records");
    });
}

/// Responses of a Redis server: however the network splits them, the parsed result must be the same.
#[cfg(feature = "redis")]
pub(crate) fn resp(data: &[u8]) {
    use huntsman::dedup::redis::fuzz::answers;

    /// A reader that returns as many bytes at once as the data itself says.
    struct Drip<'a>(&'a [u8]);

    impl std::io::Read for Drip<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let most = self.0.first().map_or(0, |byte| usize::from(byte % 7) + 1);
            let length = self.0.len().min(buffer.len()).min(most);
            buffer[..length].copy_from_slice(&self.0[..length]);
            self.0 = &self.0[length..];
            Ok(length)
        }
    }

    for numbers in [false, true] {
        assert_eq!(answers(data, numbers), answers(Drip(data), numbers));
    }
}

//! Which records answer which requests.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use huntsman_warc::{
    Answer, Archives, CaptureKey, Captures, DigestKind, Moment, Options, Record, RecordKind, WarcReader,
    index_file,
};

const URL: &str = "http://site.example/a?b=c";
const SAME: &str = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest";

fn page<'a>(date: &str, head: &'a [u8], body: &'a [u8]) -> Record<'a> {
    let id = format!("<urn:{date}>");
    Record::new(RecordKind::Response, date).id(id).field("WARC-Target-URI", URL).http(head, body)
}

fn revisit<'a>(date: &str, of: &str, body: &[u8], head: &'a [u8]) -> Record<'a> {
    Record::new(RecordKind::Revisit, date)
        .field("WARC-Target-URI", "http://site.example/copy")
        .field("WARC-Profile", SAME)
        .field("WARC-Refers-To-Target-URI", URL)
        .field("WARC-Refers-To-Date", of)
        .field("WARC-Payload-Digest", &DigestKind::Sha1.of(body).to_string())
        .http(head, b"")
}

fn write(folder: &Path, name: &str, records: &[Record<'_>]) -> PathBuf {
    let path = folder.join(name);
    let members: Vec<Vec<u8>> = records.iter().map(|record| record.to_member(Options::default())).collect();
    fs::write(&path, members.concat()).unwrap();
    path
}

fn read(archives: &[PathBuf]) -> Captures {
    Captures::read(&Archives::named(archives).unwrap(), |file, damage| panic!("{file}: {damage}")).unwrap()
}

fn body_of(captures: &Captures, key: CaptureKey, at: Option<&str>) -> Option<String> {
    let capture = captures.nearest(key, at.map(|at| Moment::parse(at).unwrap()))?;
    let answer = captures.answer(capture, 1 << 20).unwrap();
    Some(String::from_utf8_lossy(answer.payload.body()).into_owned())
}

#[test]
fn the_capture_nearest_to_a_time_answers_and_the_last_one_without_a_time() {
    let folder = tempfile::tempdir().unwrap();
    const OK: &[u8] = b"HTTP/1.1 200 OK\r\n\r\n";
    let first = [page("2026-01-31T23:59:50Z", OK, b"january"), page("2026-03-01T00:00:00Z", OK, b"march")];
    let second = [
        page("2026-02-01T00:00:30Z", OK, b"february"),
        page("2026-04-01T00:00:00Z", b"HTTP/1.1 304 Not Modified\r\n\r\n", b""),
    ];
    let archives = [write(folder.path(), "a.warc.gz", &first), write(folder.path(), "b.warc.gz", &second)];
    let captures = read(&archives);
    let key = CaptureKey::of(URL).unwrap();
    for (at, expected) in [
        (None, "march"),
        (Some("2026-02-01"), "january"),
        (Some("20260201000020"), "february"),
        (Some("2026-12"), "march"),
        (Some("1999"), "january"),
    ] {
        assert_eq!(body_of(&captures, key, at).as_deref(), Some(expected), "{at:?}");
    }
    assert_eq!(captures.len(), 4);
    assert_eq!(body_of(&captures, CaptureKey::of("http://site.example/a").unwrap(), None), None);
}

#[test]
fn a_revisit_has_its_own_head_and_the_body_of_its_original_in_another_file() {
    let folder = tempfile::tempdir().unwrap();
    const OK: &[u8] = b"HTTP/1.1 200 OK\r\nX-Of: original\r\n\r\n";
    let date = "2026-01-01T00:00:00Z";
    let originals = [page(date, OK, b"the body"), page("2026-01-01T00:00:01Z", OK, b"another")];
    let again =
        revisit("2026-02-01T00:00:00Z", date, b"the body", b"HTTP/1.1 200 OK\r\nX-Of: revisit\r\n\r\n");
    let later = revisit("2026-03-01T00:00:00Z", date, b"the body", b"HTTP/1.1 304 Not Modified\r\n\r\n");
    let archives =
        [write(folder.path(), "a.warc.gz", &originals), write(folder.path(), "b.warc.gz", &[again, later])];
    let captures = read(&archives);
    let key = CaptureKey::of("http://site.example/copy").unwrap();
    let answer = |at| {
        let capture = captures.nearest(key, Moment::parse(at)).unwrap();
        captures.answer(capture, 1 << 20).unwrap()
    };
    let facts = |answer: &Answer| {
        let http = answer.payload.http().unwrap();
        let body = String::from_utf8_lossy(answer.payload.body()).into_owned();
        (http.status(), http.get("x-of").map(str::to_owned), body)
    };
    assert_eq!(facts(&answer("20260201")), (Some(200), Some("revisit".to_owned()), "the body".to_owned()));
    assert_eq!(facts(&answer("20260301")), (Some(200), Some("original".to_owned()), "the body".to_owned()));

    let alone = read(&archives[1..]);
    let error = alone.answer(alone.nearest(key, None).unwrap(), 1 << 20).unwrap_err();
    assert!(error.is_unresolved() && error.to_string().contains(URL), "{error}");
}

#[test]
fn requests_with_a_body_are_told_apart_whichever_record_names_the_other() {
    let folder = tempfile::tempdir().unwrap();
    const OK: &[u8] = b"HTTP/1.1 200 OK\r\n\r\n";
    const POST: &[u8] = b"POST /a?b=c HTTP/1.1\r\nHost: site.example\r\n\r\n";
    let request = |id: &str, body| {
        Record::new(RecordKind::Request, "2026-01-01T00:00:00Z")
            .id(id)
            .field("WARC-Target-URI", URL)
            .http(POST, body)
    };
    let records = [
        page("2026-01-01T00:00:00Z", OK, b"for x"),
        request("<urn:x>", b"q=x").field("WARC-Concurrent-To", "<urn:2026-01-01T00:00:00Z>"),
        request("<urn:y>", b"q=y"),
        page("2026-01-01T00:00:01Z", OK, b"for y").field("WARC-Concurrent-To", "<urn:y>"),
        page("2026-01-01T00:00:02Z", OK, b"for get"),
    ];
    let captures = read(&[write(folder.path(), "a.warc.gz", &records)]);
    let key = CaptureKey::of(URL).unwrap();
    for (key, expected) in [
        (key, Some("for get")),
        (key.with("POST", b"q=x"), Some("for x")),
        (key.with("post", b"q=y"), Some("for y")),
        (key.with("POST", b"q=z"), None),
        (key.with("PUT", b"q=x"), None),
    ] {
        assert_eq!(body_of(&captures, key, None).as_deref(), expected);
    }
}

#[test]
fn an_index_gives_the_captures_without_reading_the_files() {
    let folder = tempfile::tempdir().unwrap();
    const OK: &[u8] = b"HTTP/1.1 200 OK\r\n\r\n";
    let noise: Vec<u8> = (0..100_000_u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    let other = Record::new(RecordKind::Response, "2026-01-01T00:00:00Z")
        .field("WARC-Target-URI", "http://site.example/noise")
        .http(OK, &noise);
    let records = [other, page("2026-01-02T00:00:00Z", OK, b"wanted")];
    fs::create_dir_all(folder.path().join("archive")).unwrap();
    fs::create_dir_all(folder.path().join("indexes")).unwrap();
    let path = write(&folder.path().join("archive"), "a.warc.gz", &records);
    let mut lines = Vec::new();
    let mut reader = WarcReader::new(fs::File::open(&path).unwrap());
    index_file(&mut reader, "a.warc.gz", |line| lines.push(line)).unwrap();
    let index = folder.path().join("indexes/index.cdxj");
    fs::write(&index, lines.join("\n")).unwrap();

    // What stands before the capture is not looked at.
    let mut bytes = fs::read(&path).unwrap();
    bytes[20..200_000].fill(0);
    fs::write(&path, bytes).unwrap();
    let captures = read(std::slice::from_ref(&index));
    let key = CaptureKey::of(URL).unwrap();
    assert_eq!(body_of(&captures, key, None).as_deref(), Some("wanted"));

    fs::write(&index, "site,example)/ 2026 {\"url\": \"http://site.example/\"}").unwrap();
    let error = Captures::read(&Archives::named(&[&index]).unwrap(), |_, _| {}).unwrap_err().to_string();
    assert!(error.ends_with("line 1: it has no offset"), "{error}");
    fs::write(&index, lines[0].replace("a.warc.gz", "b.warc.gz")).unwrap();
    let error = Captures::read(&Archives::named(&[&index]).unwrap(), |_, _| {}).unwrap_err().to_string();
    assert!(error.contains("line 1: b.warc.gz is neither beside the index nor named"), "{error}");
}

#[test]
fn damage_costs_what_it_hits_and_one_stream_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    const OK: &[u8] = b"HTTP/1.1 200 OK\r\n\r\n";
    let records = [page("2026-01-01T00:00:00Z", OK, b"lost"), page("2026-01-02T00:00:00Z", OK, b"kept")];
    let path = write(folder.path(), "a.warc.gz", &records);
    let mut bytes = fs::read(&path).unwrap();
    bytes[40] ^= 0xff;
    fs::write(&path, &bytes).unwrap();
    let mut told = Vec::new();
    let captures =
        Captures::read(&Archives::named(&[&path]).unwrap(), |_, damage| told.push(damage.to_string()))
            .unwrap();
    assert_eq!((captures.damaged(), captures.len(), told.len()), (1, 1, 1), "{told:?}");
    assert_eq!(body_of(&captures, CaptureKey::of(URL).unwrap(), None).as_deref(), Some("kept"));

    let mut stream = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    for record in &records {
        stream.write_all(&record.to_bytes(DigestKind::Sha1)).unwrap();
    }
    fs::write(&path, stream.finish().unwrap()).unwrap();
    let error = Captures::read(&Archives::named(&[&path]).unwrap(), |_, _| {}).unwrap_err().to_string();
    assert!(error.contains("one gzip stream"), "{error}");
}

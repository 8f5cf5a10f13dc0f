//! Other programs read what is written here, and their files are read here.

use std::fs;
use std::path::Path;
use std::process::Command;

use huntsman_warc::{Options, Record, RecordKind, WarcWriter};

use crate::{blocks, bodies, read, records};

/// What a Python program prints; it fails with the way to install what it needs.
pub(crate) fn python(program: &str, arguments: &[&Path]) -> String {
    let out = Command::new("warc-python").arg("-c").arg(program).args(arguments).output();
    let out = out.expect("warc-python (Python with warcio and fastwarc) is in PATH: run ./setup.sh, and add the folder that it names to PATH");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

#[test]
fn warcio_and_fastwarc_read_all_records_and_their_digests_are_right() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.warc.gz");
    let mut warc = WarcWriter::new(Vec::new(), Options::default());
    warc.write(&Record::info("a.warc.gz", "2026-01-01T00:00:00Z", &[("software", "test")])).unwrap();
    let bodies = bodies();
    for record in records(&bodies) {
        warc.write(&record).unwrap();
    }
    let post = Record::new(RecordKind::Request, "2026-01-01T00:00:00.123456Z")
        .field("WARC-Target-URI", "http://site.example/")
        .http(b"POST / HTTP/1.1\r\nHost: site.example\r\nContent-Length: 3\r\n\r\n", b"a=b");
    warc.write(&post).unwrap();
    warc.write(&Record::metadata("2026-01-01T00:00:00Z", &[("via", "http://a.example/")])).unwrap();
    fs::write(&path, warc.finish().unwrap()).unwrap();
    let seen = python(
        "import sys
from warcio.archiveiterator import ArchiveIterator
from fastwarc.warc import ArchiveIterator as Fast
n = checked = 0
with open(sys.argv[1], 'rb') as f:
    for r in ArchiveIterator(f, check_digests='raise'):
        r.content_stream().read(); n += 1; checked += bool(r.digest_checker.passed)
fast = sum(1 for r in Fast(open(sys.argv[1], 'rb'), parse_http=False) if r.verify_block_digest())
print(n, checked, fast)",
        &[&path],
    );
    let count = bodies.len() + 3;
    assert_eq!(seen.trim(), format!("{count} {count} {count}"));
}

#[test]
fn files_of_warcio_are_read_whole() {
    let folder = tempfile::tempdir().unwrap();
    for (name, is_compressed) in [("a.warc.gz", "True"), ("a.warc", "False")] {
        let path = folder.path().join(name);
        let bodies_at = folder.path().join("bodies");
        fs::create_dir_all(&bodies_at).unwrap();
        let bodies = bodies();
        for (n, body) in bodies.iter().enumerate() {
            fs::write(bodies_at.join(n.to_string()), body).unwrap();
        }
        python(
            &format!(
                "import sys, io, os
from warcio.warcwriter import WARCWriter
from warcio.statusandheaders import StatusAndHeaders
with open(sys.argv[1], 'wb') as f:
    w = WARCWriter(f, gzip={is_compressed})
    for n in range({}):
        body = open(os.path.join(sys.argv[2], str(n)), 'rb')
        head = StatusAndHeaders('200 OK', [], protocol='HTTP/1.1')
        w.write_record(w.create_warc_record('http://site.example/', 'response', payload=body,
            http_headers=head, warc_headers_dict={{'X-Number': str(n)}}))",
                bodies.len()
            ),
            &[&path, &bodies_at],
        );
        assert_eq!(read(&fs::read(&path).unwrap()), (blocks(&bodies), Vec::new()));
    }
}

#[test]
fn keys_and_lines_are_those_of_cdxj_indexer() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.warc.gz");
    let urls = [
        "http://www.Example.com:80/",
        "https://www2.example.com/A/b/../C/./d//e/?z=1&A=2&a=1&b",
        "http://example.com:8080/%7Euser/%2525/caf%C3%A9?q=%20x+y#part",
        "http://127.0.0.1:9000/x",
        "http://[::1]:81/",
        "https://example.com/?",
        "https://example.com/a.php?PHPSESSID=0123456789abcdef0123456789abcdef&x=1",
        "http://user:secret@example.com/dir/",
        "urn:text:http://example.com/Page",
        "http://example.com/a;b=c?d=e=f&&g",
    ];
    let mut warc = WarcWriter::new(Vec::new(), Options::default());
    for (n, url) in urls.iter().enumerate() {
        let id = format!("<urn:uuid:00000000-0000-8000-8000-00000000000{n}>");
        let page = Record::new(RecordKind::Response, "2026-01-02T03:04:05.678Z")
            .id(&*id)
            .field("WARC-Target-URI", url)
            .http(b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n", b"page \xc3\xa9");
        warc.write(&page).unwrap();
        let form = Record::new(RecordKind::Request, "2026-01-02T03:04:05.678Z")
            .field("WARC-Target-URI", url)
            .field("WARC-Concurrent-To", &id);
        let form = match n % 3 {
            0 => form.http(b"GET / HTTP/1.1\r\n\r\n", b""),
            1 => form.http(
                b"POST / HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 11\r\n\r\n",
                b"a=%C3%A9+b&c",
            ),
            _ => form.http(b"PUT / HTTP/1.1\r\nContent-Length: 3\r\n\r\n", b"\xff\x00\x01"),
        };
        warc.write(&form).unwrap();
    }
    fs::write(&path, warc.finish().unwrap()).unwrap();
    let expected = python(
        "import sys
from cdxj_indexer.main import main
main(['-s', '-p'] + sys.argv[1:])",
        &[&path],
    );
    let mut lines = Vec::new();
    let file = fs::File::open(&path).unwrap();
    let damaged = huntsman_warc::index_file(&mut huntsman_warc::WarcReader::new(file), "a.warc.gz", |line| {
        lines.push(line)
    });
    assert!(damaged.unwrap().is_empty());
    lines.sort();
    let expected: Vec<&str> = expected.lines().collect();
    assert_eq!(lines, expected);
}

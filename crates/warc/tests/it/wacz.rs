//! WACZ files, judged by the programs of the format.

use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::process::Command;

use huntsman_warc::{Options, PackedPage, PageText, Record, RecordKind, WaczOptions, pack_wacz};

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n";

fn page(url: &str, date: &str, body: &'static [u8]) -> Record<'static> {
    Record::new(RecordKind::Response, date)
        .id(format!("<urn:{url}:{date}>"))
        .field("WARC-Target-URI", url)
        .http(OK, body)
}

fn metadata(url: &str, date: &str, hops: &str) -> Record<'static> {
    Record::metadata(date, &[("hopsFromSeed", hops)])
        .field("WARC-Concurrent-To", &format!("<urn:{url}:{date}>"))
}

fn write(folder: &Path, name: &str, records: &[Record<'_>]) -> PathBuf {
    let path = folder.join(name);
    let members: Vec<Vec<u8>> = records.iter().map(|record| record.to_member(Options::default())).collect();
    fs::write(&path, members.concat()).unwrap();
    path
}

fn pack(files: &[PathBuf]) -> Result<Vec<u8>, String> {
    let options = WaczOptions {
        software: "test".to_owned(),
        created: "2026-02-01T00:00:00Z".to_owned(),
        title: Some("A \"site\"".to_owned()),
        description: None,
    };
    let text_of = |page: &PackedPage<'_>| PageText {
        title: Some(String::from_utf8_lossy(page.body).into_owned()),
        text: None,
    };
    let packed = pack_wacz(files, Cursor::new(Vec::new()), &options, text_of, |_, _| {});
    Ok(packed.map_err(|error| error.to_string())?.1.into_inner())
}

/// Reads the file with Python's own modules, and compares each digest and length.
const READ: &str = "import sys, zipfile, json, hashlib, gzip
z = zipfile.ZipFile(sys.argv[1])
assert z.testzip() is None
assert all(i.compress_type == zipfile.ZIP_STORED for i in z.infolist())
p = json.loads(z.read('datapackage.json'))
assert p['profile'] == 'data-package' and p['wacz_version'] == '1.1.1' and p['title'] == 'A \"site\"', p
for r in p['resources']:
    b = z.read(r['path'])
    assert (len(b), 'sha256:' + hashlib.sha256(b).hexdigest()) == (r['bytes'], r['hash']), r
d = json.loads(z.read('datapackage-digest.json'))
assert d['hash'] == 'sha256:' + hashlib.sha256(z.read('datapackage.json')).hexdigest()
listed = {r['path'] for r in p['resources']} | {'datapackage.json', 'datapackage-digest.json'}
assert listed == set(z.namelist())
lines = gzip.decompress(z.read('indexes/index.cdx.gz')).decode().splitlines()
assert lines == sorted(lines)
for line in lines:
    f = json.loads(line[line.index('{'):])
    b = z.read('archive/' + f['filename'])[int(f['offset']):][:int(f['length'])]
    assert f['url'].encode() in gzip.decompress(b)
for name in ('pages/pages.jsonl', 'pages/extraPages.jsonl'):
    if name in z.namelist():
        rows = [json.loads(l) for l in z.read(name).decode().splitlines()]
        assert rows[0]['format'] == 'json-pages-1.0'
        print(name, [(r['url'], r['ts'], r['title']) for r in rows[1:]])
print(len(lines))";

fn python(program: &str, argument: &Path) -> String {
    let out = Command::new("warc-python").args(["-c", program]).arg(argument).output();
    let out = out.expect("warc-python (Python with warcio) is in PATH: run ./setup.sh");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

#[test]
fn digests_index_and_lists_of_pages_are_right_and_the_programs_of_the_format_accept_them() {
    let folder = tempfile::tempdir().unwrap();
    let seed = "http://site.example/";
    let first = [
        page(seed, "2026-01-01T00:00:00Z", b"old"),
        metadata(seed, "2026-01-01T00:00:00Z", "0"),
        page("http://site.example/a", "2026-01-01T00:00:01Z", b"linked"),
        metadata("http://site.example/a", "2026-01-01T00:00:01Z", "1"),
        Record::new(RecordKind::Response, "2026-01-01T00:00:02Z")
            .field("WARC-Target-URI", "http://site.example/gone")
            .http(b"HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\n\r\n", b"gone"),
    ];
    let second = [page(seed, "2026-01-02T00:00:00Z", b"new")];
    let files = [write(folder.path(), "a.warc.gz", &first), write(folder.path(), "B (2).warc.gz", &second)];
    let path = folder.path().join("site.wacz");
    fs::write(&path, pack(&files).unwrap()).unwrap();
    let seen = python(READ, &path);
    let expected = "pages/pages.jsonl [('http://site.example/', '2026-01-02T00:00:00Z', 'new')]\n\
        pages/extraPages.jsonl [('http://site.example/a', '2026-01-01T00:00:01Z', 'linked')]\n4\n";
    assert_eq!(seen, expected);
    let validated = Command::new("wacz").args(["validate", "-f"]).arg(&path).output();
    let validated = validated.expect("wacz (py-wacz) is in PATH: run ./setup.sh");
    let said = String::from_utf8_lossy(&validated.stdout).into_owned();
    assert!(validated.status.success() && said.contains("the passed WACZ is valid"), "{said}");
}

#[test]
fn archives_that_do_not_tell_how_pages_were_found_have_all_of_them_in_the_first_list() {
    let folder = tempfile::tempdir().unwrap();
    let records = [
        page("http://a.example/", "2026-01-01T00:00:00Z", b"a"),
        page("http://b.example/", "2026-01-01T00:00:00Z", b"b"),
    ];
    let path = folder.path().join("site.wacz");
    fs::write(&path, pack(&[write(folder.path(), "a.warc.gz", &records)]).unwrap()).unwrap();
    let seen = python(READ, &path);
    assert!(
        seen.contains("http://a.example/")
            && seen.contains("http://b.example/")
            && !seen.contains("extraPages"),
        "{seen}"
    );
}

#[test]
fn files_of_one_name_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("b")).unwrap();
    let records = [page("http://a.example/", "2026-01-01T00:00:00Z", b"a")];
    let files =
        [write(folder.path(), "a.warc.gz", &records), write(&folder.path().join("b"), "a.warc.gz", &records)];
    assert!(pack(&files).unwrap_err().contains("an earlier file has the same name"));
}

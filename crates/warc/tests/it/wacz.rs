//! WACZ files, judged by the programs of the format.

use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::process::Command;

use huntsman_warc::{
    Archive, Archives, CaptureKey, Captures, Options, PackedPage, PageText, Record, RecordKind, WaczOptions,
    pack_wacz,
};
use rand::{Rng, RngExt, SeedableRng, rngs::StdRng};

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
    let files: Vec<Archive> = files.iter().map(Archive::file).collect();
    let packed = pack_wacz(&files, Cursor::new(Vec::new()), &options, text_of, |_, _| {});
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

fn body_of(archives: &Archives, url: &str) -> Option<String> {
    let captures = Captures::read(archives, |file, damage| panic!("{file}: {damage}")).unwrap();
    let capture = captures.nearest(CaptureKey::of(url).unwrap(), None)?;
    let answer = captures.answer(capture, 1 << 20).unwrap();
    Some(String::from_utf8_lossy(answer.payload.body()).into_owned())
}

/// A WACZ file with a page in each of two archives.
fn packed(folder: &Path) -> PathBuf {
    let first = [page("http://site.example/", "2026-01-01T00:00:00Z", b"one")];
    let second = [
        page("http://site.example/x", "2026-01-02T00:00:00Z", b"not asked for"),
        page("http://site.example/b", "2026-01-02T00:00:01Z", b"two"),
    ];
    let files = [write(folder, "a.warc.gz", &first), write(folder, "b.warc.gz", &second)];
    let path = folder.join("site.wacz");
    fs::write(&path, pack(&files).unwrap()).unwrap();
    path
}

#[test]
fn a_packed_file_is_read_where_its_index_says_and_nowhere_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = packed(folder.path());
    let archives = Archives::named(&[&path]).unwrap();
    let names: Vec<&str> = archives.files().iter().map(Archive::file_name).collect();
    assert_eq!((names, archives.indexes().len()), (vec!["a.warc.gz", "b.warc.gz"], 1));
    // The files beside it are another archive, and the record before the one that is asked for is gone.
    fs::remove_file(folder.path().join("b.warc.gz")).unwrap();
    let mut bytes = fs::read(&path).unwrap();
    let member =
        page("http://site.example/x", "2026-01-02T00:00:00Z", b"not asked for").to_member(Options::default());
    let at = bytes.windows(member.len()).position(|window| window == member).unwrap();
    bytes[at..at + member.len()].fill(0);
    fs::write(&path, bytes).unwrap();
    assert_eq!(body_of(&archives, "http://site.example/b").as_deref(), Some("two"));
    assert_eq!(body_of(&archives, "http://site.example/").as_deref(), Some("one"));
    // Beside it a file without an index is read as ever.
    let other =
        write(folder.path(), "c.warc.gz", &[page("http://c.example/", "2026-01-01T00:00:00Z", b"three")]);
    let both = Archives::named(&[&path, &other]).unwrap();
    assert_eq!(body_of(&both, "http://c.example/").as_deref(), Some("three"));
    assert_eq!(body_of(&both, "http://site.example/b").as_deref(), Some("two"));
}

/// Files as other programs make them: entries of all kinds, sizes behind the content, an index that is compressed, none at all, and an archive
/// that is compressed.
const FOREIGN: &str = "import sys, zipfile, gzip
folder = sys.argv[1]
warc = open(folder + '/a.warc.gz', 'rb').read()
length = len(warc)
line = 'example,site)/ 20260101000000 {\"url\": \"http://site.example/\", \"filename\": \"a.warc.gz\", \"offset\": \"0\", \"length\": \"%d\"}\\n' % length
class Pipe:
    def __init__(self, name): self.file = open(name, 'wb')
    def write(self, data): return self.file.write(data)
    def flush(self): self.file.flush()
    def close(self): self.file.close()
def make(name, method, index, out=None):
    z = zipfile.ZipFile(out or folder + '/' + name, 'w')
    z.writestr('pages/pages.jsonl', '{}', zipfile.ZIP_DEFLATED)
    z.writestr('archive/a.warc.gz', warc, method)
    if index: z.writestr(index, gzip.compress(line.encode()) if index.endswith('.gz') else line, zipfile.ZIP_DEFLATED)
    z.comment = b'PK\\x05\\x06 in a comment'
    z.close()
make('deflated-index.wacz', zipfile.ZIP_STORED, 'indexes/index.cdxj')
make('no-index.wacz', zipfile.ZIP_STORED, None)
pipe = Pipe(folder + '/streamed.wacz')
make('', zipfile.ZIP_STORED, 'indexes/index.cdx.gz', pipe)
pipe.close()
make('deflated.wacz', zipfile.ZIP_DEFLATED, None)
z = zipfile.ZipFile(folder + '/empty.wacz', 'w'); z.writestr('a', 'b'); z.close()
";

#[test]
fn files_that_other_programs_packed_are_read_and_what_cannot_be_is_told() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "a.warc.gz", &[page("http://site.example/", "2026-01-01T00:00:00Z", b"one")]);
    python(FOREIGN, folder.path());
    fs::remove_file(folder.path().join("a.warc.gz")).unwrap();
    for name in ["deflated-index.wacz", "no-index.wacz", "streamed.wacz"] {
        let archives = Archives::named(&[folder.path().join(name)]).unwrap();
        assert_eq!(body_of(&archives, "http://site.example/").as_deref(), Some("one"), "{name}");
    }
    for (name, why) in [
        ("deflated.wacz", "archive/a.warc.gz is compressed in it"),
        ("empty.wacz", "it has no WARC file in its folder archive"),
    ] {
        let error = Archives::named(&[folder.path().join(name)]).unwrap_err().to_string();
        assert!(error.contains(why), "{name}: {error}");
    }
}

#[test]
fn whatever_happens_to_a_packed_file_is_an_error_and_costs_no_more_than_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = packed(folder.path());
    let whole = fs::read(&path).unwrap();
    let seed = rand::random();
    println!("seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    for round in 0..2_000 {
        let mut bytes = whole.clone();
        if round % 2 == 0 {
            bytes.truncate(random.random_range(0..whole.len()));
        }
        for _ in 0..round % 5 {
            // Most of what is read is at the end.
            let from = if random.random_bool(0.8) { bytes.len().saturating_sub(900) } else { 0 };
            if from < bytes.len() {
                let at = random.random_range(from..bytes.len());
                bytes[at] = random.next_u32() as u8;
            }
        }
        fs::write(&path, &bytes).unwrap();
        let Ok(archives) = Archives::named(&[&path]) else { continue };
        for file in archives.files() {
            assert!(file.length().unwrap() <= bytes.len() as u64, "round {round}");
        }
        let Ok(captures) = Captures::read(&archives, |_, _| {}) else { continue };
        for url in ["http://site.example/", "http://site.example/b"] {
            let Some(capture) = captures.nearest(CaptureKey::of(url).unwrap(), None) else { continue };
            // It answers, or tells why not.
            let _ = captures.answer(capture, 1 << 20);
        }
    }
}

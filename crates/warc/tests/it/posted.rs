//! Requests with a body in the lines of an index, as `cdxj-indexer -p` writes them.

use std::fs;

use data_encoding::BASE64;
use huntsman_warc::{Options, Record, RecordKind, WarcReader, WarcWriter, index_file};

use crate::tools::python;

/// A request with a body, and the type that its head tells.
struct Form {
    method: &'static str,
    content_type: &'static str,
    /// More lines of the head.
    more: &'static str,
    body: Vec<u8>,
}

fn form(content_type: &'static str, body: impl Into<Vec<u8>>) -> Form {
    Form { method: "POST", content_type, more: "", body: body.into() }
}

const JSON: &str = "application/json; charset=utf-8";
const PARTS: &str = "multipart/form-data; boundary=XyZ";

fn jsons() -> impl Iterator<Item = &'static str> {
    [
        r#"{"a": 1, "b": "two words & more", "c": true, "d": null, "e": 1.0, "f": -1.5e-7, "g": 1e400}"#,
        r#"{"a": {"x": 1, "y": [1, 2, {"x": "again"}]}, "x": {"x": false}, "": "unnamed", "e": [], "o": {}}"#,
        r#"[{"a": 1}, {"a": 2}, {"a": 3}, "bare", 7]"#,
        r#"{"a": 1, "b": 2, "a": 3}"#,
        r#"{"\u00e9": "\ud83d\ude00 \/ \u0007", "café": "über ~-_.*"}"#,
        r#"{"half": "\ud83d"}"#,
        r#"{"n": NaN, "i": -Infinity, "j": Infinity}"#,
        r#"{"a": 123456789012345678901234567890, "z": -0, "f": -0.0, "y": 1E22, "x": 0.00001234}"#,
        "{\"one\": 1}\n{\"two\": 2}\n[{\"one\": 3}]",
        "{\"one\": 1}\n{\"two\": 2}\n",
        "\u{feff}{\"bom\": 1}",
        r#"{"a": 1} more"#,
        r#"{"a": 01}"#,
        r#"{"a": 1., "b": 2}"#,
        r#"{"a": 1,}"#,
        "{'a': 1}",
        "{\"a\": \"tab\tin it\"}",
        "\"text\"",
        "5",
        "",
        "  { \"a\" : [ 1 , 2 ] }  \n ",
        r#"{"a.2_": 1, "a": 2, "b": {"a": 3}}"#,
    ]
    .into_iter()
}

fn part(head: &str, content: &str) -> String {
    format!("--XyZ\r\n{head}\r\n\r\n{content}\r\n")
}

fn field(name: &str, content: &str) -> String {
    part(&format!("Content-Disposition: form-data; name={name}"), content)
}

fn forms() -> Vec<Form> {
    let mut forms: Vec<Form> =
        jsons().flat_map(|body| [form(JSON, body), form("text/plain;charset=UTF-8", body)]).collect();
    forms.push(form(JSON, b"{\"a\": \"\xff\"}"));
    forms.push(form(JSON, format!("{{\"long\": \"{}\", \"next\": 1}}", "é ".repeat(3_000))));
    forms.push(form(JSON, format!("{{\"deep\": {}1{}}}", "[".repeat(500), "]".repeat(500))));
    forms.push(form(JSON, format!("{{\"digits\": {}}}", "9".repeat(4_301))));
    forms.push(form(JSON, format!("{{\"large\": \"{}\"}}", "x".repeat(400_000))));
    forms.push(form("text/plain", "just words, and ü"));
    forms.push(form("application/x-www-form-urlencoded", "a=%C3%A9+b&c=%zz&d=%C3&e=é&a=2"));
    forms.push(form("application/x-www-form-urlencoded", b"a=\xff"));
    forms.push(form("application/x-www-form-urlencoded", "x=1&".repeat(2_000)));
    forms.push(form("application/octet-stream", (0..=255).cycle().take(5_000).collect::<Vec<u8>>()));
    forms.push(form("", "no type"));
    let many = [
        field("\"plain\"", "value & more"),
        field("\"caf%22é\"", "über\r\n\r\nlines"),
        field("bare", ""),
        part(
            "Content-Disposition: form-data; name=\"f\"; filename=\"a.bin\"\r\nContent-Type: image/png",
            "\u{1}\u{2}\r\n--XyNot",
        ),
        part(
            "content-disposition: form-data; filename=\"\"; name=\"an \\\"empty\\\" file\"\r\nContent-Length: 3",
            "abc",
        ),
        part(
            "Content-Type: text/plain; charset=iso-8859-1\r\nContent-Disposition: form-data;\r\n name=\"folded\"",
            "é",
        ),
        field("\"plain\"", "again"),
    ];
    forms.push(form(PARTS, many.concat() + "--XyZ--\r\n"));
    forms.push(form(PARTS, "\r\n".to_owned() + &many[0] + "--XyZ--"));
    forms.push(form(PARTS, "--XyZ--"));
    forms.push(form("multipart/form-data", many[0].clone()));
    forms.push(Form { method: "PUT", ..form(JSON, "{\"put\": 1}") });
    forms.push(Form { method: "PATCH", ..form(JSON, "{\"patched\": 1}") });
    forms.push(Form { method: "DELETE", ..form("", "") });
    forms.push(Form { method: "post", ..form(JSON, "{\"small\": 1}") });
    forms.push(Form { more: "Content-Length: many\r\n", ..form(JSON, "{\"a\": 1}") });
    forms.push(Form { more: "Content-Length: 5\r\n", ..form("text/plain", "[1,2]cut off") });
    forms.push(Form { more: "Transfer-Encoding: chunked\r\n", ..form(JSON, "8\r\n{\"a\": 1}\r\n0\r\n\r\n") });
    forms
}

/// A response and a request for each form, the one or the other before. The addresses have no query, or one.
fn archive(forms: &[Form]) -> Vec<u8> {
    let mut warc = WarcWriter::new(Vec::new(), Options::default());
    for (n, form) in forms.iter().enumerate() {
        let url = format!("http://site.example/{n}{}", ["", "?Q=1&a=b"][n % 2]);
        let id = |part: &str| format!("<urn:uuid:00000000-0000-8000-800{part}-{n:012}>");
        let is_before = n % 3 == 0;
        let record = |kind, own: &str, other: &str, is_second: bool| {
            let record = Record::new(kind, "2026-01-02T03:04:05Z").id(id(own));
            let record = record.field("WARC-Target-URI", &url);
            if is_second { record.field("WARC-Concurrent-To", &id(other)) } else { record }
        };
        let page = record(RecordKind::Response, "a", "b", is_before);
        let page = page.http(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n", b"page");
        let mut head = format!("{} /{n} HTTP/1.1\r\n{}", form.method, form.more);
        if !form.content_type.is_empty() {
            head += &format!("Content-Type: {}\r\n", form.content_type);
        }
        if form.more.is_empty() {
            head += &format!("Content-Length: {}\r\n", form.body.len());
        }
        head += "\r\n";
        let asked = record(RecordKind::Request, "b", "a", !is_before).http(head.as_bytes(), &form.body);
        let both = if is_before { [&asked, &page] } else { [&page, &asked] };
        both.into_iter().for_each(|record| warc.write(record).unwrap());
    }
    warc.finish().unwrap()
}

fn lines_of(archive: &[u8]) -> Vec<String> {
    let mut lines = Vec::new();
    let damaged = index_file(&mut WarcReader::new(archive), "a.warc.gz", |line| lines.push(line)).unwrap();
    assert!(damaged.is_empty());
    lines
}

#[test]
fn bodies_of_all_kinds_are_in_the_keys_that_cdxj_indexer_makes() {
    let (folder, forms) = (tempfile::tempdir().unwrap(), forms());
    let (path, archive) = (folder.path().join("a.warc.gz"), archive(&forms));
    fs::write(&path, &archive).unwrap();
    let expected = python(
        "import sys
from cdxj_indexer.main import main
main(['-p'] + sys.argv[1:])",
        &[&path],
    );
    let lines = lines_of(&archive);
    for ((line, expected), form) in lines.iter().zip(expected.lines()).zip(&forms) {
        let body = String::from_utf8_lossy(&form.body[..form.body.len().min(300)]);
        assert_eq!(line, expected, "{} {}: {body}", form.method, form.content_type);
    }
    assert_eq!((lines.len(), expected.lines().count()), (forms.len(), forms.len()));
}

#[test]
fn forms_on_which_cdxj_indexer_fails_are_keyed_as_they_are() {
    let start = "--XyZ\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n";
    let bodies = [
        start.to_owned(),
        format!("{start}text\r\n--XyZ"),
        format!("{start}text\r\n--XyZ??"),
        format!("x{start}text\r\n--XyZ--"),
        "--XyZ\r\nContent-Disposition: attachment\r\n\r\ntext\r\n--XyZ--".to_owned(),
        "--XyZ\r\nno header\r\n\r\ntext\r\n--XyZ--".to_owned(),
        field("a", "b").repeat(200),
    ];
    let forms: Vec<Form> = bodies.iter().map(|body| form(PARTS, body.as_str())).collect();
    let lines = lines_of(&archive(&forms));
    for (line, body) in lines.iter().zip(&bodies) {
        let as_it_is = format!("\"__wb_post_data={}", BASE64.encode(body.as_bytes()));
        assert!(line.contains(&as_it_is[..as_it_is.len().min(4_000)]), "{line} of {body}");
    }
    assert_eq!(lines.len(), bodies.len());
}

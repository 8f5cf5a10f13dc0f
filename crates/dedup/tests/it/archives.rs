//! Documents of archives.

use std::fs;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use huntsman_dedup::{ArchiveId, Body, RawDocument, ReadOptions, Source};
use huntsman_warc::{Options, Record, RecordKind, WarcReader, index_file};

const HTML: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=iso-8859-1\r\nContent-Encoding: gzip\r\n\r\n";

fn record(kind: RecordKind, url: &str) -> Record<'static> {
    Record::new(kind, "2026-01-31T12:00:00Z").id(format!("<urn:{url}>")).field("WARC-Target-URI", url)
}

fn write(folder: &Path, name: &str, records: &[Record<'_>]) -> PathBuf {
    let path = folder.join(name);
    let members: Vec<Vec<u8>> = records.iter().map(|record| record.to_member(Options::default())).collect();
    fs::write(&path, members.concat()).unwrap();
    path
}

fn read(source: &Source, options: &ReadOptions<'_>) -> Vec<RawDocument> {
    let mut documents = Vec::new();
    let _ = source.read(options, &mut |document| {
        documents.push(document.unwrap());
        ControlFlow::Continue(())
    });
    documents
}

#[test]
fn pages_and_texts_are_documents_and_all_else_is_left_out_with_its_reason() {
    let folder = tempfile::tempdir().unwrap();
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(b"<p>caf\xe9").unwrap();
    let packed = packed.finish().unwrap();
    let records = [
        Record::info("a.warc.gz", "2026-01-31T12:00:00Z", &[("software", "test")]),
        record(RecordKind::Response, "http://site.example/page").http(HTML, &packed),
        record(RecordKind::Request, "http://site.example/page").http(b"GET /page HTTP/1.1\r\n\r\n", b""),
        record(RecordKind::Response, "http://site.example/gone")
            .http(b"HTTP/1.1 404 Not Found\r\n\r\n", b"gone"),
        record(RecordKind::Response, "http://site.example/image")
            .http(b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n\r\n", b"png"),
        record(RecordKind::Revisit, "http://site.example/again").http(HTML, b""),
        record(RecordKind::Response, "http://site.example/damaged").http(HTML, &packed[..packed.len() - 12]),
        record(RecordKind::Resource, "urn:text:http://site.example/page")
            .block("text/plain", b"not of the web"),
        record(RecordKind::Resource, "http://site.example/text").block("text/plain", b"a text"),
    ];
    let archive = write(folder.path(), "a.warc.gz", &records);
    // A record of a kind that is read and not written here, as Common Crawl's texts are.
    let wet = b"WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Target-URI: http://site.example/wet\r\nWARC-Date: 2026-01-31T12:00:00Z\r\n\
        WARC-Record-ID: <urn:uuid:1>\r\nWARC-Identified-Content-Language: deu,eng\r\nContent-Type: text/plain\r\nContent-Length: 10\r\n\r\nein \xc3\x9cbel.\r\n\r\n";
    fs::write(folder.path().join("b.warc.wet"), wet).unwrap();
    let pattern = folder.path().join("*.war[c]*").to_str().unwrap().to_owned();
    for source in [Source::find(&pattern).unwrap(), Source::find(folder.path().to_str().unwrap()).unwrap()] {
        let seen: Vec<String> =
            read(&source, &ReadOptions::default()).into_iter().map(|raw| shown(raw.body)).collect();
        assert_eq!(
            seen[..5],
            [
                "http://site.example/page html Some(\"iso-8859-1\") None <p>caf\\xe9",
                "left out: status",
                "left out: media_type",
                "left out: revisit",
                "unreadable"
            ],
            "{seen:#?}"
        );
        assert_eq!(
            seen[5..],
            [
                "http://site.example/text text None None a text",
                "http://site.example/wet text None Some(\"de\") ein \\xc3\\x9cbel."
            ]
        );
    }
    let options = |archive_id| ReadOptions { archive_id, ..ReadOptions::default() };
    let first = |archive_id| {
        shown(read(&Source::find(archive.to_str().unwrap()).unwrap(), &options(archive_id)).remove(0).body)
    };
    assert!(first(ArchiveId::UrlDate).starts_with("20260131120000/http://site.example/page html"));
    assert!(first(ArchiveId::Record).starts_with("urn:http://site.example/page html"));
}

fn shown(body: Body) -> String {
    match body {
        Body::Archived { id, is_html, charset, lang, bytes } => {
            let kind = if is_html { "html" } else { "text" };
            format!("{id} {kind} {charset:?} {lang:?} {}", bytes.escape_ascii())
        }
        Body::LeftOut(why) => format!("left out: {why}"),
        Body::Unreadable(_) => "unreadable".to_owned(),
        other => format!("{other:?}"),
    }
}

#[test]
fn a_document_that_is_too_long_and_one_that_is_damaged_are_told_and_the_next_one_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let long = "word ".repeat(40_000);
    let text = |url: &str, body: &'static str| (url.to_owned(), body.to_owned());
    let texts = [
        ("http://a.example/long".to_owned(), long),
        text("http://a.example/damaged", "x"),
        text("http://a.example/last", "y"),
    ];
    let records: Vec<Record<'_>> = texts
        .iter()
        .map(|(url, body)| record(RecordKind::Resource, url).block("text/plain", body.as_bytes()))
        .collect();
    let path = write(folder.path(), "a.warc.gz", &records);
    let mut bytes = fs::read(&path).unwrap();
    let damaged = records[0].to_member(Options::default()).len() + 30;
    bytes[damaged] ^= 0xff;
    fs::write(&path, bytes).unwrap();
    let options = ReadOptions { max_document: 1_000, ..ReadOptions::default() };
    let read: Vec<Body> = read(&Source::find(path.to_str().unwrap()).unwrap(), &options)
        .into_iter()
        .map(|raw| raw.body)
        .collect();
    let [Body::Unreadable(long), Body::Unreadable(damaged), Body::Archived { bytes, .. }] = &read[..] else {
        panic!("{read:?}")
    };
    assert!(long.contains("at byte 0, of http://a.example/long: longer than 1000 bytes"), "{long}");
    assert!(damaged.contains("damaged at byte"), "{damaged}");
    assert_eq!(bytes, b"y");
}

#[test]
fn an_index_as_the_list_of_ids_leads_to_its_records_alone() {
    let folder = tempfile::tempdir().unwrap();
    let text = |url: &'static str, body: &'static str| {
        record(RecordKind::Resource, url).block("text/plain", body.as_bytes())
    };
    let records = [
        text("http://a.example/1", "first"),
        text("http://a.example/2", "not listed"),
        text("http://a.example/3", "third"),
    ];
    fs::create_dir_all(folder.path().join("crawls/deep")).unwrap();
    let path = write(&folder.path().join("crawls/deep"), "a.warc.gz", &records);
    let mut lines = Vec::new();
    let file = fs::File::open(&path).unwrap();
    index_file(&mut WarcReader::new(file), "deep/a.warc.gz", |line| lines.push(line)).unwrap();
    let line = |at: usize| lines[at].clone();
    let elsewhere = line(0).replace("deep/a.warc.gz", "b.warc.gz");
    // What is listed comes in the order of the lines, however often, and what is not there is told.
    let listed =
        [line(2), line(0), elsewhere, line(2), line(0).replace("\"offset\": \"0\"", "\"offset\": \"7\"")];
    let index = folder.path().join("wanted.cdxj");
    fs::write(&index, listed.join("\n")).unwrap();
    // The record that is not listed is not read.
    let mut bytes = fs::read(&path).unwrap();
    let start = records[0].to_member(Options::default()).len();
    bytes[start..start + records[1].to_member(Options::default()).len()].fill(0);
    fs::write(&path, bytes).unwrap();

    let base = folder.path().join("crawls").to_string_lossy().into_owned();
    let source = Source::members(&index, &[base]).unwrap();
    let read: Vec<String> = read(&source, &ReadOptions::default())
        .into_iter()
        .map(|raw| match raw.body {
            Body::Unreadable(why) => why,
            body => shown(body),
        })
        .collect();
    let third = "http://a.example/3 text None None third";
    assert_eq!(read[..2], [third, "http://a.example/1 text None None first"], "{read:?}");
    assert!(read[2].contains("b.warc.gz is neither beside the index nor named"), "{read:?}");
    assert_eq!(read[3], third);
    assert!(read[4].starts_with("damaged at byte 7"), "{read:?}");
    assert!(Source::members(&index, &["nowhere".to_owned()]).is_err());
}

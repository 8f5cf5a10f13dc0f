//! Documents: what files of a site say that are no HTML.

use std::io::Write;
use std::sync::Arc;

use huntsman_audit::{Audit, AuditBuilder, DocumentKind, PdfFacts, ReadPdf, audit};
use huntsman_testkit::{Reply, ScriptedDownloader};
use serde_json::Value;

use crate::issues_of;

/// A reader that knows one file.
#[derive(Debug)]
struct Reader;

impl ReadPdf for Reader {
    fn read(&self, pdf: &[u8]) -> Result<PdfFacts, String> {
        if pdf != b"%PDF-1.5 prices" {
            return Err("the file is damaged".to_owned());
        }
        Ok(PdfFacts {
            title: Some("Prices of 2027".to_owned()),
            text: "The mill costs seven".to_owned(),
            links: vec!["/gone-from-pdf".to_owned(), "mailto:a@b.example".to_owned()],
        })
    }
}

const RSS: &str = "<?xml version=\"1.0\"?>\n<rss version=\"2.0\"><channel><title>News of the mill</title><link>/</link>\n<item><title>One</title>\
    <link>https://a.example/gone?a=1&amp;b=2</link><description>Three more words</description></item>\n<item><link>/page</link></item></channel></rss>";
const ATOM: &str = "<feed xmlns=\"http://www.w3.org/2005/Atom\"><title>Atoms</title><entry><title>A</title><link href=\"/page\"/>\
    <link rel=\"edit\" href=\"/edit\"/></entry></feed>";
const JSON: &str = "{\"version\": \"https://jsonfeed.org/version/1.1\", \"title\": \"Json\", \"items\": [{\"url\": \"https:\\/\\/a.example\\/gone-from-json\", \"title\": \"G\"}]}";
const DOCX: &str = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";

/// A Word file with these parts.
fn word(parts: &[(&str, &str)]) -> Vec<u8> {
    let mut file = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, text) in parts {
        file.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }
    file.finish().unwrap().into_inner()
}

fn minutes() -> Vec<u8> {
    let text = "<w:document xmlns:w='urn:w' xmlns:r='urn:r'><w:body><w:p><w:r><w:t>The mi</w:t></w:r><w:r><w:t>ll</w:t><w:tab/>\
        <w:t>costs 5 &amp; more</w:t></w:r></w:p><w:p><w:hyperlink r:id='rId4'><w:r><w:t>Old prices</w:t></w:r></w:hyperlink>\
        <w:hyperlink w:anchor='top'><w:r><w:t xml:space='preserve'> Top</w:t></w:r></w:hyperlink></w:p></w:body></w:document>";
    let relations = "<Relationships><Relationship Id='rId4' Target='https://a.example/gone-from-word' TargetMode='External'/>\
        <Relationship Id='rId5' Target='styles.xml'/></Relationships>";
    let core = "<cp:coreProperties xmlns:cp='urn:cp' xmlns:dc='urn:dc'><dc:title>Minutes of May</dc:title></cp:coreProperties>";
    let parts = [
        ("word/document.xml", text),
        ("word/_rels/document.xml.rels", relations),
        ("docProps/core.xml", core),
    ];
    word(&parts)
}

const MARKDOWN: &str = "# The *mill*\n\nSee [prices](/gone-from-markdown).\n\n```\n[code](/no-link)\n```\n";

fn site() -> AuditBuilder {
    let of_type =
        |kind: &str, body: &str| Reply::status(200).header("content-type", kind).body(body.to_owned());
    let of_bytes = |kind: &str, body: Vec<u8>| Reply::status(200).header("content-type", kind).body(body);
    let links: String = [
        "rss.xml",
        "atom.xml",
        "feed.json",
        "readme.md",
        "notes.txt",
        "prices.pdf",
        "broken.pdf",
        "minutes?of=May",
        "empty.docx",
        "large.docx",
        "sitemap-old.xml",
        "page",
        "data.json",
    ]
    .map(|path| format!("<a href=/{path}>{path}</a>"))
    .concat();
    let web = ScriptedDownloader::new()
        .respond("https://a.example/", Reply::html(links))
        .respond("https://a.example/page", Reply::html("<a href=/>Front</a>"))
        .respond("https://a.example/rss.xml", of_type("application/rss+xml", RSS))
        .respond("https://a.example/atom.xml", of_type("application/atom+xml", ATOM))
        .respond("https://a.example/feed.json", of_type("application/feed+json", JSON))
        .respond("https://a.example/readme.md", of_type("text/markdown", MARKDOWN))
        .respond("https://a.example/notes.txt", of_type("text/plain", "See https://a.example/gone-from-text"))
        .respond("https://a.example/prices.pdf", of_type("application/pdf", "%PDF-1.5 prices"))
        .respond("https://a.example/broken.pdf", of_type("application/pdf", "%PDF-1.5 x"))
        .respond("https://a.example/minutes?of=May", of_bytes(DOCX, minutes()))
        .respond("https://a.example/empty.docx", of_bytes("application/octet-stream", word(&[("a.txt", "")])))
        .respond("https://a.example/large.docx", of_bytes(DOCX, word(&[("word/document.xml", &" ".repeat(17 << 20))])))
        .respond("https://a.example/data.json", of_type("application/json", "{\"title\": \"x\"}"))
        .respond(
            "https://a.example/sitemap-old.xml",
            of_type("application/xml", "<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\"><url><loc>https://a.example/x</loc></url></urlset>"),
        );
    audit(["https://a.example/"]).downloader(web)
}

fn document(audit: &Audit, path: &str) -> (DocumentKind, Option<String>, usize, usize) {
    let answer = audit.site.get(&format!("https://a.example/{path}")).unwrap();
    let document = answer.document.as_ref().unwrap_or_else(|| panic!("{path} is a document"));
    (document.kind, document.title.clone(), document.words, document.links)
}

#[tokio::test(start_paused = true)]
async fn documents_have_titles_and_words_and_their_links_are_looked_at() {
    let audit = site().options(|options| options.pdf_reader(Some(Arc::new(Reader)))).run().await.unwrap();
    let title = |text: &str| Some(text.to_owned());
    for (path, expected) in [
        ("rss.xml", (DocumentKind::Feed, title("News of the mill"), 4, 2)),
        ("atom.xml", (DocumentKind::Feed, title("Atoms"), 1, 1)),
        ("feed.json", (DocumentKind::Feed, title("Json"), 1, 1)),
        ("readme.md", (DocumentKind::Markdown, title("The mill"), 5, 1)),
        ("notes.txt", (DocumentKind::Text, None, 5, 0)),
        ("prices.pdf", (DocumentKind::Pdf, title("Prices of 2027"), 4, 2)),
        ("broken.pdf", (DocumentKind::Pdf, None, 0, 0)),
        ("minutes?of=May", (DocumentKind::Word, title("Minutes of May"), 8, 1)),
        ("empty.docx", (DocumentKind::Word, None, 0, 0)),
        ("large.docx", (DocumentKind::Word, None, 0, 0)),
        ("sitemap-old.xml", (DocumentKind::Sitemap, None, 0, 0)),
    ] {
        let found = document(&audit, path);
        // What is a word in addresses and code is not tested here.
        let is_counted = !matches!(expected.0, DocumentKind::Text | DocumentKind::Markdown);
        let words = if is_counted { found.2 } else { expected.2 };
        assert_eq!(found.2 > 0, expected.2 > 0, "{path}");
        assert_eq!((found.0, found.1, words, found.3), expected, "{path}");
    }
    let broken = issues_of(&audit, "broken-internal-link");
    let told = |url: &str| broken.iter().find(|issue| issue.url == format!("https://a.example/{url}"));
    let place = |url: &str| {
        let at = &told(url).unwrap_or_else(|| panic!("{url} is told")).at[0];
        (at.page.clone().unwrap(), at.line, at.column)
    };
    assert_eq!(place("gone?a=1&b=2"), ("https://a.example/rss.xml".to_owned(), 3, 31));
    assert_eq!(place("gone-from-json").0, "https://a.example/feed.json");
    assert_eq!(place("gone-from-markdown"), ("https://a.example/readme.md".to_owned(), 3, 5));
    assert_eq!(place("gone-from-pdf").0, "https://a.example/prices.pdf");
    assert_eq!(place("gone-from-word").0, "https://a.example/minutes?of=May");
    assert_eq!(broken.len(), 5, "neither code nor plain text nor other relations are links: {broken:?}");
    let dir = tempfile::tempdir().unwrap();
    audit.write(dir.path()).unwrap();
    let lines = std::fs::read_to_string(dir.path().join("pages.jsonl")).unwrap();
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let line =
        |path: &str| lines.iter().find(|line| line["url"] == format!("https://a.example/{path}")).unwrap();
    assert_eq!(
        (&line("prices.pdf")["document"], &line("prices.pdf")["title"]),
        (&"pdf".into(), &"Prices of 2027".into())
    );
    assert_eq!(line("broken.pdf")["document_error"], "the file is damaged");
    assert_eq!(line("empty.docx")["document_error"], "it has no word/document.xml");
    assert_eq!(line("large.docx")["document_error"], "word/document.xml has more than 16777216 bytes");
    assert!(line("page")["document"].is_null() && line("data.json")["document"].is_null());
}

#[tokio::test(start_paused = true)]
async fn pdf_files_are_answers_without_text_if_there_is_no_reader() {
    let audit = site().run().await.unwrap();
    assert!(audit.site.get("https://a.example/prices.pdf").unwrap().document.is_none());
    assert_eq!(document(&audit, "rss.xml").0, DocumentKind::Feed);
}

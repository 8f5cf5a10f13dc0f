use std::collections::BTreeMap;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use url::Url;

use super::*;
use crate::request::Request;
use crate::response::Response;

fn page(body: impl Into<bytes::Bytes>) -> Page {
    let url = Url::parse("http://shop.example/dir/feed").unwrap();
    let response = Response::new(url.clone(), http::StatusCode::OK, body);
    Page::new(Request::get(url).with_meta(crate::meta::FEED, true), response)
}

/// The text of each entry, and what went wrong.
fn texts(body: impl Into<bytes::Bytes>, tag: &str, limits: FeedLimits) -> (Vec<String>, FeedReport) {
    let page = page(body);
    let mut nodes = XmlNodes::new(&page, tag).limits(limits);
    let texts = nodes.by_ref().map(|node| node.node().text().to_owned()).collect();
    (texts, nodes.report().clone())
}

fn read(body: &str) -> (Vec<String>, FeedReport) {
    texts(body.to_owned(), "i", FeedLimits::default())
}

fn gzip(body: &[u8]) -> Vec<u8> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
    packer.write_all(body).unwrap();
    packer.finish().unwrap()
}

type Row = BTreeMap<String, String>;

fn rows(body: impl Into<bytes::Bytes>, limits: FeedLimits) -> (Vec<Row>, FeedReport) {
    let page = page(body);
    let mut rows = CsvRows::<Row>::new(&page).limits(limits);
    let all = rows.by_ref().collect();
    (all, rows.report().clone())
}

#[test]
fn where_the_pieces_begin_makes_no_difference() {
    let entry = "<i a='x>y'>a&amp;b<![CDATA[<i>]]><!-- <i> --><b>\u{20ac}</b></i>\n";
    let count = 2 * crate::text_source::WINDOW / entry.len();
    for shift in 0..entry.len() {
        let (texts, report) = read(&format!("<r>{}{}</r>", " ".repeat(shift), entry.repeat(count)));
        assert_eq!((texts.len(), report.problems), (count, 0), "shift {shift}: {report:?}");
        assert!(texts.iter().all(|text| text == "a&b<i>\u{20ac}"), "shift {shift}");
    }
}

#[test]
fn entries_of_any_size_up_to_the_limit_are_read_whole() {
    for size in [100, 60_000, 70_000, 200_000, 1 << 20] {
        let data = "x".repeat(size);
        let (texts, report) = read(&format!("<r><i><![CDATA[{data}]]></i><i>{data}</i><i a='{data}'/></r>"));
        assert_eq!(texts.iter().map(String::len).collect::<Vec<_>>(), [size, size, 0], "{report:?}");
        assert_eq!(report.problems, 0, "{report:?}");
    }
}

#[test]
fn an_entry_beyond_the_limit_is_left_out_and_told() {
    let limits = FeedLimits { max_entry: 1_000, ..FeedLimits::default() };
    let body = format!("<r>\n<i>1</i>\n<i>{}</i><i>2</i></r>", "x".repeat(100_000));
    let (texts, report) = texts(body, "i", limits);
    assert_eq!((texts, report.problems), (vec!["1".to_owned(), "2".to_owned()], 1));
    let first = report.first_problem.unwrap();
    assert!(first.starts_with("line 3: ") && first.contains("1000 bytes"), "{first}");
}

#[test]
fn a_tag_of_100_mb_is_one_problem() {
    let mut body = "<r>\n<i>1</i>\n<i ".to_owned();
    body.push_str(&"a='b' ".repeat(100 * 1_000_000 / 6));
    body.push_str("><i>2</i>");
    let (texts, report) = read(&body);
    assert_eq!(texts[0], "1");
    let first = report.first_problem.unwrap();
    assert!(first.starts_with("line 3: syntax error: tag not closed"), "{first}");
    let (texts, report) = read(&format!("<r><i>1</i>{}", "<a ".repeat(5_000_000)));
    assert_eq!((texts.len(), report.problems > 0), (1, true));
}

#[test]
fn entities_are_neither_read_nor_expanded() {
    let levels: String =
        (1..10).map(|n| format!("<!ENTITY e{n} '{}'>", format!("&e{};", n - 1).repeat(10))).collect();
    let body = format!(
        "<!DOCTYPE r [<!ENTITY e0 'lol'>{levels}<!ENTITY file SYSTEM 'file:///etc/passwd'>]><r><i>&e9;</i><i>&file; &nbsp;&amp;</i></r>"
    );
    assert_eq!(read(&body).0, ["&e9;", "&file; &nbsp;&"]);
}

#[test]
fn elements_that_nest_too_deep_are_told() {
    let deep = |n: usize| format!("{}{}", "<a>".repeat(n), "</a>".repeat(n));
    let (texts, report) = read(&format!("<r><i>1</i>{}<i>2</i></r>", deep(1_000_000)));
    assert_eq!((texts.len(), report.problems), (2, 1), "{report:?}");
    let (texts, report) = read(&format!("<r><i>1</i><i>{}</i><i>2</i></r>", deep(2_000)));
    assert_eq!((texts, report.problems), (vec!["1".to_owned(), "2".to_owned()], 1));
    let (_, report) = read(&"<i>".repeat(1_000_000));
    assert!(report.problems > 0);
    let (_, report) = read(&format!("<r>{}</r>", "</b>".repeat(3_000_000)));
    assert!((10_000..10_010).contains(&report.problems), "the rest is left out: {report:?}");
    let many: String = (0..100_000).map(|n| format!(" xmlns:n{n}='u{n}'")).collect();
    let (texts, report) = read(&format!("<r{many}>{}</r>", "<i>1</i>".repeat(1_000)));
    assert_eq!((texts.len(), report.problems), (1_000, 1));
    let (_, report) = read(&format!("<r><i{many}>{}</i></r>", "<b/>".repeat(100_000)));
    assert_eq!(report.problems, 1, "{report:?}");
}

#[test]
fn broken_markup_is_read_as_far_as_it_goes() {
    for (body, expected, told) in [
        ("<r><i>1<br></i><i>2</i></r>", vec!["1", "2"], "line 1: </i> ends elements inside"),
        ("<r><i>1</i></x>\n<i>2</i></r>", vec!["1", "2"], "line 1: </x> ends no element"),
        ("<r><i>1</i>\n<i>2", vec!["1"], "line 2: the entry that begins here has no end"),
        ("<r><i>1</i>", vec!["1"], "line 1: the feed ends before"),
        (
            "<r><i>1</i><!-- <i>2</i>\n<i>3</i></r>",
            vec!["1", "2", "3"],
            "line 1: syntax error: comment not closed",
        ),
        ("<r><i>1</i><!x><i>2</i></r>", vec!["1", "2"], "line 1: syntax error: unknown or missed symbol"),
        ("name,price\n1,2\n", vec![], "this is not XML"),
        ("", vec![], "this is not XML"),
        ("<r><i>1 & 2 &lt; 3</i></r>", vec!["1 & 2 < 3"], ""),
    ] {
        let (texts, report) = read(body);
        assert_eq!(texts, expected, "{body}: {report:?}");
        let first = report.first_problem.unwrap_or_default();
        assert!(first.contains(told), "{body}: {first}");
        assert_eq!(first.is_empty(), told.is_empty(), "{body}: {first}");
    }
}

#[test]
fn packed_cut_and_encoded_feeds_are_read() {
    let body = format!("<r>{}</r>", "<i>caf\u{e9}</i>".repeat(10_000));
    let all = texts(gzip(body.as_bytes()), "i", FeedLimits::default());
    assert_eq!((all.0.len(), all.1.problems), (10_000, 0));
    let packed = gzip(body.as_bytes());
    let (torn, report) = texts(packed[..packed.len() / 2].to_vec(), "i", FeedLimits::default());
    assert!(!torn.is_empty() && torn.len() < 10_000);
    assert!(report.problems >= 1);
    let limits = FeedLimits { max_bytes: 1_000, ..FeedLimits::default() };
    let (cut, report) = texts(gzip(body.as_bytes()), "i", limits);
    assert_eq!(cut.len(), 83, "{report:?}");
    assert!(report.problems >= 1);

    let utf16: Vec<u8> =
        "\u{feff}<r><i>caf\u{e9}</i></r>".encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(texts(utf16, "i", FeedLimits::default()).0, ["caf\u{e9}"]);
    let (damaged, report) = texts(b"<r><i>caf\xe9</i></r>".to_vec(), "i", FeedLimits::default());
    assert_eq!((damaged, report.problems), (vec!["caf\u{fffd}".to_owned()], 1));
    let latin = page(&b"<r><i>caf\xe9</i></r>"[..]);
    let mut nodes = XmlNodes::new(&latin, "i").encoding("iso-8859-1").unwrap();
    assert_eq!(nodes.next().unwrap().node().text(), "caf\u{e9}");
    assert!(XmlNodes::new(&latin, "i").encoding("martian").is_err());
}

#[test]
fn a_node_knows_the_prefixes_of_its_feed_and_its_links_are_absolute() {
    let page = page(
        "<r xmlns:g='urn:g' xmlns='urn:d'><i><g:p>1</g:p><link>../a?\u{e9}</link></i><x xmlns:g='urn:h'><i><g:p>2</g:p></i></x></r>",
    );
    let prices: Vec<String> =
        XmlNodes::new(&page, "i").map(|node| node.node().xpath("g:p/text()").unwrap().get_or("-")).collect();
    assert_eq!(prices, ["1", "2"], "whatever the prefix stands for there");
    let mut nodes = XmlNodes::new(&page, "d:i").namespace("d", "urn:d").namespace("g", "urn:g");
    let node = nodes.next().unwrap();
    let link = node.node().nodes("d:link").unwrap()[0].href().unwrap();
    assert_eq!(link.as_str(), "http://shop.example/a?%C3%A9");
    assert_eq!(nodes.next().unwrap().node().xpath("g:p").unwrap().get_all().len(), 0);
    assert_eq!(XmlNodes::new(&page, "d:i").namespace("d", "urn:other").count(), 0);
}

#[test]
fn rows_are_limited_in_size_and_number_of_cells() {
    let (all, report) = rows("a,b\n1,2\n3\n4,5,6\n\n7,8\n", FeedLimits::default());
    assert_eq!((all.len(), report.entries, report.problems), (2, 2, 2));
    assert_eq!(report.first_problem.unwrap(), "line 3: the row has 1 cells, and there are 2 columns");

    let limits = FeedLimits { max_entry: 1_000, ..FeedLimits::default() };
    let long = "x".repeat(2_000);
    let (all, report) = rows(format!("a,b\n1,2\n{long},3\n4,5\n"), limits);
    assert_eq!((all.len(), report.problems), (2, 1), "{report:?}");

    // A quote that lacks its end makes one row of all that follows.
    let (all, report) = rows(format!("a,b\n1,2\n\"3,{}", "4,5\n".repeat(1_000_000)), limits);
    assert_eq!((all.len(), report.problems), (1, 1), "{report:?}");
    assert!(report.first_problem.unwrap().contains("quote"));

    let limits = FeedLimits { max_bytes: 100, ..FeedLimits::default() };
    let (all, report) = rows(gzip(format!("a,b\n{}", "1,2\n".repeat(1_000)).as_bytes()), limits);
    assert_eq!((all.len(), report.problems), (24, 1), "{report:?}");
}

#[test]
fn rows_in_other_encodings_are_read() {
    let expected = Row::from([("name".to_owned(), "caf\u{e9} \u{20ac}".to_owned())]);
    let utf16: Vec<u8> =
        "\u{feff}name\ncaf\u{e9} \u{20ac}\n".encode_utf16().flat_map(u16::to_be_bytes).collect();
    for body in [&b"name\ncaf\xe9 \x80\n"[..], "name\ncaf\u{e9} \u{20ac}\n".as_bytes(), &utf16] {
        assert_eq!(
            rows(body.to_vec(), FeedLimits::default()),
            (vec![expected.clone()], FeedReport { entries: 1, ..FeedReport::default() })
        );
        assert_eq!(rows(gzip(body), FeedLimits::default()).0, std::slice::from_ref(&expected));
    }
}

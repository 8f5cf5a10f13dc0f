use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::*;

fn base() -> Url {
    Url::parse("https://h.example/dir/sitemap.xml").unwrap()
}

fn read_within(body: &[u8], limits: SitemapLimits) -> (Vec<SitemapEntry>, SitemapReport) {
    let mut sitemap = Sitemap::new(body, &base(), limits);
    let entries: Vec<_> = sitemap.by_ref().collect();
    (entries, sitemap.report())
}

fn read(body: impl AsRef<[u8]>) -> (Vec<SitemapEntry>, SitemapReport) {
    read_within(body.as_ref(), SitemapLimits::default())
}

fn locs(body: impl AsRef<[u8]>) -> Vec<String> {
    read(body).0.into_iter().map(|entry| entry.loc.to_string()).collect()
}

fn gzip(body: &[u8]) -> Vec<u8> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::best());
    packer.write_all(body).unwrap();
    packer.finish().unwrap()
}

fn urlset(count: usize) -> String {
    let urls: String = (0..count).map(|n| format!("<url><loc>https://h.example/{n}</loc></url>\n")).collect();
    format!(
        "<?xml version='1.0'?><urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>{urls}</urlset>"
    )
}

#[test]
fn an_entry_has_all_that_a_sitemap_says_of_it() {
    let (entries, report) = read(
        r#"<?xml version="1.0" encoding="UTF-8"?>
        <s:urlset xmlns:s="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:xhtml="http://www.w3.org/1999/xhtml">
          <!-- <url><loc>https://h.example/comment</loc></url> -->
          <s:url>
            <s:loc>
              https://h.example/a?x=1&amp;y=&#x32;
            </s:loc>
            <xhtml:link rel="alternate" hreflang="de-AT" href="https://h.example/de?a=1&amp;b=2"/>
            <xhtml:link rel="stylesheet" href="/style.css"/>
            <xhtml:link rel='alternate' href='/x'></xhtml:link>
            <image:image><image:loc>https://h.example/picture.jpg</image:loc></image:image>
            <s:lastmod>2026-01-31</s:lastmod><s:changefreq>daily</s:changefreq><s:priority>0.8</s:priority>
          </s:url>
          <s:url><s:loc><![CDATA[/b?c=1&d=2]]></s:loc><s:priority>high</s:priority></s:url>
        </s:urlset>"#,
    );
    assert_eq!(entries.len(), 2);
    let first = &entries[0];
    assert_eq!(first.loc.as_str(), "https://h.example/a?x=1&y=2");
    assert_eq!((first.lastmod.as_deref(), first.changefreq.as_deref()), (Some("2026-01-31"), Some("daily")));
    assert_eq!(first.priority, Some(0.8));
    let alternates: Vec<_> =
        first.alternates.iter().map(|a| (a.hreflang.as_deref(), a.href.as_str())).collect();
    assert_eq!(alternates, [(Some("de-AT"), "https://h.example/de?a=1&b=2"), (None, "https://h.example/x")]);
    assert_eq!((entries[1].loc.as_str(), entries[1].priority), ("https://h.example/b?c=1&d=2", None));
    let expected = SitemapReport {
        kind: Some(SitemapKind::UrlSet),
        entries: 2,
        relative: 1,
        ..SitemapReport::default()
    };
    assert_eq!(report, expected);
}

#[test]
fn every_kind_is_recognised_by_its_content() {
    let cases: [(&str, &str, SitemapKind); 7] = [
        (
            "<sitemapindex><sitemap><loc>https://h.example/1</loc></sitemap></sitemapindex>",
            "1",
            SitemapKind::Index,
        ),
        ("# list\nhttps://h.example/1\r\n", "1", SitemapKind::Text),
        (
            "<rss version='2.0'><channel><link>https://h.example/</link><item><title>t</title>\
             <atom:link href='https://h.example/no' rel='self'/><link>https://h.example/1</link>\
             <pubDate>d</pubDate></item></channel></rss>",
            "1",
            SitemapKind::Rss,
        ),
        (
            "<rdf:RDF><item><link>https://h.example/1</link><dc:date>d</dc:date></item></rdf:RDF>",
            "1",
            SitemapKind::Rss,
        ),
        (
            "<feed><link href='https://h.example/'/><entry><link rel='self' href='https://h.example/no'/>\
             <link href='https://h.example/1'/><updated>d</updated></entry></feed>",
            "1",
            SitemapKind::Atom,
        ),
        ("\u{feff}  <urlset><url><loc>https://h.example/1</loc></url></urlset>", "1", SitemapKind::UrlSet),
        ("<url><loc>https://h.example/1</loc></url>", "1", SitemapKind::UrlSet),
    ];
    for (body, path, kind) in cases {
        let (entries, report) = read(body);
        assert_eq!(entries.len(), 1, "{body}: {report:?}");
        assert_eq!((entries[0].loc.path(), report.kind), (format!("/{path}").as_str(), Some(kind)), "{body}");
        let has_date = matches!(kind, SitemapKind::Rss | SitemapKind::Atom);
        assert_eq!(entries[0].lastmod.as_deref(), has_date.then_some("d"), "{body}");
    }
}

#[test]
fn what_is_no_sitemap_has_no_kind_and_no_entries() {
    let page = "<!doctype html><html><body><url><loc>https://h.example/1</loc></url><a href=/x>x</a></html>";
    for body in [page, "", " \n", "not found", "{\"a\": 1}", "<svg><path/></svg>", "\0\u{1}\u{2}"] {
        let (entries, report) = read(body);
        assert_eq!((entries.len(), report.kind), (0, None), "{body:?}");
    }
}

#[test]
fn gzip_is_recognised_by_its_first_bytes() {
    let whole = urlset(2_000);
    let packed = gzip(whole.as_bytes());
    assert_eq!(locs(&packed).len(), 2_000);
    // Two gzip files in sequence form one file.
    let half = whole.len() / 2;
    let two = [gzip(&whole.as_bytes()[..half]), gzip(&whole.as_bytes()[half..])].concat();
    assert_eq!(read(&two).1, read(&packed).1);
    let torn = &packed[..packed.len() / 2];
    let (entries, report) = read(torn);
    assert!(report.is_damaged && !entries.is_empty() && entries.len() < 2_000, "{report:?}");
}

#[test]
fn other_encodings_are_decoded() {
    let text = "<?xml version='1.0' encoding='iso-8859-1'?><urlset><url><loc>https://h.example/ü</loc></url></urlset>";
    let latin: Vec<u8> = text.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect();
    let utf16 = |mark: bool| -> Vec<u8> {
        let units = mark.then_some(0xfeff).into_iter().chain(text.encode_utf16());
        units.flat_map(u16::to_le_bytes).collect()
    };
    for body in [latin, utf16(true), utf16(false)] {
        assert_eq!(locs(&body), ["https://h.example/%C3%BC"]);
    }
}

#[test]
fn entities_of_the_document_are_never_expanded() {
    let laughs: String =
        (1..30).map(|n| format!("<!ENTITY l{n} \"{}\">", format!("&l{};", n - 1).repeat(10))).collect();
    let body = format!(
        "<?xml version='1.0'?><!DOCTYPE urlset [<!ENTITY l0 'ha'>{laughs}\
         <!ENTITY file SYSTEM 'file:///etc/passwd'> <!ENTITY in SYSTEM 'http://127.0.0.1/'>]>\
         <urlset><url><loc>https://h.example/1</loc></url>\
         <url><loc>https://h.example/&l29;</loc></url><url><loc>&file;</loc></url><url><loc>&in;</loc></url>\
         <url><loc>https://h.example/2</loc><lastmod>&l29;</lastmod>\
         <xhtml:link rel='alternate' href='https://h.example/&in;'/></url></urlset>"
    );
    let (entries, report) = read(&body);
    let found: Vec<&str> = entries.iter().map(|entry| entry.loc.path()).collect();
    assert_eq!((found, report.invalid), (vec!["/1", "/2"], 3));
    assert_eq!((&entries[1].lastmod, entries[1].alternates.len()), (&None, 0));
}

#[test]
fn unescaped_ampersands_are_text() {
    let body = "<urlset><url><loc>https://h.example/?a=1&b=2&c=3;d</loc>\
                <xhtml:link rel='alternate' href='/?a=1&b=2&amp;c=3'/></url>\
                <url><loc>https://h.example/?x=&#0;</loc></url></urlset>";
    let (entries, report) = read(body);
    assert_eq!(entries[0].loc.as_str(), "https://h.example/?a=1&b=2&c=3;d");
    assert_eq!(entries[0].alternates[0].href.as_str(), "https://h.example/?a=1&b=2&c=3");
    assert_eq!((entries.len(), report.invalid), (1, 1), "a character that is none");
}

#[test]
fn entries_before_and_behind_the_damage_are_kept() {
    let good = |n: usize| format!("<url><loc>https://h.example/{n}</loc></url>");
    let damages = [
        "<url><loc>https://h.example/x</lo",
        "<url><loc>https://h.example/x<lastmod>2026</url>",
        "</url></url></loc></image:image>",
        "<url <loc>https://h.example/x</loc></url>",
        "<!-- a comment without an end",
        "<![CDATA[ no end either",
        "<!nonsense> <? > <> </> < <<",
        "\u{fffd}\u{0} & && &; &x &#; ]]>",
        "<url><loc></loc></url><url></url>",
        "<a b=\"an attribute without an end>",
    ];
    for damage in damages {
        let (first, second) =
            ((0..3).map(good).collect::<String>(), (3..2_500).map(good).collect::<String>());
        let body = format!("<urlset>{first}{damage}{second}</urlset>");
        let found = locs(&body);
        let kept = |n: usize| found.contains(&format!("https://h.example/{n}"));
        assert!((0..3).all(kept), "{damage}");
        // An unclosed quote or comment swallows only a bounded part.
        assert!(kept(2_499) && found.len() > 1_000, "{damage}: {}", found.len());
    }
}

#[test]
fn a_document_that_is_cut_off_keeps_its_whole_entries() {
    let body = urlset(50);
    for cut in 0..body.len() {
        let (entries, report) = read(&body.as_bytes()[..cut]);
        let whole = body[..cut].matches("</loc>").count();
        assert_eq!(entries.len(), whole, "cut at {cut}");
        assert!(report.is_damaged || report.kind.is_none(), "cut at {cut}: {report:?}");
    }
    assert!(!read(&body).1.is_damaged);
}

#[test]
fn addresses_that_are_not_http_are_counted_and_left_out() {
    let addresses =
        ["file:///etc/passwd", "javascript:alert(1)", "data:,x", "mailto:a@b", "http://[", "", "ftp://h/"];
    let xml: String = addresses.iter().map(|loc| format!("<url><loc>{loc}</loc></url>")).collect();
    let (entries, report) = read(format!("<urlset>{xml}<url><loc>/good</loc></url></urlset>"));
    assert_eq!((entries.len(), report.invalid), (1, addresses.len()));
    let text = addresses.join("\n") + "\nrelative\nhttps://h.example/good";
    let (entries, report) = read(text);
    assert_eq!((entries.len(), report.invalid), (1, addresses.len()), "an empty line is none, a word is");
}

#[test]
fn entries_beyond_the_limit_are_counted() {
    let limits = SitemapLimits { max_entries: 10, ..SitemapLimits::default() };
    let (entries, report) = read_within(urlset(5_000).as_bytes(), limits);
    assert_eq!((entries.len(), report.entries, report.entries_cut), (10, 10, 4_990));
    let text: String = (0..5_000).map(|n| format!("https://h.example/{n}\n")).collect();
    let (entries, report) = read_within(text.as_bytes(), limits);
    assert_eq!((entries.len(), report.entries_cut), (10, 4_990));
}

#[test]
fn bytes_beyond_the_limit_are_not_unpacked() {
    let limits = SitemapLimits { max_bytes: 100_000, ..SitemapLimits::default() };
    let mut body = urlset(100).into_bytes();
    body.resize(5 << 20, b' ');
    for body in [gzip(&body), body] {
        let (entries, report) = read_within(&body, limits);
        assert_eq!((entries.len(), report.is_cut), (100, true));
    }
    let exact = urlset(100);
    let limits = SitemapLimits { max_bytes: exact.len() as u64, ..limits };
    assert!(!read_within(exact.as_bytes(), limits).1.is_cut, "the limit itself is allowed");
    assert!(!read_within(&gzip(exact.as_bytes()), limits).1.is_cut);
}

#[test]
fn a_hundred_thousand_nested_elements_are_passed_over() {
    let n = 100_000;
    let body = format!(
        "<urlset><url><loc>/1</loc></url>{}<url><loc>/deep</loc></url>{}<url><loc>/2</loc></url></urlset>",
        "<a>".repeat(n),
        "</a>".repeat(n)
    );
    let (entries, report) = read(&body);
    let found: Vec<&str> = entries.iter().map(|entry| entry.loc.path()).collect();
    assert_eq!((found, report.is_too_deep, report.is_damaged), (vec!["/1", "/2"], true, false));
    let nested = "<urlset>".to_owned() + &"<url><loc>/x".repeat(n);
    assert!(read(&nested).0.len() <= n);
}

#[test]
fn values_have_a_limit_and_the_space_around_them_has_none() {
    let long = "x".repeat(MAX_VALUE);
    let space = " \n".repeat(100_000);
    let body = format!(
        "<urlset><url><loc>https://h.example/{long}</loc></url><url><loc>{space}/1{space}</loc></url>\
         <url><loc>/2</loc><lastmod>{long}{long}</lastmod></url></urlset>"
    );
    let (entries, report) = read(&body);
    let found: Vec<&str> = entries.iter().map(|entry| entry.loc.path()).collect();
    assert_eq!((found, report.invalid), (vec!["/1", "/2"], 1));
    assert_eq!(entries[1].lastmod, None);
    let lines = format!("https://h.example/{}\nhttps://h.example/1\n", "x".repeat(300_000));
    assert_eq!(locs(&lines), ["https://h.example/1"]);
}

#[test]
fn where_the_pieces_begin_makes_no_difference() {
    // This places tags, references and text on the border of a piece in every possible way.
    let entry = "<url><loc>https://h.example/?a&amp;b=&#65;</loc><lastmod>2026-01-01</lastmod></url>";
    let count = 2 * WINDOW / entry.len();
    let expected = locs(format!("<urlset>{entry}</urlset>"));
    for shift in 0..entry.len() {
        let body = format!("<urlset>{}{}</urlset>", " ".repeat(shift), entry.repeat(count));
        let (entries, report) = read(&body);
        assert_eq!((entries.len(), report.is_damaged), (count, false), "shift {shift}");
        assert!(entries.iter().all(|entry| entry.loc.as_str() == expected[0]), "shift {shift}");
    }
}

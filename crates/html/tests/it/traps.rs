//! Cases in which a scan without a tree easily goes wrong.

use huntsman_html::{LinkTag, Region, ResourceKind, Scan, ScanOptions};

fn hrefs(page: &str) -> Vec<String> {
    hrefs_with(page, &ScanOptions::default())
}

fn hrefs_with(page: &str, options: &ScanOptions) -> Vec<String> {
    Scan::of(page, options).links(page).map(|link| link.href.to_owned()).collect()
}

fn text(page: &str) -> String {
    Scan::of(page, &ScanOptions::default()).text().to_owned()
}

fn title(page: &str) -> Option<String> {
    Scan::of(page, &ScanOptions::default()).title(page).map(str::to_owned)
}

#[test]
fn a_tag_counts_only_at_its_end() {
    assert_eq!(hrefs("<a href=/1>x</a><a href=/2"), ["/1"]);
    assert_eq!(hrefs("<a href=/1>x</a><a href='/2> x"), ["/1"]);
    assert_eq!(text("before <a href=/2"), "before");
}

#[test]
fn a_less_than_sign_is_text_unless_a_tag_follows() {
    assert_eq!(text("1 < 2 <3 <= 4 << a</>b</1 gone>c<? gone>d<! gone>e</"), "1 < 2 <3 <= 4 << abcde</");
}

#[test]
fn a_quote_opens_a_value_only_behind_an_equals_sign() {
    for tag in [
        "<p =\">",
        "<p a b=c\"d>",
        "<p a \"x>",
        "<p 'x>",
        "<p a=b'c>",
        "<p a = \"1>2\">",
        "<p a=>",
        "<p / a>",
    ] {
        assert_eq!(hrefs(&format!("{tag}<a href=/x>")), ["/x"], "{tag}");
        assert_eq!(text(&format!("{tag}<a href=/x>word")), "word", "{tag}");
    }
}

#[test]
fn the_first_attribute_of_a_name_wins() {
    assert_eq!(hrefs("<a HREF=/1 href=/2 href='/3'>"), ["/1"]);
    let many: String = (0..50_000).map(|at| format!(" a{at}=b")).collect();
    assert_eq!(hrefs(&format!("<a{many} href=/x{many}>")), ["/x"]);
}

#[test]
fn href_is_decoded_and_stripped() {
    assert_eq!(hrefs("<a href=' \n/a?b=1&amp;c=2&copy=3&#x26;d \t'>"), ["/a?b=1&c=2&copy=3&d"]);
    assert_eq!(hrefs("<a href>x</a><a href=''>y</a><a name=z>"), ["", ""]);
    assert_eq!(hrefs("<a href='a\0b'>"), ["a\u{FFFD}b"]);
}

#[test]
fn a_title_ends_only_at_its_own_end_tag() {
    assert_eq!(title("<title>a </titlex> <b> &amp;\n c</TITLE ><p>").as_deref(), Some("a </titlex> <b> & c"));
    assert_eq!(title("<title></title><title>second</title>").as_deref(), Some(""));
    assert_eq!(title("<title>  plain  </title>").as_deref(), Some("plain"));
    assert_eq!(title("<title>open").as_deref(), Some("open"));
    assert_eq!(title("<p>none"), None);
    assert_eq!(text("<title>T</title>x"), "x");
}

#[test]
fn the_title_of_an_svg_is_not_the_pages_and_swallows_nothing() {
    let page = "<svg><title>Icon <a href=/in>x</a></title></svg><title>Page</title><a href=/out>y</a>";
    assert_eq!(title(page).as_deref(), Some("Page"));
    assert_eq!(hrefs(page), ["/in", "/out"]);
    assert_eq!(text("<svg><title>Icon</title><text>shown</text></svg>"), "shown");
    assert_eq!(
        hrefs("<svg><style><a href=/1></style><script><a href=/2></script><textarea><a href=/3></svg>").len(),
        3
    );
}

#[test]
fn links_of_svg_use_either_attribute() {
    let page =
        "<svg><a xlink:href=/1>a</a><a href=/2 xlink:href=/3>b</a><a xlink:href=/4 /></svg><a xlink:href=/5>";
    let scan = Scan::of(page, &ScanOptions::default());
    let links: Vec<_> = scan.links(page).map(|link| (link.href, link.attribute, link.tag)).collect();
    assert_eq!(
        links,
        [
            ("/1", "xlink:href", LinkTag::SvgA),
            ("/2", "href", LinkTag::SvgA),
            ("/4", "xlink:href", LinkTag::SvgA)
        ]
    );
}

#[test]
fn html_tags_leave_foreign_content() {
    for tag in ["p", "div", "font color=red", "/p", "/br", "img", "h1"] {
        assert_eq!(title(&format!("<svg><g><{tag}><title>Page</title>")).as_deref(), Some("Page"), "{tag}");
    }
    assert_eq!(title("<svg><font><title>Icon</title>"), None);
    assert_eq!(title("<svg><foreignObject><title>Page</title>").as_deref(), Some("Page"));
    assert_eq!(title("<math><mi><title>Page</title>").as_deref(), Some("Page"));
    assert_eq!(
        title("<math><annotation-xml encoding=text/html><title>Page</title>").as_deref(),
        Some("Page")
    );
    assert_eq!(title("<svg/><title>Page</title>").as_deref(), Some("Page"));
}

#[test]
fn cdata_is_text_only_in_foreign_content() {
    assert_eq!(text("<svg><text><![CDATA[a > <b> &amp;]]></text></svg>"), "a > <b> &amp;");
    assert_eq!(text("x<![CDATA[a > b]]>"), "x b]]>");
    assert_eq!(text("<svg><desc><![CDATA[a > b]]></desc></svg>x"), "x");
}

#[test]
fn a_script_in_an_escaped_script_does_not_end_it() {
    let page = "<script><!-- document.write('<script>x</script><a href=/no>'); //--></script><a href=/yes>";
    assert_eq!(hrefs(page), ["/yes"]);
    assert_eq!(hrefs("<script><!--> <script> </script><a href=/yes>"), ["/yes"]);
    assert_eq!(hrefs("<script><!-- <scriptx> </script><a href=/yes>"), ["/yes"]);
    assert_eq!(hrefs("<script>'<a href=/no>' </scriptx> </SCRIPT\n><a href=/yes>"), ["/yes"]);
}

#[test]
fn comments_end_where_browsers_end_them() {
    for comment in
        ["<!-->", "<!--->", "<!-- > -- > --!>", "<!--a--!>", "<!---->", "<!--<!-->", "<!x'>'", "<!DOCTYPE '>"]
    {
        let page = format!("{comment}<a href=/yes>");
        assert_eq!(hrefs(&page), ["/yes"], "{comment}");
    }
    assert!(hrefs("<!-- open <a href=/no>").is_empty());
    assert!(hrefs("<!---!><a href=/no>-->").is_empty());
}

#[test]
fn raw_text_elements_hide_markup() {
    for element in ["style", "xmp", "iframe", "noembed", "noframes", "textarea"] {
        let page = format!("<{element}><a href=/no></a></{element}x></{element}><a href=/yes>");
        assert_eq!(hrefs(&page), ["/yes"], "{element}");
    }
    assert!(hrefs("<plaintext><a href=/no></plaintext><a href=/no>").is_empty());
    assert_eq!(
        text("<textarea>a &amp; b</textarea> <xmp>&amp; c</xmp><style>d</style><iframe>e</iframe>"),
        "a & b\n&amp; c"
    );
}

#[test]
fn a_template_holds_nothing() {
    let page = "<template><a href=/no>x</a><title>No</title><template><meta name=a></template>y</template>\
                <base href=/b><a href=/yes>z</a>";
    let scan = Scan::of(page, &ScanOptions::default());
    assert_eq!(hrefs(page), ["/yes"]);
    assert_eq!((scan.text(), scan.title(page), scan.metas(page).len()), ("z", None, 0));
}

#[test]
fn noscript_has_links_but_no_text() {
    let page = "<noscript><a href=/in>a</a><meta name=x></noscript>b<a href=/out>c</a>";
    let scan = Scan::of(page, &ScanOptions::default());
    let links: Vec<_> = scan.links(page).map(|link| (link.href, link.text, link.in_noscript)).collect();
    assert_eq!(links, [("/in", "", true), ("/out", "c", false)]);
    assert!(scan.metas(page).all(|meta| meta.in_noscript));
    assert_eq!(scan.text(), "bc");
    let scripting = ScanOptions { scripting: true, ..ScanOptions::default() };
    assert_eq!(hrefs_with(page, &scripting), ["/out"]);
    let open = "<head><noscript><link rel=a></head><body><a href=/x>text</a>";
    assert!(!Scan::of(open, &ScanOptions::default()).links(open).any(|link| link.in_noscript));
}

#[test]
fn the_base_may_stand_behind_the_first_link() {
    let page = "<a href=x>1</a><base target=_top><base href=' /a/ '><base href=/b/>";
    let scan = Scan::of(page, &ScanOptions::default());
    assert_eq!(scan.base_href(page), Some("/a/"));
    assert_eq!(scan.base_offset(), Some(page.find("base href=' ").expect("it is there") as u32));
    let hidden =
        "<template><base href=/no></template><svg><base href=/no></svg><noscript><base href=/no></noscript>";
    assert_eq!(Scan::of(hidden, &ScanOptions::default()).base_href(hidden), None);
}

#[test]
fn inline_tags_do_not_split_words_and_blocks_do() {
    assert_eq!(text("<p>un<b>believ</b>able<div>next</div>last<br>line"), "unbelievable\nnext\nlast\nline");
    assert_eq!(text("<ul><li>a<li>b</ul><table><tr><td>c<td>d</table>"), "a\nb\nc\nd");
    assert_eq!(text("a <b> b </b> c&#32;&#32;d&nbsp;e\r\n<i>\n</i>f"), "a b c d\u{A0}e f");
    assert_eq!(text("<p> \n </p><p></p>"), "");
    assert_eq!(text("a\0b<svg>c\0d"), "abc\u{FFFD}d");
}

#[test]
fn anchor_text_is_there_with_and_without_full_text() {
    let page = "x <a href=/1> one <b>bold</b>&amp;<p>two</a> y <a href=/2>three<a href=/3>four</a><a href=/4><img></a>\
                <table><td><a href=/5>five<td>z</table><a href=/6><table><td>six<td>6</table></a><a name=n>n</a>";
    let wanted = ["one bold&\ntwo", "three", "four", "", "five", "six\n6"];
    for options in [ScanOptions::default(), ScanOptions::links_only(), ScanOptions::everything()] {
        let scan = Scan::of(page, &options);
        let texts: Vec<_> = scan.links(page).map(|link| link.text).collect();
        assert_eq!(texts, wanted, "{options:?}");
    }
    assert_eq!(Scan::of(page, &ScanOptions::links_only()).text(), "");
}

#[test]
fn an_open_anchor_ends_with_its_block() {
    let page = "<div><p>a <a href=/1>one</p><p>two</p></div><ul><li><a href=/2>three</li><li>four</ul>five\
                <div><a href=/3><h2>six</h2></p><ul><li>seven</ul></a></div>";
    let scan = Scan::of(page, &ScanOptions::default());
    let texts: Vec<_> = scan.links(page).map(|link| link.text).collect();
    assert_eq!(texts, ["one", "three", "six\nseven"]);
}

#[test]
fn an_area_does_not_end_the_anchor_around_it() {
    let page = "<a href=/1>one <area href=/2> two</a>";
    let scan = Scan::of(page, &ScanOptions::default());
    let links: Vec<_> = scan.links(page).map(|link| (link.href, link.text, link.tag)).collect();
    assert_eq!(links, [("/1", "one two", LinkTag::A), ("/2", "", LinkTag::Area)]);
}

#[test]
fn rel_words_are_read_in_any_case() {
    let page = "<a href=1 rel='NoFollow ugc'><a href=2 rel=sponsored><a href=3 rel=nofollowing><a href=4>";
    let scan = Scan::of(page, &ScanOptions::default());
    let flags: Vec<_> =
        scan.links(page).map(|link| (link.nofollow(), link.ugc(), link.sponsored())).collect();
    assert_eq!(
        flags,
        [(true, true, false), (false, false, true), (false, false, false), (false, false, false)]
    );
    assert_eq!(scan.links(page).map(|link| link.index).collect::<Vec<_>>(), [0, 1, 2, 3]);
}

#[test]
fn regions_are_landmarks_of_the_page() {
    let page = "<a href=1><header><a href=2><nav><a href=3></nav></header><main><a href=4><article><header><a href=5>\
                </header></article><aside><a href=6></aside></main></nav><article><header><a href=7></header></article>\
                <footer><a href=8><main><a href=9></footer><a href=10>";
    let scan = Scan::of(page, &ScanOptions::default());
    let regions: Vec<_> = scan.links(page).map(|link| link.region).collect();
    use Region::{Aside, Footer, Header, Main, Nav};
    let none = Region::None;
    assert_eq!(regions, [none, Header, Nav, Main, Main, Aside, none, Footer, Main, none]);
}

#[test]
fn metas_say_what_the_page_is() {
    let page = "<html lang=' de-AT '><meta charset=utf-8><meta name=Robots content='noindex, nofollow'>\
                <meta name=googlebot content=none><meta property=og:title content='A &amp; B'><meta>\
                <meta http-equiv=Refresh content='3; url=/next'><meta name=robots content=noarchive>\
                <link rel='shortlink canonical' href=' /c?a&amp;b '><link rel=alternate hreflang=fr type=text/html media=print href=/fr>";
    let scan = Scan::of(page, &ScanOptions::default());
    assert_eq!(scan.html_lang(page), Some("de-AT"));
    assert_eq!(scan.meta_robots(page).collect::<Vec<_>>(), ["noindex, nofollow", "noarchive"]);
    assert_eq!(scan.canonical(page), Some("/c?a&b"));
    assert_eq!(scan.metas(page).next().and_then(|meta| meta.charset), Some("utf-8"));
    assert_eq!(scan.metas(page).find_map(|meta| meta.property.and(meta.content)), Some("A & B"));
    assert_eq!(scan.metas(page).len(), 6);
    let french = scan.link_elements(page).nth(1).expect("two links");
    assert_eq!(
        (french.hreflang, french.media_type, french.media, french.href),
        (Some("fr"), Some("text/html"), Some("print"), Some("/fr"))
    );
    let refresh = scan.meta_refresh(page).expect("a refresh");
    assert_eq!((refresh.delay, refresh.url), (3.0, "/next"));
}

#[test]
fn a_refresh_counts_only_near_the_start_and_outside_noscript() {
    let refresh = "<meta http-equiv=refresh content='0;/x'>";
    let found = |page: &str| Scan::of(page, &ScanOptions::default()).meta_refresh(page).is_some();
    assert!(found(refresh));
    assert!(found(&format!("{}{refresh}", "x".repeat(4000))));
    assert!(found(&format!("{}{refresh}", "\u{65E5}".repeat(4000))));
    assert!(!found(&format!("{}{refresh}", "x".repeat(4100))));
    assert!(!found(&format!("<noscript>{refresh}</noscript>")));
    assert!(!found(&format!("<!-- {refresh} -->")));
    assert!(found(&format!("<meta http-equiv=refresh content=soon>{refresh}")));
}

#[test]
fn resources_are_listed_when_asked_for() {
    let page = "<img src=/i.png srcset='/i2.png 2x, /i3.png 3x'><script src=/s.js></script><iframe src=/f></iframe>\
                <form action=' /go '><video poster=/p.png src=/v><source src=/w srcset=/z></video><embed src=/e>\
                <object data=/o></object><input type=Image src=/b.png><input type=text src=/t.png><template><img src=/no></template><frame src=/fr>";
    use ResourceKind::{Embed, Form, Frame, Iframe, Image, ImageCandidate, Media, Poster, Script};
    let scan = Scan::of(page, &ScanOptions::everything());
    let found: Vec<_> = scan.resources(page).map(|resource| (resource.url, resource.kind)).collect();
    assert_eq!(
        found,
        [
            ("/i.png", Image),
            ("/i2.png", ImageCandidate),
            ("/i3.png", ImageCandidate),
            ("/s.js", Script),
            ("/f", Iframe),
            ("/go", Form),
            ("/v", Media),
            ("/p.png", Poster),
            ("/w", Media),
            ("/z", ImageCandidate),
            ("/e", Embed),
            ("/o", Embed),
            ("/b.png", Image),
            ("/fr", Frame)
        ]
    );
    assert_eq!(Scan::of(page, &ScanOptions::default()).resources(page).len(), 0);
}

#[test]
fn links_beyond_the_limit_are_counted() {
    let page = "<a href=/x>y</a>".repeat(10);
    let options = ScanOptions { max_links: 4, ..ScanOptions::default() };
    let scan = Scan::of(&page, &options);
    assert_eq!((scan.links(&page).len(), scan.links_cut()), (4, 6));
    assert_eq!(scan.links(&page).last().map(|link| link.text), Some("y"));
    let images = "<img src=a srcset='b, c, d'>".repeat(10);
    let options = ScanOptions { max_links: 4, ..ScanOptions::everything() };
    let scan = Scan::of(&images, &options);
    assert_eq!(scan.resources(&images).len(), 4);
    assert!(scan.cut().resources > 0);
}

#[test]
fn blocks_cover_the_text_and_know_their_place() {
    let page = "<body>intro<div id=main class=x><p>one <b>two</b></p><p>three<br>four<ul class='c1 d'><li>five\
                <li><a href=/x>six</a></ul></div><footer>end</footer>";
    let scan = Scan::of(page, &ScanOptions::everything());
    let blocks: Vec<_> = scan.blocks().map(|block| (block.tag, block.text)).collect();
    assert_eq!(
        blocks,
        [
            ("body", "intro"),
            ("p", "one two"),
            ("p", "three\nfour"),
            ("li", "five"),
            ("li", "six"),
            ("footer", "end")
        ]
    );
    let joined: Vec<_> = scan.blocks().map(|block| block.text).collect();
    assert_eq!(joined.join("\n"), scan.text());
    assert!(scan.blocks().all(|block| block.span.of(scan.text()) == block.text));
    let paths: Vec<_> = scan.blocks().map(|block| block.path).collect();
    assert_eq!(paths[1], paths[2], "no sibling index");
    assert_eq!(paths[3], paths[4], "an open li ends at the next");
    assert_eq!(
        scan.links(page).next().map(|link| link.path),
        Some(paths[4]),
        "a link has the path of its block"
    );
    let distinct: std::collections::HashSet<_> = paths.iter().collect();
    assert_eq!(distinct.len(), 4);
}

#[test]
fn a_path_names_containers_by_id_and_the_rest_by_class() {
    let path =
        |page: &str| Scan::of(page, &ScanOptions::everything()).blocks().next().map(|block| block.path);
    let same = |a: &str, b: &str| path(a) == path(b);
    assert!(same("<div id=a class=x>t", "<div id=a class=y>u"), "an id hides the class");
    assert!(!same("<div id=a>t", "<div id=b>t"));
    assert!(same("<div id=post17>t", "<div id=post18>t"), "an id with a digit does not count");
    assert!(
        same("<p class='c12 x'>t", "<p class=' c7 y'>t"),
        "digits count as one 0, later classes not at all"
    );
    assert!(!same("<p class=c>t", "<p class=d>t"));
    assert!(same("<p id=a>t", "<p id=b>t"), "only containers have ids");
    assert!(same("<div><span><p>t", "<div><p>t"), "inline elements are no step");
    assert!(same("<div><p>a</b></p></td></ul><p>t", "<div><p>t"), "stray end tags are ignored");
    assert!(same("<div><table><tr><td></div><p>x", "<div><table><tr><td><p>x"), "cells hold what is in them");
}

#[test]
fn paths_are_the_same_in_every_version() {
    let page = "<div id=main><ul class=c12><li>x</ul></div>y";
    let scan = Scan::of(page, &ScanOptions::everything());
    let paths: Vec<_> = scan.blocks().map(|block| block.path).collect();
    assert_eq!(paths, [0x6161_1869_127D_7E3C, 0x6875_6E74_736D_616E], "crawls store them");
}

#[test]
fn a_scan_forgets_the_page_before() {
    let mut scan = Scan::new();
    let first = "<html lang=en><base href=/b><title>T</title><meta name=a><link rel=b><svg><nav><a href=/1&amp;>x</a>";
    scan.run(first, &ScanOptions::everything());
    scan.run("<p>new", &ScanOptions::links_only());
    assert_eq!((scan.links("<p>new").len(), scan.metas("<p>new").len(), scan.blocks().len()), (0, 0, 0));
    assert_eq!(
        (scan.title("<p>new"), scan.base_href("<p>new"), scan.html_lang("<p>new")),
        (None, None, None)
    );
    let last = "<title>N</title><a href=/2>y</a>";
    scan.run(last, &ScanOptions::default());
    assert_eq!(
        (scan.title(last), scan.links(last).next().map(|link| link.region)),
        (Some("N"), Some(Region::None))
    );
    scan.shrink_to(0);
    assert_eq!(scan.heap_bytes(), 0);
}

#[test]
fn a_wrong_document_gives_nonsense_but_no_panic() {
    let page = "<title>T\u{E4}</title><a href='/\u{E4}&amp;' rel=\u{E4}>\u{E4}</a><meta name=\u{E4}>";
    let scan = Scan::of(page, &ScanOptions::everything());
    for other in ["", "short", &"\u{65E5}".repeat(100)] {
        assert!(scan.links(other).all(|link| !link.nofollow()));
        let _ = (scan.title(other), scan.metas(other).count(), scan.meta_refresh(other));
    }
}

#[test]
fn xml_documents_pass_through() {
    let feed = "<?xml version='1.0'?><rss><channel><title>Feed</title><link>http://e.org/</link>\
                <item><description><![CDATA[<a href='/x'>x</a>]]></description></item></channel></rss>";
    let scan = Scan::of(feed, &ScanOptions::everything());
    assert_eq!(scan.title(feed), Some("Feed"));
    let map = "<urlset><url><loc>http://e.org/a</loc></url></urlset>";
    assert_eq!(Scan::of(map, &ScanOptions::everything()).text(), "http://e.org/a");
}

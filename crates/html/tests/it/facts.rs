//! Facts for audits, which come from the same pass as the links.

use huntsman_html::{PageFacts, Scan, ScanOptions};

fn facts(page: &str) -> PageFacts {
    let options = ScanOptions { audit: true, resources: true, ..ScanOptions::default() };
    Scan::of(page, &options).facts().unwrap().clone()
}

#[test]
fn templates_comments_and_noscript_give_no_facts() {
    let hidden = "<h1 id=a>A</h1><img src=x><input><title>T</title><main></main><a name=n></a>";
    for page in [
        format!("<template>{hidden}</template>"),
        format!("<!-- {hidden} -->"),
        format!("<body><noscript>{hidden}</noscript>"),
        format!("<script>'{hidden}'</script>"),
        format!("<textarea aria-label=x>{hidden}</textarea>"),
    ] {
        let found = facts(&page);
        let kinds = (
            found.headings.len(),
            found.images.len(),
            found.ids.len(),
            found.titles.len(),
            found.names.len(),
        );
        assert_eq!((kinds, found.mains), ((0, 0, 0, 0, 0), 0), "{page}");
    }
    assert_eq!(facts("<svg><title>T</title></svg>").titles.len(), 0);
}

#[test]
fn a_scan_finds_the_same_links_with_and_without_facts() {
    let pages = [
        "<title>A &amp; B</title><a href=/a>one</a><noscript><a href=/b>two</a></noscript><template><a href=/c>x</a></template>",
        "<svg><a href=/s><title>t</title></a><a xlink:href=/x /></svg><area href=/m alt=Map><a href=/u>unclosed<a href=/v>next",
        "<p>text<table><tr><td><a href=/t>cell</td></tr></table><select><option><a href=/o>o</a></select>",
    ];
    for page in pages {
        let links = |options: &ScanOptions| {
            let scan = Scan::of(page, options);
            let links: Vec<_> = scan
                .links(page)
                .map(|link| (link.href.to_owned(), link.text.to_owned(), link.offset))
                .collect();
            (links, scan.text().to_owned(), scan.title(page).map(str::to_owned))
        };
        let plain = ScanOptions { resources: true, ..ScanOptions::default() };
        let audit = ScanOptions { audit: true, ..plain.clone() };
        assert_eq!(links(&plain), links(&audit), "{page}");
        assert_eq!(facts(page).links.len(), links(&plain).0.len(), "each link has its facts: {page}");
        assert!(Scan::of(page, &plain).facts().is_none());
    }
}

#[test]
fn links_are_called_what_readers_hear() {
    let page = "<a href=/1> Hawk <b>moths</b>\n</a><a href=/2><img src=x alt='Front page'></a><a href=/3 aria-label=Search><i></i></a>\
                <a href=/4><svg><title>Menu</title></svg></a><a href=/5><img src=x alt=''></a><div hidden><a href=/6></a></div><a href=/7 title=Up></a>";
    let facts = facts(page);
    let found: Vec<_> = facts
        .links
        .iter()
        .map(|link| (link.name.as_str(), link.is_named_otherwise, link.is_hidden))
        .collect();
    assert_eq!(
        found,
        [
            ("Hawk moths", false, false),
            ("Front page", false, false),
            ("Search", false, false),
            ("Menu", false, false),
            ("", false, false),
            ("", false, true),
            ("", true, false)
        ]
    );
}

#[test]
fn items_are_judged_by_the_list_around_them() {
    for (page, broken) in [
        ("<ul><li>a<li>b</ul>", 0),
        ("<ul><li><div><p>a</div><li>b</ul><p>c", 0),
        ("<ol><li>a<ul><li>b</ul></li><li>c</ol>", 0),
        ("<menu><li>a</menu><dl><dt>a<dd>b<dt>c</dl>", 0),
        ("<dl><div><dt>a<dd>b</div></dl>", 0),
        ("<p><b>a</p><ul><li>b</ul>", 0),
        ("<ul><b></b></ul>", 1),
        ("<li>a", 1),
        ("<div><li>a</div>", 1),
        ("<ul><ul><li>a</ul></ul>", 1),
        ("<ul><li>a</li><div>b</div></ul>", 1),
        ("<dl><p>a</dl><dd>b", 2),
        ("<my-list><li>a</my-list><ul><my-item></my-item></ul>", 0),
        ("<div role=list><li>a</div><ul role=tree><div>b</div></ul>", 0),
        ("<ul><template><p></template><!-- <p> --></ul>", 0),
        ("<ul hidden><p>a</ul>", 0),
        ("<svg><li>a</svg>", 1),
        ("<table><tr><td><ul><li>a</td><td><ul><li>b</table>", 0),
        ("<ul><li><a href=/><b>a</a></b><li>c</ul>", 0),
        ("<ul><li></ul></ul></div><ul><li></ul>", 0),
    ] {
        assert_eq!(facts(page).semantics.broken_lists.len(), broken, "{page}");
    }
}

#[test]
fn tables_of_text_need_headers() {
    for (page, headless) in [
        ("<table><tr><td>a<td>b<tr><td>c<td>d</table>", 1),
        (
            "<table><tbody><tr><td>a</td><td><a href=/>b</a></td></tr><tr><td>c</td><td>d</td></tr></tbody></table>",
            1,
        ),
        ("<table><tr><th>a<td>b<tr><td>c<td>d</table>", 0),
        ("<table><tr><td scope=col>a<td>b<tr><td>c<td>d</table>", 0),
        ("<table><tr><td>a<td>b<tr><td colspan=2>c</table>", 0),
        ("<table><tr><td>a<td>b<tr><td>c</table>", 0),
        ("<table><tr><td>a<tr><td>b</table>", 0),
        ("<table><tr><td><table><tr><td>a<td>b<tr><td>c<td>d</table><td>e<tr><td>f<td>g</table>", 0),
        ("<table role=none><tr><td>a<td>b<tr><td>c<td>d</table>", 0),
        ("<table><tr><td>a<td>b<tr><td>c<td>d", 0),
    ] {
        assert_eq!(facts(page).semantics.headless_tables.len(), headless, "{page}");
    }
}

#[test]
fn the_depth_counts_from_the_body_and_ends_with_each_element() {
    for (page, depth) in [
        ("", 0),
        ("<p>a", 2),
        ("<html><head></head><body><p>a<p>b<p>c</body></html>", 2),
        ("<div><div><br></div></div><div></div>", 4),
        ("<ul><li>a<li>b<li>c</ul>", 3),
    ] {
        assert_eq!(facts(page).semantics.depth, depth, "{page}");
    }
    let deep = "<div>".repeat(100_000);
    assert_eq!(facts(&deep).semantics.depth, 100_001);
}

#[test]
fn buttons_frames_and_videos_are_called_by_their_names() {
    let page = "<button>Buy <b>now</b></button><button></button><button title=Up></button><div role=button>Open</div><input type=button value=Go>\
                <iframe src=/a></iframe><iframe src=/b title=B></iframe><iframe></iframe><iframe src=/c width=0></iframe>\
                <video src=a></video><video src=b muted></video><video></video><video><source src=c><track></video>";
    let found = facts(page).semantics;
    let names: Vec<_> =
        found.buttons.iter().map(|button| (button.name.as_str(), button.is_named_otherwise)).collect();
    assert_eq!(names, [("Buy now", false), ("", false), ("", true), ("Open", false), ("Go", false)]);
    assert_eq!((found.nameless_frames.len(), found.uncaptioned_videos.len()), (1, 1));
}

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

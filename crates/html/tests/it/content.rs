//! Tests of the main content of a page, without menus, headers, footers and asides.

use huntsman_html::{Region, Scan, ScanOptions};

fn scan(page: &str) -> Scan {
    Scan::of(page, &ScanOptions { text: true, ..ScanOptions::links_only() })
}

fn content(page: &str) -> String {
    scan(page).content().map(str::trim).collect::<Vec<_>>().join("|")
}

#[test]
fn text_is_classified_by_the_landmark_around_it() {
    let page = "<header>Head</header><nav>Menu <a href=/>Home</a></nav><main>Own <p>text</p><aside>Beside</aside> more</main>\
        <footer>Foot</footer>tail";
    let scan = scan(page);
    let regions: Vec<(&str, Region)> = scan.regions().map(|(text, region)| (text.trim(), region)).collect();
    assert_eq!(
        regions,
        [
            ("Head", Region::Header),
            ("Menu Home", Region::Nav),
            ("Own\ntext", Region::Main),
            ("Beside", Region::Aside),
            ("more", Region::Main),
            ("Foot", Region::Footer),
            ("tail", Region::None),
        ]
    );
    let whole: String = scan.regions().map(|(text, _)| text).collect();
    assert_eq!(whole, scan.text(), "nothing is left out and nothing is told twice");
}

#[test]
fn content_is_main_else_what_is_in_no_landmark_else_everything() {
    assert_eq!(content("<nav>a</nav><p>b<main>c</main><footer>d</footer>"), "c");
    assert_eq!(content("<nav>a</nav><p>b</p><aside>c</aside><div>d</div><footer>e</footer>"), "b|d");
    assert_eq!(content("<nav>a</nav><footer>b</footer>"), "a|b");
    assert_eq!(content("<p>a</p><p>b</p>"), "a\nb");
    assert_eq!(content("<main></main><p>a</p>"), "a", "an empty main is none");
    assert_eq!(content(""), "");
}

#[test]
fn a_header_within_an_article_is_content() {
    assert_eq!(
        content("<header>site</header><article><header>Title</header><p>Text</p></article>"),
        "Title\nText"
    );
}

#[test]
fn landmarks_without_text_cost_nothing_and_many_with_text_are_bounded() {
    let empty = "<nav></nav><aside></aside>".repeat(100_000);
    assert_eq!(content(&format!("{empty}text{empty}")), "text");
    let many = "<nav>a</nav>b".repeat(100_000);
    let scan = scan(&many);
    assert!(scan.regions().count() <= 1 << 16);
    let whole: String = scan.regions().map(|(text, _)| text).collect();
    assert_eq!(whole, scan.text());
    assert!(scan.content().next().is_some());
}

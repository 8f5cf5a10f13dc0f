//! The pages for people.

use huntsman_testkit::browser::Browser;

use super::*;

#[test]
fn pages_have_a_strict_policy_and_nothing_from_the_web_is_markup() {
    let evil = "<script>alert(1)</script>\" onload='x' \u{202e}";
    let site = Site::builder()
        .page(
            "/evil",
            format!("<title>&lt;script>alert(2)</title><p>{} &lt;script>alert(3)&lt;/script>", words(0, 60)),
        )
        .start_blocking();
    let server = Server::beside(&[&site], &[]);
    let article = format!("{evil} {}", words(0, 60));
    let url = site.url("/evil").to_string();
    let pages = [
        server.get("/"),
        server.form("/compare", &[("article", &article), ("source", &article)], &[]),
        server.form("/compare", &[("article", &url), ("source", &article)], &[]),
        server.form("/compare", &[("article", &article), ("source", "http://\"><script>/")], &[]),
        server.form("/check", &[("article", &article), ("source", &format!("{url}\n"))], &[]),
        server.form("/check", &[("article", &article), ("source", evil)], &[]),
        server.get("/api.json?format=jsonfm&action=%3Cscript%3E"),
    ];
    assert_eq!(pages.iter().map(|page| page.status).collect::<Vec<_>>(), [200, 200, 200, 422, 200, 422, 200]);
    for page in &pages {
        let policy = page.header("content-security-policy").unwrap();
        assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
        assert!(!page.body.contains("<script") && !page.body.contains("onload='"), "{}", page.body);
        assert!(!page.body.contains('\u{202e}') && !page.body.contains(" style="), "{}", page.body);
        assert_eq!(page.body.matches("<section").count(), page.body.matches("</section").count());
    }
    assert!(pages[2].body.contains("&lt;script&gt;alert(2)") && pages[4].body.contains("class=\"match\""));
    // The forms show the values that were sent.
    assert!(pages[5].body.contains("alert(1)&lt;/script&gt;&quot; onload=&#39;x&#39;"), "{}", pages[5].body);
}

#[test]
fn a_browser_compares_texts_and_a_click_on_a_match_leads_to_the_other_side() {
    let server = Server::start(&[]);
    let browser = Browser::start();
    browser.open(&server.url("/"));
    // There is enough text in front to put the passages on different lines.
    let source = format!("{} {}\nend", words(2_000, 3_500), words(10, 50));
    browser.paste("#compare-article", &format!("begin {}", words(0, 60)));
    browser.paste("#compare-source", &source);
    browser.click("form[action='/compare'] button");
    assert!(browser.text(".band").starts_with("77.4 %"), "{}", browser.text(".band"));
    assert_eq!(browser.url(), server.url("/compare"));
    assert_eq!((browser.count("a.match"), browser.text("#a1-0")), (2, words(10, 50)));
    assert_ne!(browser.style("#a1-0", "background-color"), browser.style("article", "background-color"));
    assert!(browser.is_in_view("#a1-0") && !browser.is_in_view("#s1-0"));
    browser.click("#a1-0");
    browser.wait_for("#s1-0");
    assert!(browser.url().ends_with("/compare#s1-0"), "{}", browser.url());
    assert_eq!((browser.count("#s1-0:target"), browser.text(":target")), (1, words(10, 50)));
    assert_ne!(browser.style(":target", "background-color"), browser.style("#a1-0", "background-color"));
    assert_eq!(browser.console_messages(), Vec::<String>::new());
}

#[test]
fn a_browser_looks_for_sources_and_the_page_of_a_comparison_leads_from_side_to_side() {
    let site = site();
    let server = Server::beside(&[&site], &[]);
    let browser = Browser::start();
    browser.open(&server.url("/"));
    browser.paste("#check-article", &words(0, 300));
    browser.paste("#check-sources", &format!("{}\n{}", site.url("/fails"), site.url("/copy")));
    browser.click("form[action='/check'] button");
    assert!(browser.text("table.list tr.unread").contains("500"), "{}", browser.text("table.list"));
    assert_eq!((browser.count("table.list tr.suspected"), browser.count("table.list tr.unread")), (1, 1));
    browser.click("table.list tr.suspected a");
    browser.wait_for(":target h2");
    assert_eq!(browser.console_messages(), Vec::<String>::new());

    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("a.txt"), format!("begin\n{}", words(0, 60))).unwrap();
    std::fs::write(directory.path().join("b.txt"), format!("{}\n{}", words(2_000, 3_500), words(10, 50)))
        .unwrap();
    let said =
        run(huntsman(directory.path()).args(["copyvio", "compare", "a.txt", "b.txt", "--html", "page.html"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    browser.open(&format!("file://{}", directory.path().join("page.html").display()));
    browser.click("#a1-0");
    browser.wait_for("#s1-0:target");
    assert_eq!(browser.text(":target"), words(10, 50));
    browser.click("#s1-0");
    browser.wait_for("#a1-0:target");
    assert_eq!(browser.console_messages(), Vec::<String>::new());
}

//! Requests created by a spider.

use huntsman::Request;
use huntsman_testkit::{Reply, ScriptedDownloader};

use super::support::{links, quick};

#[test]
fn a_request_needs_an_absolute_url() {
    for text in ["", "/path", "a.test/x", "//a.test/x", "http://", "http://a test/", "http://a.test:99999/"] {
        let error = Request::parse(text).unwrap_err();
        assert!(!error.to_string().is_empty(), "{text}");
    }
    assert!(Request::parse("/path").unwrap_err().to_string().contains("/path"), "the error names the text");
}

#[test]
fn unsafe_characters_are_encoded_and_fragments_are_kept() {
    let request = Request::parse(" http://a.test/caf\u{e9} x?q=\u{20ac}&r=a b#Teil \n").unwrap();
    assert_eq!(request.url.as_str(), "http://a.test/caf%C3%A9%20x?q=%E2%82%AC&r=a%20b#Teil");
    assert!(request.url.as_str().is_ascii());
}

#[test]
fn a_query_is_in_the_encoding_that_was_asked_for() {
    let url = |text: &str, encoding: &str| {
        Request::parse_encoded(text, encoding).map(|request| request.url.to_string())
    };
    assert_eq!(
        url("http://a.test/\u{e9}?q=\u{e9} \u{20ac}", "latin1").unwrap(),
        "http://a.test/%C3%A9?q=%E9%20%80"
    );
    assert_eq!(url("http://a.test/?q=\u{65e5}", "shift_jis").unwrap(), "http://a.test/?q=%93%FA");
    assert_eq!(url("http://a.test/?q=\u{e9}", "utf-8").unwrap(), "http://a.test/?q=%C3%A9");
    assert!(url("http://a.test/", "latin-99").unwrap_err().to_string().contains("latin-99"));
    assert!(url("/x", "latin1").is_err());
}

#[tokio::test(start_paused = true)]
async fn pages_of_different_encodings_ask_for_different_queries() {
    // The pages link to the same query, a single e with an accent, and differ only in their encodings.
    let page = |charset: &str, body: &[u8]| {
        Reply::status(200)
            .header("content-type", &format!("text/html; charset={charset}"))
            .body(body.to_vec())
    };
    let web = ScriptedDownloader::new()
        .respond("http://a.test/1", page("iso-8859-1", b"<a href='/?q=\xe9'>x</a><a href='/2'>y</a>"))
        .respond("http://a.test/2", page("utf-8", "<a href='/?q=\u{e9}'>x</a><a href='/3'>y</a>".as_bytes()))
        .respond("http://a.test/3", page("iso-8859-1", b"<a href='/?q=\xe9'>x</a>"))
        .otherwise(|_, _| Reply::html("x"));
    quick(links(["http://a.test/1"]), &web).run().await.unwrap();
    let queries: Vec<String> = web.urls().into_iter().filter(|url| url.contains('?')).collect();
    assert_eq!(queries, ["http://a.test/?q=%E9", "http://a.test/?q=%C3%A9"]);
}

#[tokio::test(start_paused = true)]
async fn links_that_are_no_urls_are_skipped_and_counted() {
    let html = "<a href='http://[1'>1</a><a href='https://a b/'>2</a><a href='mailto:x@a.test'>3</a><a href=/ok>4</a>";
    let web = ScriptedDownloader::pages([("http://a.test/", html), ("http://a.test/ok", "x")]);
    let report = quick(links(["http://a.test/"]), &web).run().await.unwrap();
    assert_eq!((report.pages, report.stat("links/invalid")), (2, 2));
    assert!(report.is_finished());
}

#[test]
fn a_form_is_posted_in_order() {
    let pairs = [("b", "2"), ("a", "x&y"), ("b", "\u{e9}")];
    let request = Request::form("http://a.test/f".parse().unwrap(), pairs);
    assert_eq!(request.method, "POST");
    assert_eq!(request.body.as_ref(), b"b=2&a=x%26y&b=%C3%A9");
    assert_eq!(request.headers["content-type"], "application/x-www-form-urlencoded");
}

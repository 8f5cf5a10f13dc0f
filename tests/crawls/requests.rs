//! Requests as a spider makes them.

use huntsman::Request;

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
fn a_form_is_posted_in_order() {
    let pairs = [("b", "2"), ("a", "x&y"), ("b", "\u{e9}")];
    let request = Request::form("http://a.test/f".parse().unwrap(), pairs);
    assert_eq!(request.method, "POST");
    assert_eq!(request.body.as_ref(), b"b=2&a=x%26y&b=%C3%A9");
    assert_eq!(request.headers["content-type"], "application/x-www-form-urlencoded");
}

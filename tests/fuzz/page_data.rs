//! Data that pages hold for programs: JSON, JSONPath, linked data and microdata.

use huntsman::{Page, Request, Response};
use serde_json::Value;
use url::Url;

use super::split;

/// Reads a page in all these ways; its first line is a JSONPath, and JSON in it is selected from.
pub(crate) fn page_data(data: &[u8]) {
    let (path, body) = split(data);
    let path = String::from_utf8_lossy(path);
    let url = Url::parse("http://h.example/dir/").expect("a URL");
    let page = Page::new(Request::get(url.clone()), Response::html(url, body.to_vec()));
    let text = page.body_text();
    let strict = serde_json::from_str::<Value>(text.strip_prefix('\u{feff}').unwrap_or(text));
    match (page.json_body(), &strict) {
        (Ok(read), Ok(expected)) => assert_eq!(read.value(), expected),
        (Ok(_), Err(error)) => panic!("this is no JSON: {error}"),
        (Err(_), _) => {}
    }
    let values = page.json_path(&path).and_then(|found| found.get_all());
    if let Ok(values) = values {
        assert!(path.starts_with('$') && strict.is_ok(), "{} values", values.len());
    }
    let _ = page.script_json("state").map(|state| state.json_path(&path).map(|found| found.get()));
    let _ = page.script_json("script");
    let _ = page.linked_data_of::<Value>("Product");
    let _ = page
        .microdata()
        .map(|found| (found.to_json(), found.as_linked_data().of_type("Product").map(|found| found.len())));
    let _ = page.open_graph().to_json();
}

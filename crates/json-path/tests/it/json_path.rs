//! JSONPath beside jsonpath-rfc9535; `tests/data/json_path.py` made the table.

use huntsman_json_path::{JsonPath, Limits};
use serde_json::{Value, json};

/// Where the reference is wrong: it asks whether a value is true instead of whether it is there, takes `true` for 1, and takes what is no
/// comparison by the grammar of the RFC.
const REFERENCE_IS_WRONG: [(&str, &str); 8] = [
    ("list", "$[?!@]"),
    ("list", "$[?@]"),
    ("pairs", "$[?@ == $[0]]"),
    ("empty", "$[?!!@.a]"),
    ("empty", "$[?@.a==1==1]"),
    ("empty", "$[?(@.a == 1) == true]"),
    ("empty", "$[?(@.a) == 1]"),
    ("empty", "$[?!@.a == 1]"),
];

fn table() -> Value {
    serde_json::from_str(include_str!("../data/json_path.json")).unwrap()
}

#[test]
fn paths_select_what_the_reference_selects_and_refuse_what_it_refuses() {
    let table = table();
    let (mut selected, mut refused, mut differences) = (0, 0, Vec::new());
    for case in table["cases"].as_array().unwrap() {
        let (path, document) =
            (case["path"].as_str().unwrap(), &table["documents"][case["document"].as_str().unwrap()]);
        if REFERENCE_IS_WRONG.contains(&(case["document"].as_str().unwrap(), path)) {
            continue;
        }
        let found = JsonPath::new(path).and_then(|path| Ok(json!(path.select(document)?)));
        match (&found, &case["values"]) {
            (Ok(values), expected) if values == expected => selected += 1,
            (Err(_), Value::Null) => refused += 1,
            _ => differences
                .push(format!("{path} on {}: {found:?}, expected {}", case["document"], case["values"])),
        }
    }
    assert!(differences.is_empty(), "{}\n{selected} {refused}", differences.join("\n"));
    assert!(selected > 200 && refused > 90, "{selected} {refused}");
}

#[test]
fn errors_show_the_place_in_the_path() {
    let message = |path: &str| JsonPath::new(path).unwrap_err().to_string();
    for (path, character, what) in [
        ("", 1, "begins with $"),
        ("items", 1, "begins with $"),
        ("$.a[", 5, "ends too early"),
        ("$.é['b", 7, "within a name or text in quotes"),
        ("$.é.b c", 7, "a part of a path is missing"),
        ("$.a[?@.b = 1]", 10, "'=' is not expected here"),
        ("$.a[?length(@.b)]", 6, "length() gives a value"),
        ("$.a[?length(@.*) > 1]", 6, "length() takes a value"),
        ("$.a[?@.x && count(1) > 1]", 13, "count() takes a path"),
        ("$.a[?in(@.b, 'c')]", 6, "there is no function in()"),
    ] {
        let message = message(path);
        let place = format!("character {character}: ");
        assert!(message.contains(&place) && message.contains(what), "{path}: {message}");
    }
    assert!(message(&format!("$.a[?{}@.b{}]", "(".repeat(9), ")".repeat(9))).contains("8 parentheses"));
    assert!(message(&format!("$.{}", "a".repeat(10_000))).contains("10000 bytes"));
}

#[test]
fn an_evaluation_ends_at_its_limits() {
    let deep = (0..400).fold(json!(0), |inside, _| json!([inside, 0, 0]));
    let limits = Limits { steps: 10_000, results: 1_000 };
    let message =
        |path: &str| JsonPath::new(path).unwrap().select_within(&deep, limits).unwrap_err().to_string();
    assert!(message("$..*").contains("more than the 1000 values"), "{}", message("$..*"));
    assert!(message("$..[?@..[?@ == 1]]").contains("more than the 10000 steps"));
    assert!(JsonPath::new("$..[0]").unwrap().select_within(&deep, limits).is_ok());
}

#[test]
fn regular_expressions_of_the_document_count_as_much_as_they_cost() {
    let texts: Vec<Value> = (0..1_000).map(|n| json!({"t": "x", "p": format!("(a|b{n}){{1,9}}")})).collect();
    let limits = Limits { steps: 1_000_000, ..Limits::default() };
    let path = JsonPath::new("$[?match(@.t, @.p)]").unwrap();
    let error = path.select_within(&json!(texts), limits).unwrap_err().to_string();
    assert!(error.contains("1000000 steps"), "{error}");
}

#[test]
fn paths_that_nest_functions_are_refused_at_once() {
    let path = format!("$[?{}@.a{} == 1", "length(".repeat(8), ")".repeat(8));
    assert!(JsonPath::new(&path).is_err());
}

//! What expressions give, compared with lxml, and what is said of those that are not valid.

use std::fs;
use std::path::{Path, PathBuf};

use huntsman_xpath::{Document, Kind, Node, Scope, Value, XPath};
use serde_json::{Value as Json, json};

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

/// A value as `tests/data/make.py` writes it.
fn shown(document: &Document, value: &Value) -> Json {
    match value {
        Value::Nodes(nodes) => nodes.iter().map(|node| shown_node(document, *node)).collect(),
        Value::Boolean(value) => json!(value),
        Value::Number(number) if number.is_finite() => json!(number),
        other => json!({"string": other.string(document)}),
    }
}

fn shown_node(document: &Document, node: Node) -> String {
    match document.kind(node) {
        Kind::Element => format!("<{}>{}", document.name(node), document.value(node)),
        _ => document.value(node).to_owned(),
    }
}

#[test]
fn every_query_gives_what_lxml_gives() {
    let expected: Json =
        serde_json::from_str(&fs::read_to_string(data().join("expected.json")).unwrap()).unwrap();
    let scope = Scope::new().prefix("a", "urn:a").prefix("b", "urn:b").variable("v", "div");
    let mut compared = 0;
    for (file, queries) in expected.as_object().unwrap() {
        let document = Document::read_xml(&fs::read_to_string(data().join(file)).unwrap()).unwrap();
        for (query, wanted) in queries.as_object().unwrap() {
            let value = XPath::new(query).unwrap().evaluate(&document, document.root(), &scope);
            let value = value.unwrap_or_else(|error| panic!("{file}: {error}"));
            assert_eq!(&shown(&document, &value), wanted, "{file}: {query}");
            compared += 1;
        }
    }
    assert!(compared > 900, "{compared}");
}

#[test]
fn an_error_gives_the_place_and_what_is_missing() {
    for (expression, wanted) in [
        (
            "//a[",
            "XPath \"//a[\", character 5: an operand is missing: a path, a string, a number, a variable or a function",
        ),
        ("//a[1", "character 6: \"]\" is missing"),
        ("//", "character 3: a step is missing"),
        ("//a b", "character 5: an operator is needed here, and not \"b\""),
        ("//ü[foo()]", "character 5: there is no function \"foo\""),
        ("sideways::a", "character 1: there is no axis \"sideways\""),
        ("contains('a')", "character 1: contains() takes 2 arguments, and not 1"),
        ("'open", "character 1: the string does not end"),
        ("a # b", "character 3: \"#\" means nothing here"),
        ("", "character 1: an operand is missing"),
        ("1 2", "character 3: the expression should end here"),
    ] {
        let error = XPath::new(expression).unwrap_err().to_string();
        assert!(error.contains(wanted), "{expression}: {error}");
    }
}

#[test]
fn what_is_not_in_the_scope_is_an_error_when_it_is_evaluated() {
    let document = Document::read_xml("<a>text</a>").unwrap();
    for (expression, wanted) in [
        ("//p:a", "character 3: the prefix \"p\" is not given"),
        ("//a[. = $name]", "character 9: the variable $name is not given"),
        ("count('a')", "count() takes nodes, and not the value \"a\""),
        ("re:test('a', '(')", "is no regular expression"),
    ] {
        let error =
            XPath::new(expression).unwrap().evaluate(&document, document.root(), &Scope::new()).unwrap_err();
        assert!(error.to_string().contains(wanted), "{expression}: {error}");
    }
}

#[test]
fn an_expression_is_evaluated_at_the_given_node() {
    let document = Document::read_xml("<r><a><b>1</b></a><a><b>2</b></a></r>").unwrap();
    let scope = Scope::new();
    let Value::Nodes(parts) =
        XPath::new("//a").unwrap().evaluate(&document, document.root(), &scope).unwrap()
    else {
        panic!("nodes")
    };
    let at = |node, path: &str| {
        XPath::new(path).unwrap().evaluate(&document, node, &scope).unwrap().strings(&document)
    };
    assert_eq!((at(parts[1], "b"), at(parts[1], ".//b")), (vec!["2".to_owned()], vec!["2".to_owned()]));
    assert_eq!(at(parts[1], "//b"), ["1", "2"], "a path from the root leaves the node");
    assert_eq!(at(parts[0], "string(following-sibling::a)"), ["2"]);
}

#[test]
fn variables_have_all_types() {
    let document = Document::read_xml("<r><a n='1'/><a n='2'/></r>").unwrap();
    let scope = Scope::new().variable("n", 2.0).variable("t", "1").variable("yes", true);
    let found = |path: &str| XPath::new(path).unwrap().evaluate(&document, document.root(), &scope).unwrap();
    assert_eq!(found("string(//a[$n]/@n)").string(&document), "2");
    assert_eq!(found("count(//a[@n = $t])").number(&document), 1.0);
    assert_eq!(found("count(//a[$yes])").number(&document), 2.0);
}

#[test]
fn functions_of_exslt_are_those_of_their_namespaces_whatever_the_prefix() {
    let document = Document::read_xml("<r><a>1</a><a>x</a></r>").unwrap();
    let scope = Scope::new()
        .prefix("regexp", "http://exslt.org/regular-expressions")
        .prefix("s", "http://exslt.org/sets")
        .prefix("set", "urn:mine");
    let found = |path: &str| XPath::new(path).unwrap().evaluate(&document, document.root(), &scope);
    for path in [r"//a[regexp:test(., '\d')]", r"//a[re:test(., '\d')]", "s:difference(//a, //a[2])"] {
        assert_eq!(found(path).unwrap().strings(&document), ["1"], "{path}");
    }
    let told = found("set:distinct(//a)").unwrap_err().to_string();
    assert!(told.contains("there is no function \"distinct\" in urn:mine"), "{told}");
    let told = found("no:distinct(//a)").unwrap_err().to_string();
    assert!(told.contains("the prefix \"no\" is not given"), "{told}");
    assert!(XPath::new("re:nothing(//a)").unwrap_err().to_string().contains("no function \"re:nothing\""));
}

//! Documents: what is read from XML, and what is written.

use huntsman_xpath::{Document, Kind, Scope, XPath};

fn strings(document: &Document, path: &str) -> Vec<String> {
    let scope = Scope::new().prefix("d", "urn:d").prefix("e", "urn:e");
    XPath::new(path).unwrap().evaluate(document, document.root(), &scope).unwrap().strings(document)
}

#[test]
fn cdata_references_and_entities_are_text() {
    let xml = "<!DOCTYPE r [<!ENTITY big 'expanded'>]><r>a<![CDATA[<b>]]>&amp;&#65;&#x42;&big;</r>";
    let document = Document::read_xml(xml).unwrap();
    assert_eq!(
        strings(&document, "/r/text()"),
        ["a<b>&AB&big;"],
        "one text, and no entity of the document is expanded"
    );
}

#[test]
fn names_belong_to_their_namespaces() {
    let xml = "<r xmlns='urn:d' xmlns:e='urn:e'><e:a x='1' e:x='2'/><a xmlns=''/><a/></r>";
    let document = Document::read_xml(xml).unwrap();
    let names = |path: &str| strings(&document, path).len();
    assert_eq!((names("//a"), names("//d:a"), names("//e:a"), names("//e:*")), (1, 1, 1, 1));
    assert_eq!(
        (strings(&document, "//@x"), strings(&document, "//@e:x")),
        (vec!["1".to_owned()], vec!["2".to_owned()])
    );
}

#[test]
fn damaged_xml_is_read_as_far_as_it_goes() {
    let document = Document::read_xml("<r><a>1</a></b><a>2</a><a x=y>3<c></a>").unwrap();
    assert_eq!(strings(&document, "//a")[..2], ["1", "2"]);
    let error = Document::read_xml("no markup").unwrap_err().to_string();
    assert!(error.starts_with("no XML: the document ends at byte 9"), "{error}");
}

#[test]
fn a_node_is_written_as_it_was_read() {
    let xml = "<r xmlns:e=\"urn:e\"><!--c--><e:a x=\"&lt;&quot;1\">t &amp; u<b/></e:a><?p q?></r>";
    let document = Document::read_xml(xml).unwrap();
    assert_eq!(document.markup(document.root()), xml);
    let mut html = Document::builder(true);
    html.open("", "p").unwrap();
    html.attribute("", "class", "a").unwrap();
    html.attribute("", "class", "b").unwrap();
    html.text("1 < 2").unwrap();
    html.open("", "br").unwrap();
    html.close();
    html.open("", "script").unwrap();
    html.text("1 < 2").unwrap();
    let html = html.finish();
    assert_eq!(html.markup(html.root()), "<p class=\"a\">1 &lt; 2<br><script>1 < 2</script></p>");
}

#[test]
fn nodes_are_in_document_order_and_know_their_place() {
    let document = Document::read_xml("<r a='1'><b>x</b>y</r>").unwrap();
    let r = document.children(document.root()).next().unwrap();
    assert_eq!(document.attribute(r, "a"), Some("1"));
    let kinds: Vec<Kind> = document.children(r).map(|node| document.kind(node)).collect();
    assert_eq!((kinds.as_slice(), document.value(r)), ([Kind::Element, Kind::Text].as_slice(), "xy"));
    assert!(document.descendants(r).all(|node| document.parent(node).is_some() && node > r));
}

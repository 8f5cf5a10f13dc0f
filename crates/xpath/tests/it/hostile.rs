//! Documents and expressions that were made to cost much.

use huntsman_xpath::{Document, Limits, Scope, XPath};

fn error(document: &Document, path: &str, steps: u64) -> String {
    let scope = Scope::new().limits(Limits { steps });
    match XPath::new(path) {
        Ok(path) => path
            .evaluate(document, document.root(), &scope)
            .map_or_else(|error| error.to_string(), |_| String::new()),
        Err(error) => error.to_string(),
    }
}

#[test]
fn an_element_with_a_million_attributes_is_read_in_linear_time() {
    let attributes: String = (0..1_000_000).map(|n| format!(" a{n}='{n}'")).collect();
    let document = Document::read_xml(&format!("<r a7='first'{attributes}/>")).unwrap();
    let element = document.children(document.root()).next().unwrap();
    assert_eq!(document.attributes(element).count(), 1_000_000);
    assert_eq!(document.attribute(element, "a7"), Some("first"), "the one that came first");
}

#[test]
fn what_would_take_quadratic_time_ends_with_an_error() {
    let wide = Document::read_xml(&format!("<r>{}</r>", "<a><b/></a>".repeat(50_000))).unwrap();
    for path in [
        "//a[count(//b) > 1]",
        "//a[preceding::b]/following::a",
        "count(//a[count(following-sibling::a[following-sibling::a]) > 1])",
        "//b[ancestor::r/descendant::b[last()]]",
    ] {
        let error = error(&wide, path, 2_000_000);
        assert!(error.contains("more than the 2000000 steps"), "{path}: {error}");
    }
    for path in ["//a/b", "//a[following-sibling::a[following-sibling::a]]", "//a[2]"] {
        assert_eq!(error(&wide, path, 2_000_000), "", "{path} takes linear time");
    }
}

#[test]
fn nodes_that_are_found_again_and_again_count_once() {
    let wide = Document::read_xml(&format!("<r>{}</r>", "<a/>".repeat(1_000))).unwrap();
    for (path, wanted) in [
        ("count(//a/following::a)", 999.0),
        ("count(//a/preceding-sibling::a)", 999.0),
        ("count(//a|//a|//a|//a|//a|//r)", 1_001.0),
    ] {
        let value = XPath::new(path).unwrap().evaluate(&wide, wide.root(), &Scope::new()).unwrap();
        assert_eq!(value.number(&wide), wanted, "{path}");
    }
}

#[test]
fn long_texts_that_are_compared_again_and_again_cost_steps() {
    let xml = format!("<r><t>{}</t>{}</r>", "x".repeat(1 << 20), "<a/>".repeat(1_000));
    let document = Document::read_xml(&xml).unwrap();
    assert!(error(&document, "//a[contains(//t, 'y')]", 1_000_000).contains("steps"));
    let doubled = format!("{}'x'{}", "concat(".repeat(60), ", //t, //t)".repeat(60));
    assert!(error(&document, &doubled, u64::MAX).contains("makes more than 64 MiB"));
}

#[test]
fn deep_documents_are_refused_and_deep_expressions_too() {
    let nested = |depth: usize| format!("{}{}", "<a>".repeat(depth), "</a>".repeat(depth));
    let deep = Document::read_xml(&nested(1_000)).unwrap();
    assert_eq!(error(&deep, "count(//a[not(a)]/ancestor::a)", 10_000), "");
    assert_eq!(deep.markup(deep.root()).len(), 999 * 7 + 4, "the innermost is <a/>");
    assert!(Document::read_xml(&nested(200_000)).unwrap_err().to_string().contains("1024 deep"));
    for (expression, wanted) in [
        (format!("{}1{}", "(".repeat(10_000), ")".repeat(10_000)), "tokens"),
        (format!("{}1{}", "(".repeat(1_000), ")".repeat(1_000)), "64 deep"),
        (format!("//a{}", "[a".repeat(1_000)), "64 deep"),
        (format!("1{}", "+1".repeat(1_000)), "256 comparisons and calculations"),
        (format!("{}1", "-".repeat(9_000)), ""),
        (format!("1{}", " or 1".repeat(1_000)), ""),
    ] {
        let error = error(&deep, &expression, 1_000_000);
        assert!(error.contains(wanted) && error.is_empty() == wanted.is_empty(), "{error:.200}");
    }
}

#[test]
fn no_expression_of_random_tokens_panics_or_hangs() {
    let document = Document::read_xml("<r a='1'><b c='2'>t</b><!--x--><b/>u</r>").unwrap();
    let tokens = [
        "/",
        "//",
        "*",
        "a",
        "b",
        "@",
        "@a",
        "[",
        "]",
        "(",
        ")",
        "1",
        "'x'",
        "$v",
        "::",
        "child::",
        "..",
        ".",
        "and",
        "or",
        "=",
        "<",
        "|",
        "+",
        "-",
        "div",
        "text()",
        "last()",
        "position()",
        "count(",
        "not(",
        "string(",
        ",",
        "ancestor::",
        "\u{e9}",
    ];
    let mut seed = 7_u64;
    let mut valid = 0;
    for _ in 0..50_000 {
        let mut expression = String::new();
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mut bits = seed >> 8;
        for _ in 0..1 + seed % 9 {
            bits = bits.wrapping_mul(2_862_933_555_777_941_757).wrapping_add(3_037_000_493);
            expression.push_str(tokens[(bits >> 33) as usize % tokens.len()]);
            expression.push(' ');
        }
        if let Ok(path) = XPath::new(&expression) {
            valid += 1;
            let scope = Scope::new().variable("v", 1.0);
            let _ = path.evaluate(&document, document.root(), &scope);
        }
    }
    assert!(valid > 500, "{valid} of 50,000 were valid (seed 7)");
}

#[test]
fn texts_and_attributes_of_what_lies_around_cost_steps_each_time() {
    let attributes: String = (0..5_000).map(|number| format!(" a{number}='1'")).collect();
    let wide = Document::read_xml(&format!("<r{attributes}>{}</r>", "<a/>".repeat(1_000))).unwrap();
    let deep = format!("{}{}{}", "<a>".repeat(1_000), "word ".repeat(20_000), "</a>".repeat(1_000));
    let deep = Document::read_xml(&deep).unwrap();
    for (document, path) in [
        (&wide, "//a[../@b]"),
        (&wide, "//a[../b]"),
        (&wide, "//a[lang('en')]"),
        (&wide, "//a[ancestor::*[has-class('x')]]"),
        (&wide, "//a[preceding-sibling::b]"),
        (&deep, "//a[normalize-space() = 'x']"),
        (&deep, "//a[string-length() = 1]"),
        (&deep, "//a[number() = 1]"),
    ] {
        assert!(error(document, path, 100_000).contains("more than the 100000 steps"), "{path}");
    }
}

#[test]
fn many_ampersands_take_no_quadratic_time() {
    let ampersands = "&".repeat(1 << 20);
    let document = Document::read_xml(&format!("<r a='{ampersands};&lt;&#x10FFFF;&#0000065;'/>")).unwrap();
    let root = document.children(document.root()).next().unwrap();
    assert_eq!(document.attribute(root, "a").unwrap(), format!("{ampersands};<\u{10ffff}A"));
}

//! XML: an element per item, an element per field, as Scrapy writes it.

use huntsman_crawler::Result;
use serde::Serialize;
use serde_json::Value;

use super::feed::{Feed, FieldChoice, Format};

/// `<items>` with one `<item>` per line and one element per field; the values of a list are `<value>` elements.
///
/// Characters that XML does not allow are left out, and invalid characters in names become underscores. An uncompressed
/// file is a complete document after every flush. It cannot be appended to.
pub type Xml<T> = Feed<T, Elements>;

/// The format of [`Xml`].
#[derive(Debug, Default)]
pub struct Elements;

impl Format for Elements {
    const NAME: &'static str = "XML";
    const APPENDS: bool = false;

    fn begin(&mut self, _: &[u8], _: &FieldChoice<'_>, out: &mut Vec<u8>) -> Result<()> {
        out.extend_from_slice(b"<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<items>\n");
        Ok(())
    }

    fn item(&mut self, item: &impl Serialize, fields: &FieldChoice<'_>, out: &mut Vec<u8>) -> Result<()> {
        let fields = fields.0.select(item)?;
        let mut text = String::from("<item>");
        for (name, value) in &fields {
            element(name, value, &mut text);
        }
        text.push_str("</item>\n");
        out.extend_from_slice(text.as_bytes());
        Ok(())
    }

    fn tail(&self) -> &'static [u8] {
        b"</items>\n"
    }
}

fn element(name: &str, value: &Value, out: &mut String) {
    let name = element_name(name);
    out.extend(["<", &name, ">"]);
    match value {
        Value::Null => {}
        Value::String(text) => escape(text, out),
        Value::Bool(_) | Value::Number(_) => out.push_str(&value.to_string()),
        Value::Array(list) => list.iter().for_each(|value| element("value", value, out)),
        Value::Object(fields) => fields.iter().for_each(|(name, value)| element(name, value, out)),
    }
    out.extend(["</", &name, ">"]);
}

/// A field's name as the name of an element: letters, digits, `-`, `_` and `.`, and no digit first.
fn element_name(name: &str) -> String {
    let allowed = |c: char| if c.is_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '_' };
    let mut safe: String = name.chars().map(allowed).collect();
    if !safe.starts_with(|c: char| c.is_alphabetic() || c == '_') {
        safe.insert(0, '_');
    }
    safe
}

fn escape(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            // A reader would turn it into a line feed.
            '\r' => out.push_str("&#13;"),
            '\t' | '\n' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'.. => out.push(c),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sinks::record::Fields;
    use serde_json::json;

    #[test]
    fn values_are_elements_and_nothing_breaks_out() {
        let item = json!({
            "name": "a<b> & \"c\"\u{0}\u{b}\r\u{ffff}]]>",
            "tags": ["x", 1, null],
            "deep": {"k": true},
            "1 odd <name>": -2.5,
            "": "x",
        });
        let mut out = Vec::new();
        Elements.item(&item, &FieldChoice(&Fields::default()), &mut out).unwrap();
        let expected = "<item><name>a&lt;b&gt; &amp; \"c\"&#13;]]&gt;</name>\
            <tags><value>x</value><value>1</value><value></value></tags><deep><k>true</k></deep>\
            <_1_odd__name_>-2.5</_1_odd__name_><_>x</_></item>\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}

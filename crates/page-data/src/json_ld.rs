//! JSON-LD: the blocks `<script type="application/ld+json">` of a page.

use scraper::{ElementRef, Html};
use serde_json::Value;

use crate::error::Error;
use crate::lenient::read_lenient;

/// The media type of the blocks.
const MEDIA_TYPE: &str = "application/ld+json";

/// The values of all blocks of a page, in their order; of a block that is an array, its elements. Each block is read as
/// [`read_lenient`] does. One that cannot be read is an error of its own, so that it does not cost the others. Empty blocks are passed over.
pub fn json_ld(html: &Html) -> Vec<Result<Value, Error>> {
    let mut values = Vec::new();
    let elements = html.tree.root().descendants().filter_map(ElementRef::wrap);
    let blocks = elements.filter(|element| element.value().name() == "script" && is_block(element));
    for (index, block) in blocks.enumerate() {
        let text = block.text().collect::<String>();
        if text.trim().is_empty() {
            continue;
        }
        match read_lenient(&text) {
            Ok(Value::Array(list)) => values.extend(list.into_iter().map(Ok)),
            Ok(value) => values.push(Ok(value)),
            Err(why) => values.push(Err(Error::new(format!("block {} of JSON-LD: {why}", index + 1)))),
        }
    }
    values
}

fn is_block(element: &ElementRef<'_>) -> bool {
    let declared = element.value().attr("type").unwrap_or_default();
    declared.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(MEDIA_TYPE)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_block_that_cannot_be_read_costs_no_other() {
        let html = Html::parse_document(
            "<script type='application/ld+json'>[{\"a\":1},{\"b\":2}]</script><script type=application/ld+json></script>\
             <script type='Application/LD+JSON; charset=utf-8'>{\"c\":</script><script>{\"no\":1}</script>\
             <body><script type=application/ld+json>{\"d\":\"\n\"}</script>",
        );
        let found = json_ld(&html);
        assert_eq!(found.len(), 4);
        assert_eq!(found[1], Ok(json!({"b": 2})));
        assert_eq!(
            found[2].as_ref().unwrap_err().to_string(),
            "block 3 of JSON-LD: a value is missing, at line 1, column 6"
        );
        assert_eq!(found[3], Ok(json!({"d": "\n"})));
    }
}

//! The parameters of a request, by name.

use huntsman_sweep::service::Refusal;
use serde_json::Value;
use url::form_urlencoded;

/// Parameters of a request: those of its query string, then those of a form or a JSON object in its body.
#[derive(Clone, Debug, Default)]
pub(crate) struct Params(Vec<(String, String)>);

/// Maximum number of parameters; further ones are ignored.
const MOST: usize = 1_000;

impl Params {
    /// Reads both parts; `content_type` says how the body is parsed.
    ///
    /// # Errors
    /// The body is neither a form nor a JSON object.
    pub(crate) fn read(query: &str, content_type: Option<&str>, body: &[u8]) -> Result<Self, Refusal> {
        let mut params = Self::default();
        params.extend(query.as_bytes());
        if body.is_empty() {
            return Ok(params);
        }
        match media_type(content_type).as_str() {
            "application/json" => params.extend_json(body)?,
            _ if Self::is_form(content_type) => params.extend(body),
            other => {
                return Err(Refusal::new(
                    "bad_text",
                    format!("a body is application/json or application/x-www-form-urlencoded, not '{other}'"),
                ));
            }
        }
        Ok(params)
    }

    /// Whether a body of this content type is a form.
    pub(crate) fn is_form(content_type: Option<&str>) -> bool {
        media_type(content_type) == "application/x-www-form-urlencoded"
    }

    fn extend(&mut self, pairs: &[u8]) {
        let pairs = form_urlencoded::parse(pairs).take(MOST);
        self.0.extend(pairs.map(|(name, value)| (name.into_owned(), value.into_owned())));
    }

    fn extend_json(&mut self, body: &[u8]) -> Result<(), Refusal> {
        let wrong = |why: String| Refusal::new("bad_text", format!("the JSON body: {why}"));
        let value: Value = serde_json::from_slice(body).map_err(|error| wrong(error.to_string()))?;
        let Value::Object(fields) = value else { return Err(wrong("it is no object".to_owned())) };
        for (name, value) in fields.into_iter().take(MOST) {
            let values = match value {
                Value::Array(values) => values.into_iter().take(MOST).collect(),
                Value::Null => continue,
                value => vec![value],
            };
            for value in values {
                let text = match value {
                    Value::String(text) => text,
                    Value::Bool(is) => u8::from(is).to_string(),
                    Value::Number(number) => number.to_string(),
                    _ => {
                        return Err(wrong(format!("'{name}' is neither a text, a number nor true or false")));
                    }
                };
                self.0.push((name.clone(), text));
            }
        }
        Ok(())
    }

    /// The first value that is not blank, as it was sent.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(other, value)| other == name && !value.trim().is_empty())
            .map(|(_, value)| value.as_str())
    }

    /// All values that are not blank.
    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        let is_named = move |(other, value): &&(String, String)| other == name && !value.trim().is_empty();
        self.0.iter().filter(is_named).map(|(_, value)| value.as_str())
    }

    /// Converts the parameters of a form to those of the API: a form's field takes either a text or just the address
    /// of a page.
    pub(crate) fn of_form(&self, is_check: bool) -> Self {
        let is_address = |text: &str| {
            let text = text.trim();
            (text.starts_with("http://") || text.starts_with("https://"))
                && !text.contains(char::is_whitespace)
        };
        let named = |(name, value): &(String, String)| {
            let name = match (name.as_str(), is_address(value)) {
                ("article", true) => "article_url",
                ("source", true) if !is_check => "url",
                ("source", false) if !is_check => "text",
                (name, _) => name,
            };
            // Browsers send CR LF for every line end, whatever the text had.
            (name.to_owned(), value.replace("\r\n", "\n"))
        };
        let mut params = Self(self.0.iter().map(named).collect());
        if is_check {
            // Browsers do not send a box that is not ticked.
            params.0.push(("use_links".to_owned(), u8::from(self.flag("follow_links", false)).to_string()));
        }
        params
    }

    /// A switch: `0`, `false`, `no` and `off` turn it off, every other value turns it on.
    pub(crate) fn flag(&self, name: &str, default: bool) -> bool {
        let is_off = |value: &str| matches!(value.trim(), "0" | "false" | "no" | "off");
        self.get(name).map_or(default, |value| !is_off(value))
    }
}

fn media_type(content_type: Option<&str>) -> String {
    content_type.and_then(|value| value.split(';').next()).unwrap_or("").trim().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_form_and_json_say_the_same() {
        let query =
            Params::read("action=compare&title=M%C3%BChle+x&detail=&noskip=false", None, b"").unwrap();
        let form = Params::read(
            "",
            Some("application/x-www-form-urlencoded; charset=utf-8"),
            b"action=compare&title=M%C3%BChle+x&noskip=0",
        );
        let json = Params::read(
            "",
            Some("application/json"),
            "{\"action\": \"compare\", \"title\": \"Mühle x\", \"noskip\": false, \"url\": null, \"source\": [\"a\", \"b\"]}".as_bytes(),
        )
        .unwrap();
        for params in [&query, &form.unwrap(), &json] {
            assert_eq!((params.get("action"), params.get("title")), (Some("compare"), Some("Mühle x")));
            assert!(!params.flag("noskip", true) && params.flag("use_links", true));
            assert_eq!(params.get("url"), None);
        }
        assert_eq!(json.all("source").collect::<Vec<_>>(), ["a", "b"]);
        assert!(!query.flag("detail", false), "an empty value says nothing");
    }

    #[test]
    fn a_body_that_is_something_else_is_refused() {
        for (kind, body) in [
            (Some("text/plain"), &b"x"[..]),
            (None, b"x"),
            (Some("application/json"), b"[1]"),
            (Some("application/json"), b"{\"a\": {}}"),
            (Some("application/json"), b"{\"a\": "),
            (Some("application/json"), b"\xff"),
        ] {
            let refused = Params::read("", kind, body).unwrap_err();
            assert_eq!(refused.code, "bad_text", "{kind:?}");
        }
    }
}

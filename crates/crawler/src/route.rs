//! Routes: the variants of an enum as callbacks, with their arguments.
//!
//! A route is stored as what every request has, a label and arguments, so that jobs, logs and records show it and a program of another
//! language could read it. This module makes a label and arguments of a variant, and a variant of these; it calls nothing.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::request::Request;
use crate::secrets::redacted;

mod decoder;
mod encoder;

/// The key of an argument that has no name: the value of `To::Page(7)`.
const NAMELESS: &str = "0";

/// A route as a request stores it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StoredRoute {
    pub(crate) label: Arc<str>,
    pub(crate) arguments: Map<String, Value>,
}

impl StoredRoute {
    /// Makes label and arguments of a variant.
    ///
    /// # Errors
    /// The value is no variant of an enum, or cannot be written as JSON.
    pub(crate) fn of<T: Serialize + ?Sized>(route: &T) -> Result<Self> {
        let written = route.serialize(encoder::Encoder::of::<T>());
        let (variant, payload) = written.map_err(|cause| Error::usage(cause.to_string()))?;
        let arguments = match payload {
            None => Map::new(),
            Some(Value::Object(fields)) if !is_nameless(&fields) => fields,
            Some(value) => Map::from_iter([(NAMELESS.to_owned(), value)]),
        };
        Ok(Self { label: variant.into(), arguments })
    }

    /// Replaces the label and the arguments of a request.
    pub(crate) fn put(&self, request: &mut Request) {
        request.callback = Arc::clone(&self.label);
        if !self.arguments.is_empty() || request.rare.is_some() {
            request.rare_mut().cb_kwargs = self.arguments.clone();
        }
    }
}

/// Reads the route of a request.
pub(crate) fn read<T: DeserializeOwned>(request: &Request) -> Result<T, RouteError> {
    decoder::read(&request.callback, request.cb_kwargs()).map_err(|failure| RouteError {
        message: format!("{}: {}", redacted(request.url.as_str()), failure.message),
        is_unknown: failure.is_unknown,
    })
}

fn is_nameless(arguments: &Map<String, Value>) -> bool {
    arguments.len() == 1 && arguments.contains_key(NAMELESS)
}

/// A request whose label or arguments its spider does not know, such as one of a job that an older program began. The message names the URL,
/// the label and what was expected.
///
/// A callback that gives this error ends its page with the reason `unknown_callback` or `callback_arguments`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteError {
    message: String,
    is_unknown: bool,
}

impl RouteError {
    /// The error of a wrapper around a spider whose labels do not name this one.
    pub(crate) fn unknown_label(request: &Request, labels: &[&str]) -> Self {
        let message = format!(
            "{}: the spider has no callback \"{}\", only {}",
            redacted(request.url.as_str()),
            request.callback.escape_debug(),
            labels.join(", ")
        );
        Self { message, is_unknown: true }
    }

    /// Whether the label is unknown; otherwise the arguments do not fit.
    pub fn is_unknown(&self) -> bool {
        self.is_unknown
    }
}

impl fmt::Display for RouteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for RouteError {}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    enum To {
        List,
        Author {
            of: String,
            page: u32,
        },
        Number(u32),
        Numbers(Vec<u32>),
        Pair(u32, String),
        Maybe(Option<u32>),
        Inside(Inside),
        Odd {
            #[serde(rename = "0")]
            zero: Vec<u32>,
        },
        Nothing {},
        #[serde(rename = "parse")]
        Start,
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Inside {
        depth: u8,
    }

    fn request() -> Request {
        Request::parse("http://a.example/x").unwrap()
    }

    fn stored(label: &str, arguments: &Value) -> Request {
        let mut request = request().callback(label);
        request.rare_mut().cb_kwargs = arguments.as_object().unwrap().clone();
        request
    }

    #[test]
    fn every_kind_of_variant_comes_back_from_the_stored_request() {
        let routes = [
            To::List,
            To::Author { of: "Ada".into(), page: 3 },
            To::Number(7),
            To::Numbers(vec![1, 2]),
            To::Numbers(vec![]),
            To::Pair(1, "x".into()),
            To::Maybe(None),
            To::Maybe(Some(1)),
            To::Inside(Inside { depth: 2 }),
            To::Odd { zero: vec![0] },
            To::Nothing {},
            To::Start,
        ];
        for route in routes {
            let written = request().to(&route).unwrap().to_json();
            let request = Request::from_json(written.clone()).unwrap();
            assert_eq!(request.route::<To>().unwrap(), route, "{written}");
        }
    }

    #[test]
    fn label_and_arguments_are_readable_where_a_request_is_stored() {
        let request = request().cb_kwarg("old", 1).to(To::Author { of: "Ada".into(), page: 3 }).unwrap();
        assert_eq!(&*request.callback, "Author");
        assert_eq!(request.cb_kwargs().unwrap(), json!({"of": "Ada", "page": 3}).as_object().unwrap());
        assert_eq!(request.to(To::List).unwrap().cb_kwargs().unwrap(), &Map::new());
    }

    #[test]
    fn an_unknown_variant_names_the_url_the_label_and_what_is_expected() {
        let error = stored("Gone", &json!({})).route::<To>().unwrap_err();
        let error = error.downcast_ref::<RouteError>().unwrap();
        assert!(error.is_unknown());
        let message = error.to_string();
        assert!(
            message.starts_with(
                "http://a.example/x: \"Gone\" is not one of the callbacks of To: List, Author, "
            ),
            "{message}"
        );
        #[derive(Debug, Deserialize)]
        enum Other {
            Book,
        }
        let message = request().route::<Other>().unwrap_err().to_string();
        assert!(message.contains("Start::to"), "{message}");
    }

    #[test]
    fn arguments_that_do_not_fit_are_an_error_that_names_them() {
        let message = |label: &str, arguments: Value| {
            let error = stored(label, &arguments).route::<To>().unwrap_err();
            assert!(!error.downcast_ref::<RouteError>().unwrap().is_unknown());
            error.to_string()
        };
        let missing = message("Author", json!({"of": "Ada"}));
        assert_eq!(
            missing,
            "http://a.example/x: the arguments of To::Author do not fit: missing field `page`; they are {\"of\":\"Ada\"}, \
             expected: of, page"
        );
        assert!(message("Author", json!({"of": "Ada", "page": 1, "old": 2})).contains("\"old\""));
        assert!(message("Author", json!({"of": "Ada", "page": "one"})).contains("invalid type"));
        assert!(message("List", json!({"of": "Ada"})).contains("takes no arguments"));
        assert!(message("Number", json!({"0": "x"})).contains("To::Number"));
        assert!(message("Number", json!({})).contains("To::Number"));
        assert!(message("Pair", json!({"0": [1]})).contains("To::Pair"));
        let long = message("List", json!({"of": "x".repeat(10_000)}));
        assert!(long.len() < 500, "{}", long.len());
    }

    #[test]
    fn what_is_no_plain_enum_is_refused_when_it_is_given() {
        #[derive(Serialize)]
        struct NoEnum {
            of: u32,
        }
        #[derive(Serialize)]
        #[serde(tag = "kind")]
        enum Tagged {
            List { of: u32 },
        }
        for error in [
            request().to(NoEnum { of: 1 }).unwrap_err(),
            request().to("List").unwrap_err(),
            request().to(Tagged::List { of: 1 }).unwrap_err(),
        ] {
            assert!(error.is_usage());
            assert!(error.to_string().contains("a variant of an enum"), "{error}");
        }
    }

    #[test]
    fn a_variant_for_all_others_takes_any_label_and_arguments() {
        #[derive(Debug, PartialEq, Deserialize)]
        enum Lenient {
            List,
            #[serde(other)]
            Unknown,
        }
        assert_eq!(stored("Gone", &json!({"of": 1})).route::<Lenient>().unwrap(), Lenient::Unknown);
        assert_eq!(stored("List", &json!({})).route::<Lenient>().unwrap(), Lenient::List);
    }
}

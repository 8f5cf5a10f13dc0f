//! The arguments of a spider: `-a NAME=VALUE` on the command line.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::str::FromStr;

use huntsman_crawler::terminal::escape;
use huntsman_crawler::{Error, Result, nearest};

/// The arguments that a spider was given. An argument that is given but never asked for is an error, because a misspelt name would else
/// start another crawl than was meant.
///
/// ```
/// use huntsman_project::Arguments;
///
/// let arguments = Arguments::of([("shelf", "poetry"), ("pages", "3")]);
/// assert_eq!(arguments.get("shelf"), Some("poetry"));
/// assert_eq!(arguments.parse_or("pages", 10)?, 3);
/// assert_eq!(arguments.parse::<f64>("price")?, None);
/// let error = arguments.parse::<u32>("shelf").unwrap_err();
/// assert_eq!(error.to_string(), "-a shelf=poetry: invalid digit found in string");
/// # Ok::<(), huntsman_crawler::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Arguments {
    given: BTreeMap<String, String>,
    /// The names that were asked for.
    known: RefCell<BTreeSet<String>>,
    /// Whether an argument that has to be given was not.
    lacks: Cell<bool>,
}

impl Arguments {
    /// Arguments by their names, for tests of a spider.
    pub fn of<N: Into<String>, V: Into<String>>(pairs: impl IntoIterator<Item = (N, V)>) -> Self {
        let given = pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        Self { given, ..Self::default() }
    }

    /// The arguments of the command line, each as `NAME=VALUE`.
    pub(crate) fn of_flags(flags: &[String]) -> Result<Self> {
        let mut given = BTreeMap::new();
        for flag in flags {
            let (name, value) =
                flag.split_once('=').filter(|(name, _)| !name.trim().is_empty()).ok_or_else(|| {
                    Error::usage(format!("-a {}: use NAME=VALUE, such as -a category=poetry", escape(flag)))
                })?;
            if given.insert(name.trim().to_owned(), value.to_owned()).is_some() {
                return Err(Error::usage(format!("-a {}: the argument is given twice", escape(name.trim()))));
            }
        }
        Ok(Self::of(given))
    }

    /// The text of an argument; `None` if it was not given.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.known.borrow_mut().insert(name.to_owned());
        self.given.get(name).map(String::as_str)
    }

    /// The value of an argument; `None` if it was not given.
    ///
    /// # Errors
    /// The text is no such value; the error names the argument.
    pub fn parse<T: FromStr<Err: Display>>(&self, name: &str) -> Result<Option<T>> {
        let Some(text) = self.get(name) else { return Ok(None) };
        let value = text.parse().map_err(|error: T::Err| {
            Error::usage(format!("-a {name}={}: {}", escape(text), escape(&error.to_string())))
        })?;
        Ok(Some(value))
    }

    /// The value of an argument, or this one if it was not given.
    ///
    /// # Errors
    /// As [`Arguments::parse`].
    pub fn parse_or<T: FromStr<Err: Display>>(&self, name: &str, default: T) -> Result<T> {
        Ok(self.parse(name)?.unwrap_or(default))
    }

    /// The value of an argument that has to be given.
    ///
    /// # Errors
    /// The argument was not given, or as [`Arguments::parse`].
    pub fn require<T: FromStr<Err: Display>>(&self, name: &str) -> Result<T> {
        self.parse(name)?.ok_or_else(|| {
            self.lacks.set(true);
            Error::usage(format!("an argument is missing: give it with -a {name}=VALUE"))
        })
    }

    /// Says that these arguments are read later, in callbacks by [`Context::arg`](huntsman_crawler::Context::arg).
    pub fn known<N: Into<String>>(&self, names: impl IntoIterator<Item = N>) {
        self.known.borrow_mut().extend(names.into_iter().map(Into::into));
    }

    /// The names that were asked for.
    pub(crate) fn asked_for(&self) -> Vec<String> {
        self.known.borrow().iter().cloned().collect()
    }

    /// Whether the spider needs an argument that was not given.
    pub(crate) fn lacks_one(&self) -> bool {
        self.lacks.get()
    }

    /// All arguments that were given.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        self.given.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Fails if an argument was given that the spider did not ask for.
    pub(crate) fn check(&self) -> Result<()> {
        let known = self.known.borrow();
        let Some(name) = self.given.keys().find(|name| !known.contains(*name)) else { return Ok(()) };
        let hint = match nearest(name, known.iter().map(String::as_str)) {
            Some(near) => format!("; did you mean {near}?"),
            None if known.is_empty() => "; it has none".to_owned(),
            None => format!("; it has {}", known.iter().cloned().collect::<Vec<_>>().join(", ")),
        };
        Err(Error::usage(format!("-a {}: the spider has no such argument{hint}", escape(name))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(flags: &[&str]) -> Result<Arguments> {
        Arguments::of_flags(&flags.iter().map(|flag| (*flag).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn an_argument_is_a_name_and_a_value() {
        let arguments = flags(&["query=a=b", " pages =3", "empty="]).unwrap();
        assert_eq!(arguments.get("query"), Some("a=b"), "the value may have the sign, too");
        assert_eq!(arguments.require::<u32>("pages").unwrap(), 3);
        assert_eq!(arguments.get("empty"), Some(""));
        for (wrong, part) in [("pages", "NAME=VALUE"), ("=3", "NAME=VALUE")] {
            let error = flags(&[wrong]).unwrap_err();
            assert!(error.is_usage() && error.to_string().contains(part), "{error}");
        }
        assert!(flags(&["a=1", "a=2"]).unwrap_err().to_string().contains("twice"));
    }

    #[test]
    fn a_missing_argument_is_named() {
        let error = flags(&[]).unwrap().require::<u32>("pages").unwrap_err();
        assert!(error.is_usage() && error.to_string().contains("-a pages=VALUE"), "{error}");
    }

    #[test]
    fn an_argument_that_nobody_reads_is_an_error_with_the_nearest_name() {
        let arguments = flags(&["catgory=poetry"]).unwrap();
        assert!(arguments.check().unwrap_err().to_string().contains("it has none"));
        assert_eq!(arguments.get("category"), None);
        let error = arguments.check().unwrap_err().to_string();
        assert!(error.contains("catgory") && error.contains("did you mean category?"), "{error}");
        arguments.known(["catgory"]);
        assert!(arguments.check().is_ok(), "a callback reads it");
    }
}

//! The grammar: what the parser of the crate `selectors` asks, and what its errors mean.

use std::cell::RefCell;

use cssparser::{BasicParseErrorKind, CowRcStr, ParseError, ParseErrorKind};
use selectors::parser::{self, SelectorParseErrorKind};

use crate::dialect::{Dialect, PseudoClass, PseudoElement};
use crate::selector::Take;

/// The parser's visitor. It remembers what it refused, because the errors of the `selectors` parser do not contain
/// the name.
#[derive(Default)]
pub(crate) struct Grammar {
    refused: RefCell<Option<Refused>>,
}

struct Refused {
    /// The name as written in the selector, with its colons.
    written: String,
    what: String,
}

type ParseResult<T> = Result<T, ParseError<SelectorParseErrorKind>>;

impl Grammar {
    fn refuse<T>(&self, written: String, what: String) -> ParseResult<T> {
        *self.refused.borrow_mut() = Some(Refused { written, what });
        Err(ParseError::custom(SelectorParseErrorKind::UnsupportedPseudoClassOrElement))
    }

    fn no_such_element<T>(&self, name: &str) -> ParseResult<T> {
        let what = format!("there is no pseudo-element ::{name}; there are ::text and ::attr(name)");
        self.refuse(format!("::{name}"), what)
    }

    fn no_such_class<T>(&self, name: &str) -> ParseResult<T> {
        self.refuse(format!(":{name}"), format!("there is no pseudo-class :{name}"))
    }

    /// A description of the error, and its byte offset.
    pub(crate) fn explain(
        &self,
        css: &str,
        end: usize,
        error: &ParseError<SelectorParseErrorKind>,
    ) -> (usize, String) {
        use SelectorParseErrorKind as Kind;
        if let Some(refused) = self.refused.take() {
            return (css.find(&refused.written).unwrap_or(0), refused.what);
        }
        let what = match &error.kind {
            ParseErrorKind::Basic(BasicParseErrorKind::EndOfInput) => "the selector ends too early",
            ParseErrorKind::Basic(_) => "this is not a selector",
            ParseErrorKind::Custom(kind) => match kind {
                Kind::EmptySelector => "a selector is missing",
                Kind::DanglingCombinator => "no selector follows the last combinator",
                Kind::PseudoElementExpectedColon
                | Kind::PseudoElementExpectedIdent
                | Kind::NoIdentForPseudo => "a colon needs the name of a pseudo-class",
                Kind::ClassNeedsIdent => "a dot needs the name of a class",
                Kind::InvalidState => {
                    "nothing may follow ::text and ::attr(name); neither they nor :has(..) may be in :has(..), nor they in other brackets"
                }
                Kind::ExpectedNamespace => "a prefix needs the name of an element: dc|creator",
                Kind::NoQualifiedNameInAttributeSelector
                | Kind::UnexpectedTokenInAttributeSelector
                | Kind::ExpectedBarInAttr
                | Kind::BadValueInAttr
                | Kind::InvalidQualNameInAttr => "this is not an attribute selector",
                _ => "this is not a selector",
            },
        };
        (end, what.to_owned())
    }
}

impl<'i> parser::Parser<'i> for Grammar {
    type Impl = Dialect;
    type Error = SelectorParseErrorKind;

    fn parse_is_and_where(&self) -> bool {
        true
    }

    fn is_is_alias(&self, name: &str) -> bool {
        name.eq_ignore_ascii_case("matches")
    }

    fn parse_has(&self) -> bool {
        true
    }

    fn parse_nth_child_of(&self) -> bool {
        true
    }

    fn allow_forgiving_selectors(&self) -> bool {
        false
    }

    fn parse_non_ts_pseudo_class(&self, name: CowRcStr<'i>) -> ParseResult<PseudoClass> {
        PseudoClass::of(&name).map_or_else(|| self.no_such_class(&name), Ok)
    }

    fn parse_non_ts_functional_pseudo_class(
        &self,
        name: CowRcStr<'i>,
        arguments: &mut cssparser::Parser<'i>,
        _: bool,
    ) -> ParseResult<PseudoClass> {
        let class = match name.to_ascii_lowercase().as_str() {
            "contains" => PseudoClass::Contains,
            "lang" => PseudoClass::Lang,
            _ => return self.no_such_class(&name),
        };
        let argument = arguments.expect_ident_or_string().map(|argument| argument.as_ref().to_owned());
        match argument {
            Ok(argument) if arguments.is_exhausted() => Ok(class(argument)),
            _ => self.refuse(format!(":{name}("), format!(":{name} takes one string: :{name}('...')")),
        }
    }

    fn parse_pseudo_element(&self, name: CowRcStr<'i>) -> ParseResult<PseudoElement> {
        match &*name {
            "text" => Ok(PseudoElement(Take::Text)),
            "attr" => self.refuse(
                "::attr".to_owned(),
                "::attr needs the name of an attribute: ::attr(href)".to_owned(),
            ),
            name => self.no_such_element(name),
        }
    }

    fn parse_functional_pseudo_element(
        &self,
        name: CowRcStr<'i>,
        arguments: &mut cssparser::Parser<'i>,
    ) -> ParseResult<PseudoElement> {
        if &*name != "attr" {
            return self.no_such_element(&name);
        }
        let argument = arguments.expect_ident_or_string().map(|argument| argument.as_ref().to_owned());
        match argument {
            Ok(argument) if arguments.is_exhausted() => Ok(PseudoElement(Take::Attr(argument))),
            _ => self.refuse(
                "::attr(".to_owned(),
                "::attr takes the name of one attribute: ::attr(href)".to_owned(),
            ),
        }
    }
}

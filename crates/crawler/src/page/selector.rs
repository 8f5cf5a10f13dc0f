//! CSS selectors as Scrapy's users write them: with `::text`, `::attr(name)` and `:contains('text')`.
//!
//! Their meaning follows parsel; parsing and matching are done by the `selectors` crate.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::rc::Rc;

use cssparser::{BasicParseErrorKind, CowRcStr, ParseError, ParseErrorKind};
use scraper::ElementRef;
use scraper::selector::{CssLocalName, CssString, ToCss};
use selectors::context::{
    MatchingContext, MatchingForInvalidation, MatchingMode, NeedsSelectorFlags, QuirksMode, SelectorCaches,
};
use selectors::matching::matches_selector;
use selectors::parser::{Combinator, Component, ParseRelative, SelectorList, SelectorParseErrorKind};
use selectors::{Element as _, parser};

use super::node::Node;
use crate::error::{Error, Result};

/// Compiled selectors kept per thread.
const MAX_SELECTORS: usize = 512;

/// A list of selectors, compiled.
pub(super) struct Selector {
    list: SelectorList<Dialect>,
    /// What each selector of the list selects.
    parts: Vec<Part>,
}

/// What one selector of a list selects.
struct Part {
    take: Take,
    /// Number of components from the right that are not matched: the pseudo-element and the components that it makes
    /// superfluous.
    offset: usize,
    /// Whether the descendants of a matching element are included: `p ::text` and `p *::text`.
    deep: bool,
}

/// What a selector takes from an element that it matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Take {
    Element,
    /// The text nodes that are its children.
    Text,
    Attr(String),
}

/// A result of a selector.
#[derive(Clone, Copy)]
pub(super) enum Found<'a> {
    Element(ElementRef<'a>),
    /// A text, or the value of an attribute.
    Value(&'a str),
}

impl Selector {
    /// A compiled selector, from the thread's cache.
    ///
    /// # Errors
    /// The selector is not valid; the error gives the position.
    pub(super) fn of(css: &str) -> Result<Rc<Self>> {
        thread_local! {
            static CACHE: RefCell<HashMap<String, Rc<Selector>>> = RefCell::default();
        }
        CACHE.with_borrow_mut(|cache| {
            if let Some(selector) = cache.get(css) {
                return Ok(Rc::clone(selector));
            }
            let selector = Rc::new(Self::parse(css)?);
            if cache.len() >= MAX_SELECTORS {
                cache.clear();
            }
            cache.insert(css.to_owned(), Rc::clone(&selector));
            Ok(selector)
        })
    }

    /// Like [`Selector::of`], for a selector of elements.
    ///
    /// # Errors
    /// The selector is not valid, or it selects texts or attributes.
    pub(super) fn of_elements(css: &str) -> Result<Rc<Self>> {
        let selector = Self::of(css)?;
        if selector.parts.iter().any(|part| part.take != Take::Element) {
            let shown = css.escape_debug();
            return Err(Error::msg(format!(
                "CSS selector \"{shown}\": elements are selected here, and not their ::text or ::attr(name); `css` gives those"
            )));
        }
        Ok(selector)
    }

    fn parse(css: &str) -> Result<Self> {
        let grammar = Grammar::default();
        let mut input = cssparser::Parser::new(css);
        let list = SelectorList::parse(&grammar, &mut input, ParseRelative::No).map_err(|error| {
            let (at, what) = grammar.explain(css, input.position().byte_index(), &error);
            let (shown, character) = (css.escape_debug(), css[..at].chars().count() + 1);
            Error::msg(format!("CSS selector \"{shown}\", character {character}: {what}"))
        })?;
        let parts = list.slice().iter().map(Part::of).collect();
        Ok(Self { list, parts })
    }

    /// The results within an element, which may match itself; its ancestors are not visible to the selector.
    pub(super) fn find<'a>(&self, scope: ElementRef<'a>) -> Vec<Found<'a>> {
        let mut caches = SelectorCaches::default();
        let mut context = MatchingContext::new(
            MatchingMode::Normal,
            None,
            &mut caches,
            QuirksMode::NoQuirks,
            NeedsSelectorFlags::No,
            MatchingForInvalidation::No,
        );
        context.scope_element = Some(Node::new(scope, scope).opaque());
        let mut found = Vec::new();
        for (selector, part) in self.list.slice().iter().zip(&self.parts) {
            part.collect(selector, scope, &mut context, &mut found);
        }
        if self.parts.len() > 1 {
            found.sort_by_key(|(place, _)| *place);
            found.dedup_by_key(|(place, _)| *place);
        }
        found.into_iter().map(|(_, found)| found).collect()
    }
}

/// A position in the document: the index of a node within the scope, and the index of one of its attributes.
type DocumentOrder = (usize, usize);

impl Part {
    fn of(selector: &parser::Selector<Dialect>) -> Self {
        let Some(pseudo) = selector.pseudo_element() else {
            return Self { take: Take::Element, offset: 0, deep: false };
        };
        let components: Vec<_> = selector.iter_raw_match_order().collect();
        // From the right: the pseudo-element, the combinator that binds it, and what it belongs to.
        let mut offset = 2;
        let is_any = |component: &&Component<Dialect>| {
            matches!(component, Component::ExplicitUniversalType | Component::ExplicitAnyNamespace)
        };
        let any = offset + components[offset..].iter().take_while(|component| is_any(component)).count();
        let deep = matches!(components.get(any), Some(Component::Combinator(Combinator::Descendant)));
        if deep {
            offset = any + 1;
        }
        Self { take: pseudo.0.clone(), offset, deep }
    }

    fn collect<'a>(
        &self,
        selector: &parser::Selector<Dialect>,
        scope: ElementRef<'a>,
        context: &mut MatchingContext<'_, Dialect>,
        found: &mut Vec<(DocumentOrder, Found<'a>)>,
    ) {
        // The open elements, and whether each of them is selected.
        let mut open = Vec::new();
        for (number, node) in scope.descendants().enumerate() {
            if number > 0 {
                let parent = node.parent().map(|parent| parent.id());
                while open.last().is_some_and(|(id, _)| Some(*id) != parent) {
                    open.pop();
                }
            }
            let of_parent = open.last().is_some_and(|(_, taken)| *taken);
            if let Some(element) = ElementRef::wrap(node) {
                let taken = (self.deep && of_parent)
                    || matches_selector(selector, self.offset, None, &Node::new(element, scope), context);
                open.push((node.id(), taken));
                match &self.take {
                    Take::Element if taken => found.push(((number, 0), Found::Element(element))),
                    Take::Attr(wanted) if taken => {
                        let mut attributes = element.value().attrs().enumerate();
                        if let Some((at, (_, value))) = attributes.find(|(_, (name, _))| name == wanted) {
                            found.push(((number, at + 1), Found::Value(value)));
                        }
                    }
                    _ => {}
                }
            } else if let (Take::Text, true, Some(text)) = (&self.take, of_parent, node.value().as_text()) {
                found.push(((number, 0), Found::Value(text)));
            }
        }
    }
}

/// The supported kinds of selectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dialect;

impl parser::SelectorImpl for Dialect {
    type AttrValue = CssString;
    type Identifier = CssLocalName;
    type LocalName = CssLocalName;
    type NamespacePrefix = CssLocalName;
    type NamespaceUrl = CssLocalName;
    type BorrowedNamespaceUrl = CssLocalName;
    type BorrowedLocalName = CssLocalName;
    type NonTSPseudoClass = PseudoClass;
    type PseudoElement = PseudoElement;
    type ExtraMatchingData<'a> = ();
}

/// The supported pseudo-classes that do not depend on the position in the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PseudoClass {
    /// The text of the element contains this one. This is not CSS, but an extension of cssselect.
    Contains(String),
    /// The language of the element is this one or a variant of it.
    Lang(String),
    /// A link.
    Link,
    Checked,
    Disabled,
    Enabled,
    /// A state that only a browser knows: an element is never hovered over or visited here.
    Never,
}

impl PseudoClass {
    fn of(name: &str) -> Option<Self> {
        Some(match name.to_ascii_lowercase().as_str() {
            "link" | "any-link" => Self::Link,
            "checked" => Self::Checked,
            "disabled" => Self::Disabled,
            "enabled" => Self::Enabled,
            "active" | "focus" | "hover" | "target" | "visited" => Self::Never,
            _ => return None,
        })
    }
}

impl parser::NonTSPseudoClass for PseudoClass {
    fn is_active_or_hover(&self) -> bool {
        false
    }

    fn is_user_action_state(&self) -> bool {
        false
    }
}

impl ToCss for PseudoClass {
    fn to_css<W: fmt::Write>(&self, to: &mut W) -> fmt::Result {
        write!(to, ":{self:?}")
    }
}

/// `::text` or `::attr(name)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PseudoElement(Take);

impl parser::PseudoElement for PseudoElement {}

impl ToCss for PseudoElement {
    fn to_css<W: fmt::Write>(&self, to: &mut W) -> fmt::Result {
        write!(to, "::{:?}", self.0)
    }
}

/// The parser's visitor. It remembers what it refused, because the errors of the `selectors` parser do not contain
/// the name.
#[derive(Default)]
struct Grammar {
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
    fn explain(&self, css: &str, end: usize, error: &ParseError<SelectorParseErrorKind>) -> (usize, String) {
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
                    "nothing may follow ::text and ::attr(name), and they may not be in brackets"
                }
                Kind::ExpectedNamespace => "there are no namespaces",
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

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use url::Url;

    use crate::{Page, Request, Response};

    /// The results of parsel; its versions are in the first line. The attributes of its document are in alphabetical
    /// order, because the tree here does not keep their order.
    const TABLE: &str = include_str!("../../tests/data/selectors-parsel-1.12.1.jsonl");

    /// Sibling selectors that are searched in an element with siblings. parsel starts at this element and may match
    /// beyond its end; here an element always has its siblings, and all results are inside it.
    const DIFFERENT: [&str; 3] = ["li + li::attr(id)", "li ~ li::attr(id)", "#l1 ~ li a::text"];

    #[derive(Deserialize)]
    struct Row {
        css: String,
        /// A selector of the element to search; by default the whole page.
        r#in: Option<String>,
        re: Option<String>,
        #[serde(default)]
        values: Vec<String>,
        error: Option<String>,
    }

    fn page(html: &str) -> Page {
        let url = Url::parse("http://h/").unwrap();
        Page::new(Request::get(url.clone()), Response::html(url, html.to_owned()))
    }

    #[test]
    fn selectors_find_what_parsel_finds() {
        let mut lines = TABLE.lines().skip(1);
        let document: serde_json::Value = serde_json::from_str(lines.next().unwrap()).unwrap();
        let page = page(document["html"].as_str().unwrap());
        let mut wrong = Vec::new();
        for line in lines {
            let row: Row = serde_json::from_str(line).unwrap();
            if row.r#in.as_deref() == Some("#l3") && DIFFERENT.contains(&row.css.as_str()) {
                continue;
            }
            let found = match &row.r#in {
                Some(scope) => page.select(scope).unwrap()[0].css(&row.css),
                None => page.css(&row.css),
            };
            let found = match &row.re {
                Some(expression) => found.and_then(|found| found.re(expression)),
                None => found.map(|found| found.get_all().to_vec()),
            };
            match (found, &row.error) {
                (Ok(found), None) if found == row.values => {}
                (Err(_), Some(_)) => {}
                (found, _) => wrong.push(format!("{line}\n    {found:?}")),
            }
        }
        assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    }

    #[test]
    fn what_is_no_selector_is_an_error_that_tells_the_place() {
        let page = page("<p>x");
        for (css, place, what) in [
            ("p, é::foo", 5, "no pseudo-element ::foo; there are ::text and ::attr(name)"),
            ("p::foo(x)", 2, "no pseudo-element ::foo;"),
            ("p > a:first", 6, "no pseudo-class :first"),
            ("p > a:eq(1)", 6, "no pseudo-class :eq"),
            ("a::attr", 2, "needs the name of an attribute"),
            ("a:contains('x', 'y')", 2, "takes one string"),
            ("li[", 4, "the selector ends too early"),
            ("a, , b", 4, "a selector is missing"),
            ("a::text::text", 14, "nothing may follow"),
            ("p >", 4, "no selector follows the last combinator"),
        ] {
            let error = page.css(css).unwrap_err().to_string();
            let begin = format!("CSS selector \"{}\", character {place}: ", css.escape_debug());
            assert!(error.starts_with(&begin) && error.contains(what), "{css}: {error}");
        }
        let error = page.select("p::text").unwrap_err().to_string();
        assert!(error.contains("`css` gives those"), "{error}");
    }

    #[test]
    fn elements_inside_do_not_see_what_is_above() {
        let page = page("<div id=a><div id=b><p>x</p></div></div>");
        let inner = page.select("#b").unwrap()[0];
        let found = |css: &str| inner.select(css).unwrap().len();
        assert_eq!((found("p"), found("div > p"), found("#a p"), found("div")), (1, 1, 0, 0));
        assert_eq!(page.select("#a p").unwrap().len(), 1);
    }
}

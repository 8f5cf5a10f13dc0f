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

use super::budget::Budget;
use super::node::Node;
use crate::error::{Error, Result};

/// Compiled selectors kept per thread.
const MAX_SELECTORS: usize = 512;

/// Deepest nesting of brackets, because they are parsed inside each other.
const MAX_NESTING: usize = 64;
/// The most simple selectors and combinators of one selector of a list, because they are matched inside each other.
const MAX_COMPONENTS: usize = 512;

/// A list of selectors, compiled.
pub(super) struct Selector {
    /// As it was written.
    css: String,
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
    /// The name that a matching element has, in small letters and as it was written.
    name: Option<[CssLocalName; 2]>,
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
        if is_nested_too_deep(css) {
            return Err(refused(css, &format!("its brackets are nested more than {MAX_NESTING} deep")));
        }
        let grammar = Grammar::default();
        let mut input = cssparser::Parser::new(css);
        let list = SelectorList::parse(&grammar, &mut input, ParseRelative::No).map_err(|error| {
            let (at, what) = grammar.explain(css, input.position().byte_index(), &error);
            let (shown, character) = (css.escape_debug(), css[..at].chars().count() + 1);
            Error::msg(format!("CSS selector \"{shown}\", character {character}: {what}"))
        })?;
        if list.slice().iter().any(is_too_long) {
            return Err(refused(css, &format!("it has more than {MAX_COMPONENTS} parts without a comma")));
        }
        let parts = list.slice().iter().map(Part::of).collect();
        Ok(Self { css: css.to_owned(), list, parts })
    }

    /// The results within an element, which may match itself; its ancestors are not visible to the selector.
    ///
    /// # Errors
    /// Matching takes more than 50 million steps.
    pub(super) fn find<'a>(&self, scope: ElementRef<'a>) -> Result<Vec<Found<'a>>> {
        self.find_within(scope, &Budget::default())
    }

    fn find_within<'a>(&self, scope: ElementRef<'a>, budget: &Budget) -> Result<Vec<Found<'a>>> {
        let mut caches = SelectorCaches::default();
        let mut context = MatchingContext::new(
            MatchingMode::Normal,
            None,
            &mut caches,
            QuirksMode::NoQuirks,
            NeedsSelectorFlags::No,
            MatchingForInvalidation::No,
        );
        context.scope_element = Some(Node::new(scope, scope, budget).opaque());
        let mut found = Vec::new();
        for (selector, part) in self.list.slice().iter().zip(&self.parts) {
            part.collect(selector, (scope, budget), &mut context, &mut found);
        }
        if budget.is_used_up() {
            let steps = budget.all();
            let what = format!(
                "this page needs more than the {steps} steps that are allowed; select in parts of the page, or with fewer combinators"
            );
            return Err(refused(&self.css, &what));
        }
        if self.parts.len() > 1 {
            found.sort_by_key(|(place, _)| *place);
            found.dedup_by_key(|(place, _)| *place);
        }
        Ok(found.into_iter().map(|(_, found)| found).collect())
    }
}

/// An error on a selector as a whole.
fn refused(css: &str, what: &str) -> Error {
    Error::msg(format!("CSS selector \"{}\": {what}", css.escape_debug()))
}

/// Whether brackets outside of strings and comments are nested too deep.
fn is_nested_too_deep(css: &str) -> bool {
    let (mut depth, mut quote, mut bytes) = (0_usize, None, css.bytes().peekable());
    while let Some(byte) = bytes.next() {
        match (byte, quote) {
            (b'\\', _) => _ = bytes.next(),
            // A string that does not end with its line is an error of the parser.
            (b'\n', Some(_)) => quote = None,
            (_, Some(end)) => quote = quote.filter(|_| byte != end),
            (b'"' | b'\'', None) => quote = Some(byte),
            (b'/', None) if bytes.next_if_eq(&b'*').is_some() => {
                while bytes.next().is_some_and(|inside| inside != b'*' || bytes.peek() != Some(&b'/')) {}
            }
            (b'(' | b'[' | b'{', None) => depth += 1,
            (b')' | b']' | b'}', None) => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_NESTING {
            return true;
        }
    }
    false
}

/// Whether a selector, or one in its brackets, has too many components.
fn is_too_long(selector: &parser::Selector<Dialect>) -> bool {
    let is_any_too_long = |list: &[parser::Selector<Dialect>]| list.iter().any(is_too_long);
    selector.len() > MAX_COMPONENTS
        || selector.iter_raw_match_order().any(|component| match component {
            Component::Is(list) | Component::Where(list) | Component::Negation(list) => {
                is_any_too_long(list.slice())
            }
            Component::NthOf(of) => is_any_too_long(of.selectors()),
            Component::Has(list) => list.iter().any(|relative| is_too_long(&relative.selector)),
            _ => false,
        })
}

/// A position in the document: the index of a node within the scope, and the index of one of its attributes.
type DocumentOrder = (usize, usize);

impl Part {
    fn of(selector: &parser::Selector<Dialect>) -> Self {
        let components: Vec<_> = selector.iter_raw_match_order().collect();
        let name = |from: usize| {
            let own = components[from..].iter().take_while(|part| !matches!(part, Component::Combinator(_)));
            own.into_iter().find_map(|part| match part {
                Component::LocalName(name) => Some([name.lower_name.clone(), name.name.clone()]),
                _ => None,
            })
        };
        let Some(pseudo) = selector.pseudo_element() else {
            return Self { take: Take::Element, offset: 0, deep: false, name: name(0) };
        };
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
        Self { take: pseudo.0.clone(), offset, deep, name: name(offset) }
    }

    /// Whether the name of an element is no reason why it does not match: most elements are passed over by it.
    fn may_match(&self, element: ElementRef<'_>) -> bool {
        let local = &element.value().name.local;
        self.name.as_ref().is_none_or(|names| names.iter().any(|name| name.0 == *local))
    }

    /// Whether it counts what the parent of a node is.
    fn needs_parent(&self) -> bool {
        self.deep || self.take == Take::Text
    }

    fn collect<'a>(
        &self,
        selector: &parser::Selector<Dialect>,
        (scope, budget): (ElementRef<'a>, &Budget),
        context: &mut MatchingContext<'_, Dialect>,
        found: &mut Vec<(DocumentOrder, Found<'a>)>,
    ) {
        // The open elements, and whether each of them is selected.
        let mut open = Vec::new();
        // `descendants` was half of the time of a query: it also stops at the end of each element.
        let (mut next, mut number) = (Some(*scope), 0);
        while let Some(node) = next {
            if !budget.step() {
                return;
            }
            if self.needs_parent() && number > 0 {
                let parent = node.parent().map(|parent| parent.id());
                while open.last().is_some_and(|(id, _)| Some(*id) != parent) {
                    open.pop();
                }
            }
            let of_parent = open.last().is_some_and(|(_, taken)| *taken);
            if let Some(element) = ElementRef::wrap(node) {
                let taken = (self.deep && of_parent)
                    || self.may_match(element)
                        && matches_selector(
                            selector,
                            self.offset,
                            None,
                            &Node::new(element, scope, budget),
                            context,
                        );
                if self.needs_parent() {
                    open.push((node.id(), taken));
                }
                match &self.take {
                    Take::Element if taken => found.push(((number, 0), Found::Element(element))),
                    Take::Attr(wanted) if taken => {
                        // `xlink:href` is not `href`.
                        let mut attributes = element.value().attrs.iter().enumerate();
                        let found_at =
                            attributes.find(|(_, (name, _))| name.ns.is_empty() && *name.local == **wanted);
                        if let Some((at, (_, value))) = found_at {
                            found.push(((number, at + 1), Found::Value(value)));
                        }
                    }
                    _ => {}
                }
            } else if let (Take::Text, true, Some(text)) = (&self.take, of_parent, node.value().as_text()) {
                found.push(((number, 0), Found::Value(text)));
            }
            number += 1;
            next = node.first_child();
            let mut ended = Some(node);
            while let Some(last) = ended.filter(|last| next.is_none() && *last != *scope) {
                next = last.next_sibling();
                ended = last.parent();
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
                    "nothing may follow ::text and ::attr(name); neither they nor :has(..) may be in :has(..), nor they in other brackets"
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

    use super::{Budget, MAX_COMPONENTS, MAX_NESTING, Selector};
    use crate::{Page, Request, Response, Result};

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

    /// The steps that a selector takes on a page.
    fn steps(page: &Page, css: &str, most: u64) -> Result<u64> {
        let budget = Budget::of(most);
        Selector::of(css)?.find_within(page.tree().html.root_element(), &budget)?;
        Ok(budget.used())
    }

    fn list(length: usize) -> Page {
        page(&"<li class='a b'><a href=/x>one</a><b>two</b>".repeat(length))
    }

    #[test]
    fn what_people_select_takes_linear_time() {
        let (one, two) = (list(500), list(1_000));
        for css in [
            "li a::attr(href)",
            "li ::text",
            "body > li > a",
            "li + li",
            "li:nth-child(odd)",
            "li:nth-last-child(2n)",
            "li:nth-of-type(3n+1)",
            "li:nth-last-of-type(-n+3)",
            "li:nth-child(odd of .a)",
            "li:nth-last-child(odd of *)",
            "li:has(> a)",
            "li:has(+ li b)",
            "li:contains('two')",
            "li:not(:is(.c, .d)) b",
            "li[class~=b]:enabled, b:disabled",
        ] {
            let (one, two) = (steps(&one, css, u64::MAX).unwrap(), steps(&two, css, u64::MAX).unwrap());
            assert!(one < 20_000 && two <= 2 * one + 100, "{css}: {one} and {two} steps");
        }
    }

    #[test]
    fn what_would_take_quadratic_time_ends_with_an_error_that_names_the_limit() {
        let (wide, deep) = (list(1_000), page(&"<div><p>x".repeat(500)));
        for (page, css) in [
            (&wide, "b ~ li"),
            (&wide, "* ~ p ~ *, b ~ * ~ li"),
            (&wide, ":has(~ p)"),
            (&wide, ":not(:has(~ p)) ~ li"),
            (&wide, "li:not(p ~ li)"),
            (&deep, "p div"),
            (&deep, "div div div div div div div b, b div div p"),
            (&deep, "div:contains('y')"),
            (&deep, "div:has(b)"),
            (&deep, "div:lang(en)"),
            (&deep, ":is(:is(b div) div) p"),
        ] {
            match steps(page, css, 20_000) {
                Ok(used) => panic!("{css}: {used} steps"),
                Err(error) => {
                    let error = error.to_string();
                    assert!(error.contains("needs more than the 20000 steps that are allowed"), "{error}");
                    assert!(error.contains(&css.escape_debug().to_string()), "{error}");
                }
            }
        }
    }

    #[test]
    fn long_texts_and_attributes_that_are_compared_again_and_again_cost_steps() {
        let text = "word ".repeat(20_000);
        let page = page(&format!("<div title='{text}' class='{text}'>{text}{}", "<p>".repeat(1_000)));
        for css in ["[title$=x] p", "div:contains(x), :not(div:contains(x)) p", "p:not([title*=x] p)"] {
            assert!(steps(&page, css, 200_000).is_err(), "{css}");
        }
        assert!(steps(&page, "div[title^=word]:contains(word)", 200_000).is_ok());
    }

    #[test]
    fn what_costs_too_much_costs_only_its_query() {
        let page = page(&"<p>".repeat(2_000));
        assert!(steps(&page, "b ~ p", 1_000_000).unwrap_err().to_string().contains("CSS selector \"b ~ p\""));
        assert_eq!(page.css("p").unwrap().get_all().len(), 2_000);
        assert_eq!(Budget::default().all(), 50_000_000);
    }

    #[test]
    fn selectors_nested_too_deep_and_too_long_ones_are_refused() {
        let page = page("<p>x");
        let nested = |depth: usize| format!("{}p{}", ":not(".repeat(depth), ")".repeat(depth));
        assert!(page.select(&nested(MAX_NESTING)).is_ok());
        for depth in [MAX_NESTING + 1, 100_000] {
            assert!(page.select(&nested(depth)).unwrap_err().to_string().contains("more than 64 deep"));
        }
        let hidden = format!("{}p", ":not([a=')'], /* ) */ \\), ".repeat(100_000));
        assert!(page.select(&hidden).unwrap_err().to_string().contains("more than 64 deep"));
        for long in ["p ".repeat(100_000) + "p", format!(":is({}p)", "p > ".repeat(MAX_COMPONENTS))] {
            assert!(page.select(&long).unwrap_err().to_string().contains("more than 512 parts"));
        }
        assert_eq!(page.select(&("p, ".repeat(10_000) + "p")).unwrap().len(), 1);
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

//! CSS selectors on the tree of a page. Their grammar is in [`huntsman_css`].

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use huntsman_css::{Branch, Dialect, Take};
use scraper::ElementRef;
use selectors::Element as _;
use selectors::context::{
    MatchingContext, MatchingForInvalidation, MatchingMode, NeedsSelectorFlags, QuirksMode, SelectorCaches,
};

use super::node::Node;
use crate::error::{Error, Result};

/// Compiled selectors kept per thread.
const MAX_SELECTORS: usize = 512;

/// A list of selectors, compiled.
pub(super) struct Selector(huntsman_css::Selector);

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
            let selector = Rc::new(Self(huntsman_css::Selector::parse(css)?));
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
        if !selector.0.takes_elements() {
            let shown = css.escape_debug();
            return Err(Error::msg(format!(
                "CSS selector \"{shown}\": elements are selected here, and not their ::text or ::attr(name); `css` gives those"
            )));
        }
        Ok(selector)
    }

    /// The results within an element, which may match itself; its ancestors are not visible to the selector.
    pub(super) fn find<'a>(&self, scope: ElementRef<'a>) -> Vec<Found<'a>> {
        self.search(scope).0
    }

    /// Like [`find`](Self::find), with the number of nodes that were visited.
    pub(super) fn search<'a>(&self, scope: ElementRef<'a>) -> (Vec<Found<'a>>, u64) {
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
        let branches = self.0.branches();
        let (mut found, mut visits) = (Vec::new(), 0);
        for branch in branches {
            visits += collect(branch, scope, &mut context, &mut found);
        }
        if branches.len() > 1 {
            found.sort_by_key(|(place, _)| *place);
            found.dedup_by_key(|(place, _)| *place);
        }
        (found.into_iter().map(|(_, found)| found).collect(), visits)
    }
}

/// A position in the document: the index of a node within the scope, and the index of one of its attributes.
type DocumentOrder = (usize, usize);

/// Adds what a branch takes within an element, and returns the number of nodes that were visited.
fn collect<'a>(
    branch: &Branch,
    scope: ElementRef<'a>,
    context: &mut MatchingContext<'_, Dialect>,
    found: &mut Vec<(DocumentOrder, Found<'a>)>,
) -> u64 {
    // The open elements, and whether each of them is selected.
    let mut open = Vec::new();
    let mut visits = 0;
    for (number, node) in scope.descendants().enumerate() {
        visits += 1;
        if number > 0 {
            let parent = node.parent().map(|parent| parent.id());
            while open.last().is_some_and(|(id, _)| Some(*id) != parent) {
                open.pop();
            }
        }
        let of_parent = open.last().is_some_and(|(_, taken)| *taken);
        if let Some(element) = ElementRef::wrap(node) {
            let taken =
                (branch.is_deep() && of_parent) || branch.matches(&Node::new(element, scope), context);
            open.push((node.id(), taken));
            match branch.take() {
                Take::Element if taken => found.push(((number, 0), Found::Element(element))),
                Take::Attr(wanted) if taken => {
                    let mut attributes = element.value().attrs().enumerate();
                    if let Some((at, (_, value))) = attributes.find(|(_, (name, _))| name == wanted) {
                        found.push(((number, at + 1), Found::Value(value)));
                    }
                }
                _ => {}
            }
        } else if let (Take::Text, true, Some(text)) = (branch.take(), of_parent, node.value().as_text()) {
            found.push(((number, 0), Found::Value(text)));
        }
    }
    visits
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

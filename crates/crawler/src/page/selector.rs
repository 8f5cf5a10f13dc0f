//! CSS selectors on the tree of a page. Their grammar is in [`huntsman_css`].

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use foldhash::fast::RandomState;
use huntsman_css::{Branch, Dialect, Key, Name, Take};
use scraper::ElementRef;
use selectors::Element as _;
use selectors::context::{
    MatchingContext, MatchingForInvalidation, MatchingMode, NeedsSelectorFlags, QuirksMode, SelectorCaches,
};

use super::budget::Budget;
use super::node::Node;
use super::tree::Tree;
use crate::error::{Error, Result};

/// Compiled selectors kept per thread.
const MAX_SELECTORS: usize = 512;

/// A list of selectors, compiled.
pub(super) struct Selector {
    /// As it was written.
    css: String,
    list: huntsman_css::Selector,
}

/// The place of an element in the outline of its tree.
pub(super) type Place = u32;

/// How many results are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Amount {
    All,
    /// The first in document order; others may be given after it.
    First,
}

/// A result of a selector.
#[derive(Clone, Copy)]
pub(super) enum Found<'a> {
    Element(ElementRef<'a>, Place),
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
            static CACHE: RefCell<HashMap<String, Rc<Selector>, RandomState>> = RefCell::default();
        }
        CACHE.with_borrow_mut(|cache| {
            if let Some(selector) = cache.get(css) {
                return Ok(Rc::clone(selector));
            }
            let selector = Rc::new(Self { css: css.to_owned(), list: huntsman_css::Selector::parse(css)? });
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
        if !selector.list.takes_elements() {
            let shown = css.escape_debug();
            return Err(Error::msg(format!(
                "CSS selector \"{shown}\": elements are selected here, and not their ::text or ::attr(name); `css` gives those"
            )));
        }
        Ok(selector)
    }

    /// The results within an element, which may match itself; its ancestors are not visible to the selector.
    ///
    /// # Errors
    /// Matching takes more than 50 million steps.
    pub(super) fn find<'a>(&self, tree: &'a Tree, scope: Place) -> Result<Vec<Found<'a>>> {
        self.find_within(tree, (scope, Amount::All), &Budget::default())
    }

    /// Like [`find`](Self::find), for as many results as are wanted, with the number of steps that were taken.
    ///
    /// # Errors
    /// As [`find`](Self::find).
    pub(super) fn find_counted<'a>(
        &self,
        tree: &'a Tree,
        scope: Place,
        amount: Amount,
    ) -> Result<(Vec<Found<'a>>, u64)> {
        let budget = Budget::default();
        Ok((self.find_within(tree, (scope, amount), &budget)?, budget.used()))
    }

    fn find_within<'a>(
        &self,
        tree: &'a Tree,
        (scope, amount): (Place, Amount),
        budget: &Budget,
    ) -> Result<Vec<Found<'a>>> {
        let Some(outermost) = tree.element(scope) else { return Ok(Vec::new()) };
        let mut caches = SelectorCaches::default();
        let mut context = MatchingContext::new(
            MatchingMode::Normal,
            None,
            &mut caches,
            QuirksMode::NoQuirks,
            NeedsSelectorFlags::No,
            MatchingForInvalidation::No,
        );
        context.scope_element = Some(Node::new(outermost, outermost, budget).opaque());
        let branches = self.list.branches();
        // What another branch finds may come before.
        let amount = if branches.len() == 1 { amount } else { Amount::All };
        let mut search = Search { tree, scope, outermost, amount, budget, context, found: Vec::new() };
        for branch in branches {
            search.collect(branch);
        }
        let mut found = search.found;
        if budget.is_used_up() {
            let (css, steps) = (self.css.escape_debug(), budget.all());
            return Err(Error::msg(format!(
                "CSS selector \"{css}\": this page needs more than the {steps} steps that are allowed; select in parts of the page, or with fewer combinators"
            )));
        }
        // The texts right inside elements that are nested are not found in their order.
        if !found.is_sorted_by(|(one, _), (other, _)| one < other) {
            found.sort_unstable_by_key(|(order, _)| *order);
            found.dedup_by_key(|(order, _)| *order);
        }
        Ok(found.into_iter().map(|(_, found)| found).collect())
    }
}

/// A position in the document: a place, and the index of an attribute.
type DocumentOrder = (Place, usize);

/// A search in the tree below an element.
struct Search<'a, 'b> {
    tree: &'a Tree,
    scope: Place,
    outermost: ElementRef<'a>,
    amount: Amount,
    /// Each node that is looked at costs a step.
    budget: &'b Budget,
    context: MatchingContext<'b, Dialect>,
    found: Vec<(DocumentOrder, Found<'a>)>,
}

impl<'a> Search<'a, '_> {
    /// Adds what a branch takes.
    fn collect(&mut self, branch: &Branch) {
        let outline = self.tree.outline();
        let range = outline.range(self.scope);
        let key = match (branch.key(), branch.take()) {
            // Elements without the attribute need not be matched.
            (Key::Any, Take::Attr(name)) if !branch.is_deep() => &Key::Attribute(Name::from(name.as_str())),
            (key, _) => key,
        };
        // The place after the last element whose descendants were all taken.
        let mut covered = 0;
        for place in outline.candidates(&self.tree.html, key, range).iter().copied() {
            if !self.budget.step() {
                return;
            }
            if place < covered {
                continue;
            }
            // What this element and those after it give comes later.
            if self.amount == Amount::First && self.found.iter().any(|((found, _), _)| *found < place) {
                return;
            }
            let Some(element) = self.tree.element(place) else { continue };
            if !branch.matches(&Node::new(element, self.outermost, self.budget), &mut self.context) {
                continue;
            }
            if branch.is_deep() {
                covered = outline.end(place);
            }
            match (branch.take(), branch.is_deep()) {
                (Take::Element, _) => self.found.push(((place, 0), Found::Element(element, place))),
                (Take::Attr(name), false) => self.take_attribute(place, element, name),
                (Take::Attr(name), true) => {
                    let range = outline.range(place);
                    for inside in outline.with_attribute(&self.tree.html, name, range).iter().copied() {
                        if !self.budget.step() {
                            return;
                        }
                        if let Some(element) = self.tree.element(inside) {
                            self.take_attribute(inside, element, name);
                        }
                    }
                }
                (Take::Text, false) => outline.children(place).for_each(|child| self.take_text(child)),
                (Take::Text, true) => {
                    let texts = outline.texts(outline.range(place)).iter();
                    texts.for_each(|text| self.take_text(*text));
                }
            }
        }
    }

    fn take_attribute(&mut self, place: Place, element: ElementRef<'a>, wanted: &str) {
        // `xlink:href` is not `href`.
        let mut attributes = element.value().attrs.iter().enumerate();
        let found = attributes.find(|(_, (name, _))| name.ns.is_empty() && *name.local == *wanted);
        if let Some((at, (_, value))) = found {
            self.found.push(((place, at + 1), Found::Value(value)));
        }
    }

    /// Takes a node if it is a text.
    fn take_text(&mut self, place: Place) {
        let node = self.tree.outline().node(&self.tree.html, place);
        if let Some(text) = node.filter(|_| self.budget.step()).and_then(|node| node.as_text()) {
            self.found.push(((place, 0), Found::Value(text)));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use url::Url;

    use super::{Amount, Budget, Selector};
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
        Selector::of(css)?.find_within(page.tree(), (page.tree().outermost(), Amount::All), &budget)?;
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
        assert!(page.select(&nested(64)).is_ok());
        for depth in [65, 100_000] {
            assert!(page.select(&nested(depth)).unwrap_err().to_string().contains("more than 64 deep"));
        }
        let hidden = format!("{}p", ":not([a=')'], /* ) */ \\), ".repeat(100_000));
        assert!(page.select(&hidden).unwrap_err().to_string().contains("more than 64 deep"));
        for long in ["p ".repeat(100_000) + "p", format!(":is({}p)", "p > ".repeat(512))] {
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

//! XPath on pages, over the tree of HTML or XML that the page has.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::rc::Rc;
use std::sync::{LazyLock, OnceLock};

use foldhash::fast::RandomState;
use huntsman_xpath::{Builder, Document, Kind, Node, Scope, Value, XPath};
use scraper::Html;
use url::Url;

use super::Page;
use super::element::{Element, Selection};
use super::outline::Outline;
use super::selector::Place;
use crate::error::{Error, Result};

/// Compiled expressions kept per thread.
const MAX_EXPRESSIONS: usize = 512;
/// The scope of expressions whose callers give none. To make one costs as much as a simple expression.
static DEFAULT_SCOPE: LazyLock<Scope> = LazyLock::new(Scope::default);

/// The nodes of a page as XPath sees them.
pub(super) struct Nodes {
    pub(super) document: Document,
    /// All elements. The tree of HTML has the same ones in the same order.
    elements: OnceLock<Vec<Node>>,
}

impl Nodes {
    /// Copies an HTML tree. Elements and attributes have no namespaces, as in lxml's trees of HTML.
    pub(super) fn of_html(html: &Html) -> Result<Self> {
        let mut builder = Document::builder(true);
        let mut next = html.tree.root().first_child();
        while let Some(node) = next {
            let has_opened = open(&mut builder, node.value()).map_err(no_tree)?;
            next = node.first_child();
            if next.is_none() {
                let mut last = Some((node, has_opened));
                while let Some((ended, has_opened)) = last {
                    if has_opened {
                        builder.close();
                    }
                    next = ended.next_sibling();
                    if next.is_some() {
                        break;
                    }
                    let above = ended.parent().filter(|above| above.parent().is_some());
                    last = above.map(|above| (above, above.value().is_element()));
                }
            }
        }
        Ok(Self::of(builder.finish()))
    }

    /// Reads XML.
    pub(super) fn of_xml(text: &str) -> Result<Self> {
        Ok(Self::of(Document::read_xml(text).map_err(no_tree)?))
    }

    fn of(document: Document) -> Self {
        Self { document, elements: OnceLock::new() }
    }

    /// The node of the element of the HTML tree at a place.
    pub(super) fn node(&self, outline: &Outline, place: Place) -> Option<Node> {
        let number = outline.elements().binary_search(&place).ok()?;
        self.elements().get(number).copied()
    }

    /// The place of the element of the HTML tree that a node is.
    fn place(&self, outline: &Outline, node: Node) -> Option<Place> {
        let number = self.elements().binary_search(&node).ok()?;
        outline.elements().get(number).copied()
    }

    fn elements(&self) -> &[Node] {
        self.elements.get_or_init(|| {
            let inside = self.document.descendants(self.document.root());
            inside.filter(|node| self.document.kind(*node) == Kind::Element).collect()
        })
    }
}

fn no_tree(cause: huntsman_xpath::Error) -> Error {
    Error::from(cause).context("the page has no tree for XPath")
}

/// Adds a node of an HTML tree; whether it is an element, which has to be closed.
fn open(builder: &mut Builder, node: &scraper::Node) -> Result<bool, huntsman_xpath::Error> {
    match node {
        scraper::Node::Element(element) => {
            builder.open("", element.name())?;
            for (name, value) in &element.attrs {
                match &name.prefix {
                    Some(prefix) => builder.attribute("", &format!("{prefix}:{}", name.local), value)?,
                    None => builder.attribute("", &name.local, value)?,
                }
            }
            return Ok(true);
        }
        scraper::Node::Text(text) => builder.text(text)?,
        scraper::Node::Comment(comment) => builder.comment(comment)?,
        scraper::Node::ProcessingInstruction(instruction) => {
            builder.instruction(&instruction.target, &instruction.data)?;
        }
        scraper::Node::Document | scraper::Node::Fragment | scraper::Node::Doctype(_) => {}
    }
    Ok(false)
}

/// A compiled expression, from the thread's cache.
fn compiled(path: &str) -> Result<Rc<XPath>> {
    thread_local! {
        static CACHE: RefCell<HashMap<String, Rc<XPath>, RandomState>> = RefCell::default();
    }
    CACHE.with_borrow_mut(|cache| {
        if let Some(expression) = cache.get(path) {
            return Ok(Rc::clone(expression));
        }
        let expression = Rc::new(XPath::new(path)?);
        if cache.len() >= MAX_EXPRESSIONS {
            cache.clear();
        }
        cache.insert(path.to_owned(), Rc::clone(&expression));
        Ok(expression)
    })
}

/// Whether an expression is valid.
///
/// # Errors
/// It is not; the error gives the position.
pub(super) fn check(path: &str) -> Result<()> {
    compiled(path).map(|_| ())
}

/// A node of a page that XPath selected: an element, an attribute, a text or a comment.
#[derive(Clone, Copy)]
pub struct PageNode<'a> {
    page: &'a Page,
    document: &'a Document,
    node: Node,
    /// The prefixes that its tree brings; `None` for pages.
    scope: Option<&'a Scope>,
}

impl<'a> PageNode<'a> {
    /// The outermost element of the page's tree.
    pub(super) fn root(page: &'a Page, document: &'a Document) -> Self {
        let root = document.root();
        let outermost = document.children(root).find(|node| document.kind(*node) == Kind::Element);
        Self { page, document, node: outermost.unwrap_or(root), scope: None }
    }

    pub(super) fn at(page: &'a Page, document: &'a Document, node: Node) -> Self {
        Self { page, document, node, scope: None }
    }

    /// A node of a tree that is not the page's, but belongs to an entry of a feed.
    pub(crate) fn of_feed(page: &'a Page, document: &'a Document, node: Node, scope: &'a Scope) -> Self {
        Self { page, document, node, scope: Some(scope) }
    }

    /// Calls this function with the prefixes of the tree.
    fn in_scope<T>(&self, call: impl FnOnce(&Scope) -> T) -> T {
        match self.scope {
            Some(scope) => call(scope),
            None => call(&DEFAULT_SCOPE),
        }
    }

    pub(super) fn id(&self) -> Node {
        self.node
    }

    /// Another node of the same tree.
    pub(super) fn with(&self, node: Node) -> Self {
        Self { node, ..*self }
    }

    pub(super) fn page(&self) -> &'a Page {
        self.page
    }

    pub(super) fn is_xml(&self) -> bool {
        !self.document.is_html()
    }

    pub(super) fn is_element(&self) -> bool {
        self.document.kind(self.node) == Kind::Element
    }

    /// The element of the page that this node is; `None` for other kinds of nodes, and in the entries of feeds, whose trees are not the page's.
    pub(super) fn element(&self) -> Option<Element<'a>> {
        let nodes = self.page.css_nodes().ok()?;
        if !std::ptr::eq(self.document, &nodes.document) {
            return None;
        }
        if self.node == self.document.root() {
            return Some(Element::root(self.page));
        }
        let tree = self.page.tree();
        let place = nodes.place(tree.outline(), self.node)?;
        Some(Element::at(self.page, tree.element(place)?, place))
    }

    /// A result of an expression as a string.
    pub(super) fn string(&self, value: &Value) -> String {
        value.string(self.document)
    }

    /// The result of an expression, and the steps that it took.
    pub(super) fn evaluate_counted(&self, path: &str, scope: &Scope) -> Result<(Value, u64)> {
        Ok(compiled(path)?.evaluate_counted(self.document, self.node, scope)?)
    }

    /// Whether an expression holds here.
    pub(super) fn holds(&self, path: &str) -> Result<bool> {
        Ok(self.in_scope(|scope| self.evaluate(path, scope))?.boolean())
    }

    /// Like [`text`](Self::text), with the white space at both ends.
    pub(super) fn raw_text(&self) -> &'a str {
        self.document.value(self.node)
    }

    /// The name of an element or attribute, with its prefix; empty for texts and comments.
    pub fn name(&self) -> String {
        self.document.name(self.node)
    }

    /// All text inside the element, or the value of another node, stripped at both ends.
    pub fn text(&self) -> &'a str {
        self.document.value(self.node).trim()
    }

    /// The value of an attribute without a namespace; `None` if the node does not have it.
    pub fn attr(&self, name: &str) -> Option<&'a str> {
        self.document.attribute(self.node, name)
    }

    /// The `href` (or `src`) of an element, or the value of an attribute or text, as an absolute URL. In XML, where a link may be written
    /// `<link>/a</link>`, an element without either gives its text.
    ///
    /// # Errors
    /// There is no such attribute, or it is not a URL.
    pub fn href(&self) -> Result<Url> {
        let address = match self.document.kind(self.node) {
            Kind::Element => {
                let text = || Some(self.text()).filter(|text| !text.is_empty() && !self.document.is_html());
                self.attr("href").or_else(|| self.attr("src")).or_else(text)
            }
            _ => Some(self.text()),
        };
        let address = address.ok_or_else(|| Error::msg(format!("<{}> has no href", self.name())))?;
        self.page.resolve(address.trim()).map_err(|cause| {
            Error::from(cause).context(format!("\"{}\" is not a URL", address.escape_debug()))
        })
    }

    /// The nodes that an expression selects from here: `.//a` is inside this node, `//a` anywhere on the page.
    ///
    /// # Errors
    /// The expression is not valid, gives something else than nodes, or needs more steps than are allowed.
    pub fn nodes(&self, path: &str) -> Result<Vec<PageNode<'a>>> {
        self.in_scope(|scope| self.nodes_with(path, scope))
    }

    /// Like [`nodes`](Self::nodes), with prefixes and variables.
    ///
    /// # Errors
    /// As for `nodes`; or a prefix or variable is not in the scope.
    pub fn nodes_with(&self, path: &str, scope: &Scope) -> Result<Vec<PageNode<'a>>> {
        match self.evaluate(path, scope)? {
            Value::Nodes(nodes) => Ok(nodes.into_iter().map(|node| Self { node, ..*self }).collect()),
            other => Err(Error::msg(format!(
                "XPath \"{}\": it gives \"{}\" and no nodes; `xpath` gives such values",
                path.escape_debug(),
                other.string(self.document).escape_debug()
            ))),
        }
    }

    /// The values that an expression selects from here; see [`Page::xpath`].
    ///
    /// # Errors
    /// The expression is not valid, or needs more steps than are allowed.
    pub fn xpath(&self, path: &str) -> Result<Selection> {
        self.in_scope(|scope| self.xpath_with(path, scope))
    }

    /// Like [`xpath`](Self::xpath), with prefixes and variables.
    ///
    /// # Errors
    /// As for `xpath`; or a prefix or variable is not in the scope.
    pub fn xpath_with(&self, path: &str, scope: &Scope) -> Result<Selection> {
        match self.evaluate(path, scope)? {
            Value::Nodes(nodes) => {
                let mut buffer = String::new();
                Selection::of(nodes.into_iter().map(|node| self.document.markup_with(node, &mut buffer)))
            }
            other => Selection::of([other.string(self.document)]),
        }
    }

    /// The element with all inside it, as HTML or XML; of another node, its value.
    pub fn markup(&self) -> String {
        self.document.markup(self.node)
    }

    fn evaluate(&self, path: &str, scope: &Scope) -> Result<Value> {
        Ok(compiled(path)?.evaluate(self.document, self.node, scope)?)
    }
}

impl fmt::Debug for PageNode<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.document.kind(self.node) {
            Kind::Element => write!(f, "<{}>", self.name()),
            _ => write!(f, "{:?}", self.text()),
        }
    }
}

//! The tree that expressions are evaluated on.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::OnceLock;

use crate::error::Error;
use crate::index::Index;

/// Deepest nesting of elements, the root not counted.
const MAX_DEPTH: usize = 1_024;
/// Greatest number of nodes, attributes included.
const MAX_NODES: usize = 4_000_000;
/// Up to this number of attributes of an element, looking at each is cheaper than a set of their names.
const FEW_ATTRIBUTES: usize = 32;

/// A node of a [`Document`]: its number in document order. Attributes come right after their element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Node(pub(crate) u32);

impl Node {
    /// The number of the node in document order; the root has 0.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The kind of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The document itself.
    Root,
    /// An element.
    Element,
    /// An attribute of an element.
    Attribute,
    /// A declaration of a namespace: the name is the prefix, the value its URI.
    Namespace,
    /// Text, CDATA included. Two texts are never neighbours.
    Text,
    /// A comment.
    Comment,
    /// A processing instruction: the name is its target.
    Instruction,
}

/// A tree in one array, in document order: 24 bytes per node, beside its text. All texts lie one after the other, so that the text of an
/// element is a slice. The first expression that looks through much of a document makes lists of its nodes by name, of 4 bytes per node.
#[derive(Clone, Debug)]
pub struct Document {
    pub(crate) nodes: Vec<Entry>,
    /// All text nodes.
    text: String,
    /// The values of all other nodes.
    values: String,
    pub(crate) names: Vec<Name>,
    is_html: bool,
    index: OnceLock<Index>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) kind: Kind,
    pub(crate) parent: u32,
    /// The number of the first node after this one and all nodes inside it.
    pub(crate) end: u32,
    /// An index into the names.
    pub(crate) name: u32,
    /// The value: of a root or an element a range of the texts, as for a text; otherwise one of the values.
    from: u32,
    to: u32,
}

/// A name of elements, attributes, namespaces or instructions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Name {
    /// The URI of the namespace; empty if there is none.
    pub(crate) namespace: Box<str>,
    pub(crate) prefix: Box<str>,
    pub(crate) local: Box<str>,
}

impl Document {
    /// A builder of a document. In an HTML document names have no namespaces, and [`markup`](Self::markup) writes HTML.
    pub fn builder(is_html: bool) -> Builder {
        Builder::new(is_html)
    }

    /// The root, which is the parent of the outermost element.
    pub fn root(&self) -> Node {
        Node(0)
    }

    /// The number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is nothing but the root.
    pub fn is_empty(&self) -> bool {
        self.nodes.len() == 1
    }

    /// Whether this is HTML.
    pub fn is_html(&self) -> bool {
        self.is_html
    }

    /// The kind of a node.
    pub fn kind(&self, node: Node) -> Kind {
        self.entry(node).kind
    }

    /// The name as it is written, with its prefix; empty for nodes without a name.
    pub fn name(&self, node: Node) -> String {
        self.written_name(node).into_owned()
    }

    pub(crate) fn written_name(&self, node: Node) -> Cow<'_, str> {
        let name = self.name_of(node);
        match &*name.prefix {
            "" => Cow::Borrowed(&name.local),
            prefix => Cow::Owned(format!("{prefix}:{}", name.local)),
        }
    }

    /// The name without its prefix.
    pub fn local_name(&self, node: Node) -> &str {
        &self.name_of(node).local
    }

    /// The URI of the namespace of the name; empty if there is none.
    pub fn namespace(&self, node: Node) -> &str {
        match self.kind(node) {
            Kind::Element | Kind::Attribute => &self.name_of(node).namespace,
            _ => "",
        }
    }

    /// The string-value: all text inside the root or an element, the value of an attribute, or the content of another node.
    pub fn value(&self, node: Node) -> &str {
        let entry = self.entry(node);
        let range = entry.from as usize..entry.to as usize;
        match entry.kind {
            Kind::Root | Kind::Element | Kind::Text => &self.text[range],
            _ => &self.values[range],
        }
    }

    /// The element or root in which a node lies; for an attribute the element that has it.
    pub fn parent(&self, node: Node) -> Option<Node> {
        (node.0 > 0).then(|| Node(self.entry(node).parent))
    }

    /// The nodes right inside an element or the root, without attributes.
    pub fn children(&self, node: Node) -> impl Iterator<Item = Node> + '_ {
        let end = self.entry(node).end;
        let mut next = self.first_inside(node);
        std::iter::from_fn(move || {
            let child = (next < end).then_some(Node(next))?;
            next = self.entry(child).end;
            Some(child)
        })
    }

    /// The nodes inside an element or the root at any depth, without attributes.
    pub fn descendants(&self, node: Node) -> impl Iterator<Item = Node> + '_ {
        let inside = (node.0 + 1..self.entry(node).end).map(Node);
        inside.filter(|node| !matches!(self.kind(*node), Kind::Attribute | Kind::Namespace))
    }

    /// The attributes of an element, and the namespaces that are declared at it.
    pub(crate) fn declared(&self, node: Node) -> impl Iterator<Item = Node> + '_ {
        (node.0 + 1..self.first_inside(node)).map(Node)
    }

    /// The attributes of an element.
    pub fn attributes(&self, node: Node) -> impl Iterator<Item = Node> + '_ {
        self.declared(node).filter(|node| self.kind(*node) == Kind::Attribute)
    }

    /// The value of the attribute with this name, written without a namespace.
    pub fn attribute(&self, node: Node, name: &str) -> Option<&str> {
        let is_it = |attribute: &Node| {
            let of_it = self.name_of(*attribute);
            of_it.namespace.is_empty() && &*of_it.local == name
        };
        self.attributes(node).find(is_it).map(|attribute| self.value(attribute))
    }

    /// The nodes by name, listed at the first call.
    pub(crate) fn index(&self) -> &Index {
        self.index.get_or_init(|| Index::of(self))
    }

    pub(crate) fn entry(&self, node: Node) -> &Entry {
        &self.nodes[node.0 as usize]
    }

    pub(crate) fn name_of(&self, node: Node) -> &Name {
        &self.names[self.entry(node).name as usize]
    }

    /// The number of the first node inside an element that is neither an attribute nor a namespace.
    pub(crate) fn first_inside(&self, node: Node) -> u32 {
        let (mut next, end) = (node.0 + 1, self.entry(node).end);
        while next < end && matches!(self.nodes[next as usize].kind, Kind::Attribute | Kind::Namespace) {
            next += 1;
        }
        next
    }
}

/// Builds a [`Document`] from events in document order.
#[derive(Debug)]
pub struct Builder {
    document: Document,
    /// The open elements, the root first.
    open: Vec<u32>,
    /// The numbers of names by their namespace, a zero byte, and the name as it is written.
    numbers: HashMap<Box<str>, u32>,
    /// The key of the name that is looked for.
    key: String,
    /// Whether attributes can still be added to the innermost element.
    is_tag: bool,
    /// The number of attributes of the element that was opened last.
    attributes: usize,
    /// Their names without prefixes, from [`FEW_ATTRIBUTES`] on: looking at all of many for each would take quadratic time.
    known: HashSet<(Box<str>, Box<str>)>,
}

impl Builder {
    fn new(is_html: bool) -> Self {
        let nameless = Name { namespace: "".into(), prefix: "".into(), local: "".into() };
        let root = Entry { kind: Kind::Root, parent: 0, end: 1, name: 0, from: 0, to: 0 };
        let document = Document {
            nodes: vec![root],
            text: String::new(),
            values: String::new(),
            names: vec![nameless],
            is_html,
            index: OnceLock::new(),
        };
        Self {
            document,
            open: vec![0],
            numbers: HashMap::from([("\0".into(), 0)]),
            key: String::new(),
            is_tag: false,
            attributes: 0,
            known: HashSet::new(),
        }
    }

    /// Opens an element. `name` is the name as it is written, and `namespace` the URI of its prefix, or "".
    ///
    /// # Errors
    /// The document has more than four million nodes, or elements are nested more than 1,024 deep.
    pub fn open(&mut self, namespace: &str, name: &str) -> Result<Node, Error> {
        if self.open.len() > MAX_DEPTH {
            return Err(Error::new(format!("the elements are nested more than {MAX_DEPTH} deep")));
        }
        let number = self.name(namespace, name);
        let at = self.document.text.len() as u32;
        let node = self.add(Kind::Element, number, at..at)?;
        self.open.push(node.0);
        self.is_tag = true;
        self.attributes = 0;
        if !self.known.is_empty() {
            // Clearing it would take time for the names of the past at each element.
            self.known = HashSet::new();
        }
        Ok(node)
    }

    /// Adds an attribute to the element that was opened just now. An attribute that it has already is passed over.
    ///
    /// # Errors
    /// The document has more than four million nodes.
    pub fn attribute(&mut self, namespace: &str, name: &str, value: &str) -> Result<(), Error> {
        let number = self.name(namespace, name);
        if self.has_attribute(number) {
            return Ok(());
        }
        self.attributes += 1;
        self.declare(Kind::Attribute, number, value)
    }

    /// Whether the element that was opened last has an attribute of this name, whatever the prefix.
    fn has_attribute(&mut self, number: u32) -> bool {
        let element = Node(*self.open.last().unwrap_or(&0));
        let of_it = &self.document.names[number as usize];
        let last = self.document.nodes.len() as u32;
        let before = (element.0 + 1..last).map(Node);
        let mut before = before.filter(|other| self.document.kind(*other) == Kind::Attribute);
        if self.attributes < FEW_ATTRIBUTES {
            return before.any(|other| {
                let other = self.document.name_of(other);
                other.namespace == of_it.namespace && other.local == of_it.local
            });
        }
        let key = |name: &Name| (name.namespace.clone(), name.local.clone());
        if self.known.is_empty() {
            self.known.extend(before.map(|other| key(self.document.name_of(other))));
        }
        !self.known.insert(key(of_it))
    }

    /// Adds the declaration of a prefix (or of the default namespace, "") to the element that was opened just now.
    ///
    /// # Errors
    /// The document has more than four million nodes.
    pub fn namespace(&mut self, prefix: &str, uri: &str) -> Result<(), Error> {
        let number = self.name("", prefix);
        self.declare(Kind::Namespace, number, uri)
    }

    fn declare(&mut self, kind: Kind, name: u32, value: &str) -> Result<(), Error> {
        debug_assert!(self.is_tag, "attributes come before what is inside an element");
        let range = self.value(value);
        self.add(kind, name, range)?;
        self.is_tag = true;
        Ok(())
    }

    /// Adds text; it becomes one node with a text right before it.
    ///
    /// # Errors
    /// The document has more than four million nodes.
    pub fn text(&mut self, text: &str) -> Result<(), Error> {
        if text.is_empty() {
            return Ok(());
        }
        let from = self.document.text.len();
        self.document.text.push_str(text);
        let to = self.document.text.len() as u32;
        let parent = self.open.last().copied().unwrap_or(0);
        if let Some(last) =
            self.document.nodes.last_mut().filter(|last| last.kind == Kind::Text && last.parent == parent)
        {
            last.to = to;
            return Ok(());
        }
        self.add(Kind::Text, 0, from as u32..to).map(|_| ())
    }

    /// Adds a comment.
    ///
    /// # Errors
    /// The document has more than four million nodes.
    pub fn comment(&mut self, text: &str) -> Result<(), Error> {
        let range = self.value(text);
        self.add(Kind::Comment, 0, range).map(|_| ())
    }

    /// Adds a processing instruction.
    ///
    /// # Errors
    /// The document has more than four million nodes.
    pub fn instruction(&mut self, target: &str, text: &str) -> Result<(), Error> {
        let (number, range) = (self.name("", target), self.value(text));
        self.add(Kind::Instruction, number, range).map(|_| ())
    }

    /// Closes the innermost element.
    pub fn close(&mut self) {
        self.is_tag = false;
        if self.open.len() > 1 {
            self.end_innermost();
        }
    }

    /// The document; elements that are still open are closed.
    pub fn finish(mut self) -> Document {
        while !self.open.is_empty() {
            self.end_innermost();
        }
        self.document
    }

    fn end_innermost(&mut self) {
        let Some(node) = self.open.pop() else { return };
        let (end, to) = (self.document.nodes.len() as u32, self.document.text.len() as u32);
        let entry = &mut self.document.nodes[node as usize];
        entry.end = end;
        entry.to = to;
    }

    fn add(&mut self, kind: Kind, name: u32, value: Range<u32>) -> Result<Node, Error> {
        self.is_tag = false;
        let number = self.document.nodes.len();
        if number >= MAX_NODES {
            return Err(Error::new(format!("the document has more than {MAX_NODES} nodes")));
        }
        let parent = self.open.last().copied().unwrap_or(0);
        let (number, Range { start: from, end: to }) = (number as u32, value);
        self.document.nodes.push(Entry { kind, parent, end: number + 1, name, from, to });
        Ok(Node(number))
    }

    fn value(&mut self, value: &str) -> Range<u32> {
        let from = self.document.values.len() as u32;
        self.document.values.push_str(value);
        from..self.document.values.len() as u32
    }

    /// The number of a name. In HTML a colon is a part of the name.
    fn name(&mut self, namespace: &str, name: &str) -> u32 {
        self.key.clear();
        self.key.push_str(namespace);
        self.key.push('\0');
        self.key.push_str(name);
        if let Some(number) = self.numbers.get(self.key.as_str()) {
            return *number;
        }
        let (prefix, local) = match name.split_once(':') {
            Some((prefix, local)) if !self.document.is_html => (prefix, local),
            _ => ("", name),
        };
        let number = self.document.names.len() as u32;
        self.document.names.push(Name {
            namespace: namespace.into(),
            prefix: prefix.into(),
            local: local.into(),
        });
        self.numbers.insert(self.key.as_str().into(), number);
        number
    }
}

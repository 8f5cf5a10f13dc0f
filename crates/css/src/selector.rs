//! Lists of selectors, and what each selector of a list takes from the elements that it matches.

use std::borrow::Cow;

use cssparser::Parser;
use selectors::Element;
use selectors::context::MatchingContext;
use selectors::matching::matches_selector;
use selectors::parser::{self, Combinator, Component, ParseRelative, SelectorList};

use crate::dialect::{Dialect, Name};
use crate::error::Error;
use crate::grammar::Grammar;

/// Deepest nesting of brackets, because they are parsed inside each other.
const MAX_NESTING: usize = 64;
/// The most simple selectors and combinators of one selector of a list, because they are matched inside each other.
const MAX_COMPONENTS: usize = 512;

/// A list of selectors, compiled.
#[derive(Clone, Debug)]
pub struct Selector {
    branches: Vec<Branch>,
}

/// One selector of a list, and what it takes.
#[derive(Clone, Debug)]
pub struct Branch {
    selector: parser::Selector<Dialect>,
    take: Take,
    /// Number of components from the right that are not matched: the pseudo-element and the components that it makes
    /// superfluous.
    offset: usize,
    is_deep: bool,
    key: Key,
    /// Whether each element with the key matches.
    is_key: bool,
}

/// What the elements that a selector matches have in common, so that a tree can list them: the most telling part of what follows the last
/// combinator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Key {
    /// Nothing that can be listed.
    Any,
    /// An id.
    Id,
    /// This class.
    Class(Name),
    /// This local name.
    Name(Name),
    /// This attribute, which has no namespace.
    Attribute(Name),
}

impl Key {
    /// The key of a part, and whether an element with the key always has the part; the greatest is the most telling one.
    fn of(part: &Component<Dialect>) -> (u8, Self, bool) {
        match part {
            Component::ID(_) => (4, Self::Id, false),
            Component::Class(class) => (3, Self::Class(class.clone()), true),
            // Names in capitals mean other elements in HTML than in SVG.
            Component::LocalName(name) if name.name == name.lower_name => {
                (2, Self::Name(name.name.clone()), true)
            }
            Component::AttributeInNoNamespaceExists { local_name, local_name_lower }
                if local_name == local_name_lower =>
            {
                (1, Self::Attribute(local_name.clone()), true)
            }
            Component::AttributeInNoNamespace { local_name, .. } => {
                (1, Self::Attribute(local_name.clone()), false)
            }
            Component::ExplicitUniversalType | Component::ExplicitAnyNamespace => (0, Self::Any, true),
            _ => (0, Self::Any, false),
        }
    }
}

/// What a selector takes from an element that it matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Take {
    /// The element itself.
    Element,
    /// `::text`: the text nodes that are its children.
    Text,
    /// `::attr(name)`: the value of an attribute.
    Attr(String),
}

impl Selector {
    /// Compiles a list of selectors. A name with a prefix (`dc|creator`) is the name that is written in the document (`dc:creator`), whatever the
    /// prefix stands for; no prefix has to be declared.
    ///
    /// # Errors
    /// The list is not valid, which the error gives the place of; its brackets are nested more than 64 deep; or a selector has more than 512
    /// parts.
    pub fn parse(css: &str) -> Result<Self, Error> {
        if is_nested_too_deep(css) {
            return Err(Error::whole(css, &format!("its brackets are nested more than {MAX_NESTING} deep")));
        }
        let css = &*with_written_names(css);
        let grammar = Grammar::default();
        let mut input = Parser::new(css);
        let list = SelectorList::parse(&grammar, &mut input, ParseRelative::No).map_err(|error| {
            let (at, what) = grammar.explain(css, input.position().byte_index(), &error);
            Error::at(css, at, &what)
        })?;
        if list.slice().iter().any(is_too_long) {
            return Err(Error::whole(
                css,
                &format!("it has more than {MAX_COMPONENTS} parts without a comma"),
            ));
        }
        Ok(Self { branches: list.slice().iter().map(Branch::of).collect() })
    }

    /// The selectors of the list.
    pub fn branches(&self) -> &[Branch] {
        &self.branches
    }

    /// Whether all selectors of the list take elements, and none has `::text` or `::attr(name)`.
    pub fn takes_elements(&self) -> bool {
        self.branches.iter().all(|branch| branch.take == Take::Element)
    }
}

impl Branch {
    fn of(selector: &parser::Selector<Dialect>) -> Self {
        let components: Vec<_> = selector.iter_raw_match_order().collect();
        let keyed = |from: usize| {
            let is_inside = |part: &&&Component<Dialect>| !matches!(part, Component::Combinator(_));
            let own = &components[from..];
            let count = own.iter().take_while(is_inside).count();
            let keys = own[..count].iter().map(|part| Key::of(part));
            let (_, key, is_key) = keys.max_by_key(|(rank, ..)| *rank).unwrap_or((0, Key::Any, true));
            // With another part, or something to the left of the last combinator, the key alone does not decide.
            (key, is_key && count <= 1 && count == own.len())
        };
        let Some(pseudo) = selector.pseudo_element() else {
            let (key, is_key) = keyed(0);
            return Self {
                selector: selector.clone(),
                take: Take::Element,
                offset: 0,
                is_deep: false,
                key,
                is_key,
            };
        };
        // From the right: the pseudo-element, the combinator that binds it, and what it belongs to.
        let mut offset = 2;
        let is_any = |component: &&Component<Dialect>| {
            matches!(component, Component::ExplicitUniversalType | Component::ExplicitAnyNamespace)
        };
        let any = offset + components[offset..].iter().take_while(|component| is_any(component)).count();
        let is_deep = matches!(components.get(any), Some(Component::Combinator(Combinator::Descendant)));
        if is_deep {
            offset = any + 1;
        }
        let (key, is_key) = keyed(offset);
        Self { selector: selector.clone(), take: pseudo.0.clone(), offset, is_deep, key, is_key }
    }

    /// What the selector takes from an element that it matches.
    pub fn take(&self) -> &Take {
        &self.take
    }

    /// Whether it takes the same from the descendants of an element that it matches: `p ::text` and `p *::text`.
    pub fn is_deep(&self) -> bool {
        self.is_deep
    }

    /// What all elements that the selector matches have; to list them saves a look at the others.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// Whether the selector matches an element that has its [`key`](Self::key), its pseudo-element aside.
    pub fn matches<E: Element<Impl = Dialect>>(
        &self,
        element: &E,
        context: &mut MatchingContext<'_, Dialect>,
    ) -> bool {
        self.is_key || matches_selector(&self.selector, self.offset, None, element, context)
    }
}

/// The selectors with `dc|creator` written as `dc\:creator`: trees have the names of the document, and no namespaces.
fn with_written_names(css: &str) -> Cow<'_, str> {
    if !css.contains('|') {
        return Cow::Borrowed(css);
    }
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_') || !byte.is_ascii();
    let mut out = String::with_capacity(css.len() + 1);
    let (mut from, mut quote, mut is_escaped, mut before) = (0, None, false, 0);
    for (at, byte) in css.bytes().enumerate() {
        let after = css.as_bytes().get(at + 1).copied().unwrap_or_default();
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' | b'\'' if quote.is_none() => quote = Some(byte),
            _ if quote == Some(byte) => quote = None,
            b'|' if quote.is_none() && is_name(before) && (is_name(after) || after == b'\\') => {
                out.push_str(&css[from..at]);
                out.push_str("\\:");
                from = at + 1;
            }
            _ => {}
        }
        before = byte;
    }
    out.push_str(&css[from..]);
    Cow::Owned(out)
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

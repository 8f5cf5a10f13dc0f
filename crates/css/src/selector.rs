//! Lists of selectors, and what each selector of a list takes from the elements that it matches.

use cssparser::Parser;
use selectors::Element;
use selectors::context::MatchingContext;
use selectors::matching::matches_selector;
use selectors::parser::{self, Combinator, Component, ParseRelative, SelectorList};

use crate::dialect::Dialect;
use crate::error::Error;
use crate::grammar::Grammar;

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
    /// Compiles a list of selectors.
    ///
    /// # Errors
    /// The list is not valid; the error gives the place.
    pub fn parse(css: &str) -> Result<Self, Error> {
        let grammar = Grammar::default();
        let mut input = Parser::new(css);
        let list = SelectorList::parse(&grammar, &mut input, ParseRelative::No).map_err(|error| {
            let (at, what) = grammar.explain(css, input.position().byte_index(), &error);
            Error::at(css, at, &what)
        })?;
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
        let Some(pseudo) = selector.pseudo_element() else {
            return Self { selector: selector.clone(), take: Take::Element, offset: 0, is_deep: false };
        };
        let components: Vec<_> = selector.iter_raw_match_order().collect();
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
        Self { selector: selector.clone(), take: pseudo.0.clone(), offset, is_deep }
    }

    /// What the selector takes from an element that it matches.
    pub fn take(&self) -> &Take {
        &self.take
    }

    /// Whether it takes the same from the descendants of an element that it matches: `p ::text` and `p *::text`.
    pub fn is_deep(&self) -> bool {
        self.is_deep
    }

    /// Whether the selector matches an element, its pseudo-element aside.
    pub fn matches<E: Element<Impl = Dialect>>(
        &self,
        element: &E,
        context: &mut MatchingContext<'_, Dialect>,
    ) -> bool {
        matches_selector(&self.selector, self.offset, None, element, context)
    }
}

//! An adapter that shows an element to the `selectors` crate, with the searched element as the root of the tree.

use huntsman_css::{Dialect, Name, PseudoClass, PseudoElement};
use scraper::ElementRef;
use selectors::attr::{AttrSelectorOperation, CaseSensitivity, NamespaceConstraint};
use selectors::bloom::BloomFilter;
use selectors::matching::{ElementSelectorFlags, MatchingContext};
use selectors::{Element, OpaqueElement};

use super::budget::Budget;

#[derive(Clone, Debug)]
pub(super) struct Node<'a> {
    element: ElementRef<'a>,
    /// The element that is searched.
    scope: ElementRef<'a>,
    /// Each node that is looked at costs a step.
    budget: &'a Budget,
}

impl<'a> Node<'a> {
    pub(super) fn new(element: ElementRef<'a>, scope: ElementRef<'a>, budget: &'a Budget) -> Self {
        Self { element, scope, budget }
    }

    fn with_element(&self, element: ElementRef<'a>) -> Self {
        Self::new(element, self.scope, self.budget)
    }

    fn attr(&self, name: &str) -> Option<&'a str> {
        self.element.value().attr(name)
    }

    fn is_one_of(&self, names: &[&str]) -> bool {
        names.contains(&self.element.value().name())
    }

    fn has_type(&self, types: &[&str]) -> bool {
        self.attr("type").is_some_and(|given| types.iter().any(|name| given.eq_ignore_ascii_case(name)))
    }

    /// Whether the text inside, as in the document, has a part.
    fn contains(&self, wanted: &str) -> bool {
        let mut texts = String::new();
        for node in self.element.descendants().take_while(|_| self.budget.step()) {
            if let Some(text) = node.value().as_text().filter(|text| self.budget.read(text)) {
                texts.push_str(text);
            }
        }
        texts.contains(wanted)
    }

    /// The elements around this one, from the inside outwards, beyond the one that is searched.
    fn ancestors(&self) -> impl Iterator<Item = ElementRef<'a>> + use<'a> {
        let budget = self.budget;
        self.element.ancestors().take_while(move |_| budget.step()).filter_map(ElementRef::wrap)
    }

    /// Whether the nearest `lang` names this language or a variant of it, as `en-GB` is a variant of `en`.
    fn is_of_language(&self, wanted: &str) -> bool {
        let mut elements = std::iter::once(self.element).chain(self.ancestors());
        let declared = elements.find_map(|element| element.value().attr("lang")).unwrap_or_default();
        let (begin, rest) = declared.split_at_checked(wanted.len()).unwrap_or_default();
        !wanted.is_empty() && begin.eq_ignore_ascii_case(wanted) && (rest.is_empty() || rest.starts_with('-'))
    }

    /// Whether the element, or an ancestor, is disabled; `None` for an element that cannot be disabled.
    fn is_disabled(&self) -> Option<bool> {
        let mut above = self.ancestors();
        let is_off = |element: &ElementRef<'_>, name: &str| {
            element.value().name() == name && element.value().attr("disabled").is_some()
        };
        let by_another = match self.element.value().name() {
            "fieldset" | "optgroup" => false,
            "option" => above.any(|above| is_off(&above, "optgroup")),
            // The contents of its first legend remain enabled in a disabled fieldset.
            "button" | "input" | "select" | "textarea" => {
                above.any(|above| is_off(&above, "fieldset") && !self.is_in_first_legend(above))
            }
            _ => return None,
        };
        Some(by_another || self.attr("disabled").is_some())
    }

    fn is_in_first_legend(&self, fieldset: ElementRef<'a>) -> bool {
        let mut children =
            fieldset.children().take_while(|_| self.budget.step()).filter_map(ElementRef::wrap);
        let legend = children.find(|child| child.value().name() == "legend");
        legend.is_some_and(|legend| self.ancestors().any(|above| above == legend))
    }
}

impl<'a> Element for Node<'a> {
    type Impl = Dialect;

    fn opaque(&self) -> OpaqueElement {
        OpaqueElement::new(self.element.value())
    }

    fn parent_element(&self) -> Option<Self> {
        if self.element == self.scope || !self.budget.step() {
            return None;
        }
        self.element.parent().and_then(ElementRef::wrap).map(|parent| self.with_element(parent))
    }

    fn parent_node_is_shadow_root(&self) -> bool {
        false
    }

    fn containing_shadow_host(&self) -> Option<Self> {
        None
    }

    fn is_pseudo_element(&self) -> bool {
        false
    }

    fn prev_sibling_element(&self) -> Option<Self> {
        let mut nodes = self.element.prev_siblings().take_while(|_| self.budget.step());
        nodes.find_map(ElementRef::wrap).map(|element| self.with_element(element))
    }

    fn next_sibling_element(&self) -> Option<Self> {
        let mut nodes = self.element.next_siblings().take_while(|_| self.budget.step());
        nodes.find_map(ElementRef::wrap).map(|element| self.with_element(element))
    }

    fn first_element_child(&self) -> Option<Self> {
        let mut nodes = self.element.children().take_while(|_| self.budget.step());
        nodes.find_map(ElementRef::wrap).map(|element| self.with_element(element))
    }

    fn is_html_element_in_html_document(&self) -> bool {
        self.element.is_html_element_in_html_document()
    }

    fn has_local_name(&self, name: &str) -> bool {
        *self.element.value().name.local == *name
    }

    fn has_namespace(&self, namespace: &str) -> bool {
        *self.element.value().name.ns == *namespace
    }

    fn is_same_type(&self, other: &Self) -> bool {
        self.element.value().name == other.element.value().name
    }

    fn attr_matches(
        &self,
        _: &NamespaceConstraint<&Name>,
        name: &Name,
        operation: &AttrSelectorOperation<&Name>,
    ) -> bool {
        // Compared as a text: `attr` would make an atom of the name each time.
        let attributes = &self.element.value().attrs;
        if !self.budget.spend(attributes.len() as u64) {
            return false;
        }
        let value =
            attributes.iter().find(|(given, _)| *given.local == *name.as_str() && given.ns.is_empty());
        value.is_some_and(|(_, value)| self.budget.read(value) && operation.eval_str(value))
    }

    fn match_non_ts_pseudo_class(&self, class: &PseudoClass, _: &mut MatchingContext<'_, Dialect>) -> bool {
        match class {
            PseudoClass::Contains(wanted) => self.contains(wanted),
            PseudoClass::Lang(wanted) => self.is_of_language(wanted),
            PseudoClass::Link => self.is_one_of(&["a", "link", "area"]) && self.attr("href").is_some(),
            PseudoClass::Checked => {
                (self.is_one_of(&["option"]) && self.attr("selected").is_some())
                    || (self.is_one_of(&["input"])
                        && self.has_type(&["checkbox", "radio"])
                        && self.attr("checked").is_some())
            }
            PseudoClass::Disabled => self.is_disabled() == Some(true),
            PseudoClass::Enabled => self.is_disabled() == Some(false),
            PseudoClass::Never => false,
        }
    }

    fn match_pseudo_element(&self, _: &PseudoElement, _: &mut MatchingContext<'_, Dialect>) -> bool {
        false
    }

    fn apply_selector_flags(&self, _: ElementSelectorFlags) {}

    /// Only of interest where visited links are told from others; it is asked at every combinator.
    fn is_link(&self) -> bool {
        false
    }

    fn is_html_slot_element(&self) -> bool {
        false
    }

    fn has_id(&self, id: &Name, case: CaseSensitivity) -> bool {
        self.element.value().id().is_some_and(|given| case.eq(given.as_bytes(), id.as_str().as_bytes()))
    }

    fn has_class(&self, name: &Name, case: CaseSensitivity) -> bool {
        let mut classes = self.element.value().classes().take_while(|_| self.budget.step());
        classes.any(|class| case.eq(class.as_bytes(), name.as_str().as_bytes()))
    }

    fn has_custom_state(&self, _: &Name) -> bool {
        false
    }

    fn imported_part(&self, _: &Name) -> Option<Name> {
        None
    }

    fn is_part(&self, _: &Name) -> bool {
        false
    }

    fn is_empty(&self) -> bool {
        let mut children = self.element.children().take_while(|_| self.budget.step());
        !children.any(|child| child.value().is_element() || child.value().is_text())
    }

    fn is_root(&self) -> bool {
        self.element.is_root()
    }

    fn add_element_unique_hashes(&self, _: &mut BloomFilter) -> bool {
        false
    }
}

//! The kinds of selectors that are supported, as the crate `selectors` wants to know them.

use std::borrow::Borrow;
use std::fmt;

use cssparser::ToCss;
use precomputed_hash::PrecomputedHash;
use selectors::parser;

use crate::selector::Take;

/// The supported kinds of selectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dialect;

impl parser::SelectorImpl for Dialect {
    type AttrValue = Name;
    type Identifier = Name;
    type LocalName = Name;
    type NamespacePrefix = Name;
    type NamespaceUrl = Name;
    type BorrowedNamespaceUrl = str;
    type BorrowedLocalName = str;
    type NonTSPseudoClass = PseudoClass;
    type PseudoElement = PseudoElement;
    type ExtraMatchingData<'a> = ();
}

/// A name or a value in a selector.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Box<str>);

impl Name {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Name {
    fn from(name: &str) -> Self {
        Self(name.into())
    }
}

impl AsRef<str> for Name {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl PrecomputedHash for Name {
    /// Wanted for bloom filters of ancestors, which no tree here has: FNV-1a, computed each time.
    fn precomputed_hash(&self) -> u32 {
        self.0.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
    }
}

impl ToCss for Name {
    fn to_css<W: fmt::Write>(&self, to: &mut W) -> fmt::Result {
        cssparser::serialize_string(&self.0, to)
    }
}

/// The supported pseudo-classes that do not depend on the position in the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PseudoClass {
    /// The text of the element contains this one. This is not CSS, but an extension of cssselect.
    Contains(String),
    /// The language of the element is this one or a variant of it.
    Lang(String),
    /// A link.
    Link,
    /// A box that is checked, or an option that is selected.
    Checked,
    /// A control that is disabled.
    Disabled,
    /// A control that is not disabled.
    Enabled,
    /// A state that only a browser knows: an element is never hovered over or visited here.
    Never,
}

impl PseudoClass {
    /// The pseudo-class of a name without arguments.
    pub(crate) fn of(name: &str) -> Option<Self> {
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
pub struct PseudoElement(pub(crate) Take);

impl parser::PseudoElement for PseudoElement {}

impl ToCss for PseudoElement {
    fn to_css<W: fmt::Write>(&self, to: &mut W) -> fmt::Result {
        write!(to, "::{:?}", self.0)
    }
}

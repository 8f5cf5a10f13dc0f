//! What a selector may cost on a page.
//!
//! Matching goes from an element to its ancestors and siblings, so on a page that was made for it a selector takes quadratic time or worse:
//! `x ~ p` looks at all earlier siblings of each paragraph. Steps are counted instead of time, so that a selector ends the same way on every
//! machine.

use std::cell::Cell;

/// The most steps of a selector: about half a second. Builds with debug assertions of the crate `selectors` take many more for `:nth-child`, as each
/// index is counted again there.
const STEPS: u64 = 50_000_000;

/// The steps that a selector may still take: nodes that it goes to, and 16 bytes of texts and attributes that it compares.
///
/// When they are used up, every further step is refused, and matching ends soon. What it found until then means nothing.
#[derive(Debug)]
pub(super) struct Budget {
    all: u64,
    left: Cell<u64>,
}

impl Default for Budget {
    fn default() -> Self {
        Self::of(STEPS)
    }
}

impl Budget {
    pub(super) fn of(steps: u64) -> Self {
        Self { all: steps, left: Cell::new(steps) }
    }

    /// Takes a step; whether there was one left.
    pub(super) fn step(&self) -> bool {
        self.spend(1)
    }

    /// Takes the steps of reading a text; whether there were so many left.
    pub(super) fn read(&self, text: &str) -> bool {
        self.spend(1 + text.len() as u64 / 16)
    }

    /// Takes some steps; whether there were so many left.
    pub(super) fn spend(&self, steps: u64) -> bool {
        let left = self.left.get().saturating_sub(steps);
        self.left.set(left);
        left > 0
    }

    pub(super) fn is_used_up(&self) -> bool {
        self.left.get() == 0
    }

    /// The steps that there were at the beginning.
    pub(super) fn all(&self) -> u64 {
        self.all
    }

    pub(super) fn used(&self) -> u64 {
        self.all - self.left.get()
    }
}

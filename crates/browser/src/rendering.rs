//! How a page is to be rendered. It is data, so that a job keeps it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How a page is to be rendered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rendering {
    /// When the page is ready, before the first step.
    #[serde(skip_serializing_if = "Ready::is_quiet")]
    pub ready: Ready,
    /// What is done then, in this order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Step>,
    /// Pages of one name share storage; a page without a name has one of its own. Cookies are the crawl's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Limit of time for this page, instead of the general one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
}

/// When a page is ready.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ready {
    /// It is loaded, 500 ms have passed without a request in flight, and 300 ms without a change of its tree.
    #[default]
    Quiet,
    /// An element matches this CSS selector.
    Selector(String),
    /// This expression of JavaScript is true.
    Expression(String),
}

impl Ready {
    fn is_quiet(&self) -> bool {
        *self == Self::Quiet
    }
}

/// An action, and what its failure means.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// What is done.
    pub action: Action,
    /// Whether the page goes on if it fails. By default its request fails.
    #[serde(default)]
    pub is_optional: bool,
}

impl From<Action> for Step {
    fn from(action: Action) -> Self {
        Self { action, is_optional: false }
    }
}

/// What is done on a page.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Action {
    /// Waits until the page is ready in another way.
    WaitFor(Ready),
    /// Clicks on the first element that matches a CSS selector.
    Click(String),
    /// Puts a text into a field.
    Fill {
        /// CSS selector of the field.
        selector: String,
        /// What is in it afterwards.
        text: String,
    },
    /// Presses a key by its name, such as `Enter`, on the focused element.
    Press(String),
    /// Chooses an option by its value.
    Select {
        /// CSS selector of the list.
        selector: String,
        /// Value of the option.
        value: String,
    },
    /// Runs an expression of JavaScript; its value, as JSON, is part of the result.
    Evaluate(String),
    /// Scrolls until two rounds bring neither height nor links. What a round showed stays part of the page.
    ScrollToEnd {
        /// Most rounds. A round goes view by view to the end that the page has when the round begins.
        rounds: u32,
        /// Ends as soon as an element matches this CSS selector, which is asked at each view.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<String>,
    },
    /// Takes a picture of the page as PNG.
    Screenshot {
        /// Of the whole page, not only of what is in view.
        is_full: bool,
    },
    /// Prints the page as PDF.
    Pdf,
    /// Waits for a time.
    Sleep(Duration),
}

//! Scripts of ours that look at a page, in a world of their own, where those of the page do not see them.

use serde_json::{Value, json};

use super::{Page, lock};
use crate::connection::Failure;

/// What they are made of.
const SOURCE: &str = include_str!("../scripts/page.js");
/// The name of their world.
const WORLD: &str = "huntsman";
/// How often a script is tried again because the document went away under it.
const TIMES: usize = 5;

/// The number of a context of scripts.
#[derive(Clone, Copy)]
pub(super) struct World(pub(super) i64);

/// Why a script has no value.
#[derive(Debug)]
pub(super) enum Fault {
    /// It threw.
    Thrown(String),
    /// Its document went away.
    Gone,
    /// There is no page any more.
    Ended,
}

impl Page {
    /// What an expression gives that only looks. It is tried again if the document goes away under it.
    pub(super) async fn look(&self, expression: &str) -> Result<Value, Fault> {
        for _ in 0..TIMES {
            match self.act(expression).await {
                Err(Fault::Gone) => {}
                result => return result,
            }
        }
        Err(Fault::Gone)
    }

    /// What an expression gives that changes the page, and so is tried only once.
    pub(super) async fn act(&self, expression: &str) -> Result<Value, Fault> {
        let known = *lock(&self.world);
        let world = match known {
            Some(world) => world,
            None => self.world(&self.target).await?,
        };
        *lock(&self.world) = Some(world);
        let result = self.run(expression, Some(world)).await;
        if matches!(result, Err(Fault::Gone)) {
            *lock(&self.world) = None;
        }
        result
    }

    /// The value of an expression in the world of the page.
    pub(super) async fn evaluate(&self, expression: &str) -> Result<Value, Fault> {
        self.run(expression, None).await
    }

    /// Our world in a frame.
    pub(super) async fn world(&self, frame: &str) -> Result<World, Fault> {
        let made =
            self.command("Page.createIsolatedWorld", json!({"frameId": frame, "worldName": WORLD})).await?;
        let world = World(made["executionContextId"].as_i64().ok_or(Fault::Gone)?);
        self.run(&format!("globalThis.huntsman ??= {SOURCE}; 0"), Some(world)).await?;
        Ok(world)
    }

    /// The value of an expression in a world, or in that of the page.
    pub(super) async fn run(&self, expression: &str, world: Option<World>) -> Result<Value, Fault> {
        let mut params = json!({
            "expression": expression,
            "returnByValue": true,
            "awaitPromise": true,
        });
        if let Some(world) = world {
            params["contextId"] = world.0.into();
        }
        let mut result = self.command("Runtime.evaluate", params).await?;
        let details = &result["exceptionDetails"];
        if details.is_null() {
            Ok(result["result"]["value"].take())
        } else {
            Err(Fault::Thrown(exception(details)))
        }
    }

    /// What a command to the page gives.
    pub(super) async fn command(&self, method: &str, params: Value) -> Result<Value, Fault> {
        self.connection.call(&self.session, method, params).await.map_err(fault)
    }
}

/// The browser has no numbers for these, only sentences.
fn fault(failure: Failure) -> Fault {
    match failure {
        Failure::Ended => Fault::Ended,
        Failure::Refused(reason) if reason.contains("Session with given id not found") => Fault::Ended,
        Failure::Refused(reason)
            if ["context", "navigated", "collected", "frame"].iter().any(|word| reason.contains(word)) =>
        {
            Fault::Gone
        }
        Failure::Refused(reason) => Fault::Thrown(reason),
    }
}

/// A value of a script as text, as the console shows it.
pub(super) fn as_text(value: &Value) -> String {
    match (&value["value"], value["description"].as_str()) {
        (Value::String(text), _) => text.clone(),
        (Value::Null, Some(text)) => text.to_owned(),
        (Value::Null, None) => value["type"].as_str().unwrap_or_default().to_owned(),
        (other, _) => other.to_string(),
    }
}

/// What an exception says.
pub(super) fn exception(details: &Value) -> String {
    let thrown = as_text(&details["exception"]);
    if thrown.is_empty() { details["text"].as_str().unwrap_or("an exception").to_owned() } else { thrown }
}

/// A text as a literal of a script.
pub(super) fn literal(text: &str) -> String {
    Value::from(text).to_string()
}

//! What is done on a page.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use serde_json::{Value, json};

use super::script::{Fault, literal};
use super::{Page, keys};
use crate::{Action, Ready, Rendering, Shot};

/// Time in which an element that is to be used must be there.
const APPEARS: Duration = Duration::from_secs(5);
/// Time that what an action or a round of scrolling began may take, on pages that are never quiet.
const SETTLES: Duration = Duration::from_secs(5);
/// Characters of a value that a step evaluated.
const VALUE: usize = 1_000_000;
/// Pixels of a picture, from above.
const HIGHEST: f64 = 16_384.0;
/// Rounds of scrolling without anything new after which the end is reached.
const ROUNDS_OF_NOTHING: u32 = 2;

/// What steps gave.
#[derive(Default)]
pub(super) struct Gains {
    pub(super) shots: Vec<Shot>,
    pub(super) values: Vec<String>,
    /// The step that is under way, from 1 on, if its end matters.
    pub(super) under_way: Option<usize>,
}

/// How steps ended before the last one.
pub(super) enum Stop {
    /// A step failed that must not.
    Failed { number: usize, reason: String },
    /// There is no page any more.
    Ended,
}

impl Page {
    /// Does all steps, one after the other.
    pub(super) async fn steps(&self, rendering: &Rendering, gains: &mut Gains) -> Result<(), Stop> {
        if !rendering.steps.is_empty() {
            // Each page is to think that it has the focus. Asked before there is a document, it ends the process.
            let focus = self.command("Emulation.setFocusEmulationEnabled", json!({"enabled": true})).await;
            focus.map_err(|_ended| Stop::Ended)?;
        }
        for (step, number) in rendering.steps.iter().zip(1..) {
            self.change(|state| {
                state.may_leave |= acts(&step.action);
                state.idle_since = std::time::Instant::now();
            });
            let matters =
                !step.is_optional && !matches!(step.action, Action::ScrollToEnd { .. } | Action::Sleep(_));
            gains.under_way = matters.then_some(number);
            let done = self.step(&step.action, gains).await;
            gains.under_way = None;
            match done {
                Ok(()) => {}
                Err(Fault::Ended) => return Err(Stop::Ended),
                Err(fault) if step.is_optional => {
                    self.state().note_line(
                        "step".to_owned(),
                        std::iter::once(format!("step {number}: {}", reason(fault))),
                    );
                }
                Err(fault) => return Err(Stop::Failed { number, reason: reason(fault) }),
            }
            if acts(&step.action) {
                self.settle(&rendering.ready).await.map_err(|_ended| Stop::Ended)?;
            }
        }
        Ok(())
    }

    async fn step(&self, action: &Action, gains: &mut Gains) -> Result<(), Fault> {
        match action {
            Action::WaitFor(ready) => self.ready(ready).await,
            Action::Click(selector) => self.on_element(selector, "click", "").await,
            Action::Fill { selector, text } => self.on_element(selector, "fill", text).await,
            Action::Select { selector, value } => self.on_element(selector, "select", value).await,
            Action::Press(name) => self.press(name).await,
            Action::Evaluate(expression) => {
                let value = match self.evaluate(expression).await {
                    // It went to another page.
                    Err(Fault::Gone) => Value::Null,
                    value => value?,
                };
                let text = value.to_string();
                if text.len() > VALUE {
                    return Err(Fault::Thrown(format!("its value has {} bytes", text.len())));
                }
                gains.values.push(text);
                Ok(())
            }
            Action::ScrollToEnd { rounds, until } => self.scroll(*rounds, until.as_deref()).await,
            Action::Screenshot { is_full } => {
                gains.shots.push(Shot::Png(self.picture(*is_full).await?));
                Ok(())
            }
            Action::Pdf => {
                gains
                    .shots
                    .push(Shot::Pdf(self.bytes("Page.printToPDF", json!({"printBackground": true})).await?));
                Ok(())
            }
            Action::Sleep(time) => {
                tokio::time::sleep(*time).await;
                Ok(())
            }
        }
    }

    /// Does something with the first element that a selector matches, when it is there.
    async fn on_element(&self, selector: &str, what: &str, value: &str) -> Result<(), Fault> {
        let there = Ready::Selector(selector.to_owned());
        tokio::select! {
            found = self.ready(&there) => found?,
            () = self.spent(APPEARS) => return Err(Fault::Thrown(format!("no element matches {selector}"))),
        }
        let expression = format!("huntsman.{what}({}, {})", literal(selector), literal(value));
        match self.act(&expression).await {
            // It went to another page.
            Ok(_) | Err(Fault::Gone) => Ok(()),
            Err(fault) => Err(fault),
        }
    }

    async fn press(&self, name: &str) -> Result<(), Fault> {
        let events = keys::events(name).ok_or_else(|| Fault::Thrown(format!("no key is named {name}")))?;
        for event in events {
            self.command("Input.dispatchKeyEvent", event).await?;
        }
        Ok(())
    }

    async fn scroll(&self, rounds: u32, until: Option<&str>) -> Result<(), Fault> {
        let until = until.map_or_else(|| "null".to_owned(), literal);
        let mut before = Value::Null;
        let mut nothing = 0;
        for _ in 0..rounds {
            let seen = self.look(&format!("huntsman.scroll({}, {until})", self.bytes)).await?;
            if seen[2] == true {
                return Ok(());
            }
            nothing = if seen == before { nothing + 1 } else { 0 };
            if nothing == ROUNDS_OF_NOTHING {
                return Ok(());
            }
            before = seen;
            self.change(|state| state.idle_since = std::time::Instant::now());
            self.settle(&Ready::Quiet).await?;
        }
        Ok(())
    }

    /// Waits until what an action began is done. Pages that need not be quiet to be ready get some time.
    async fn settle(&self, ready: &Ready) -> Result<(), Fault> {
        let limit = if *ready == Ready::Quiet { SETTLES } else { SETTLES / 5 };
        tokio::select! {
            quiet = self.quiet() => quiet,
            () = self.spent(limit) => Ok(()),
        }
    }

    async fn picture(&self, is_full: bool) -> Result<Bytes, Fault> {
        let mut params = json!({"format": "png", "captureBeyondViewport": is_full});
        if is_full {
            let metrics = self.command("Page.getLayoutMetrics", json!({})).await?;
            let size =
                |name: &str| metrics["cssContentSize"][name].as_f64().unwrap_or(1.0).clamp(1.0, HIGHEST);
            params["clip"] =
                json!({"x": 0, "y": 0, "width": size("width"), "height": size("height"), "scale": 1});
        }
        self.bytes("Page.captureScreenshot", params).await
    }

    async fn bytes(&self, method: &str, params: Value) -> Result<Bytes, Fault> {
        let result = self.command(method, params).await?;
        let data = result["data"].as_str().unwrap_or_default();
        BASE64.decode(data).map(Bytes::from).map_err(|error| Fault::Thrown(error.to_string()))
    }
}

/// Whether an action may begin something that the page then has to finish.
fn acts(action: &Action) -> bool {
    matches!(
        action,
        Action::Click(_)
            | Action::Fill { .. }
            | Action::Press(_)
            | Action::Select { .. }
            | Action::Evaluate(_)
    )
}

pub(super) fn reason(fault: Fault) -> String {
    match fault {
        Fault::Thrown(reason) => reason,
        Fault::Gone => "the document went away".to_owned(),
        Fault::Ended => "the page ended".to_owned(),
    }
}

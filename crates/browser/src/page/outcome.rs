//! From an address to what is delivered.

use std::time::Duration;

use serde_json::{Value, json};

use super::Page;
use super::script::Fault;
use super::steps::{Gains, Stop, reason};
use crate::connection::Failure;
use crate::process::Process;
use crate::{Error, Rendered, Rendering};

/// Time in which the tree must be read, and once more after the scripts of the page were ended.
const READS: Duration = Duration::from_secs(5);

/// Frames of a page that are read.
const MOST_FRAMES: usize = 50;

/// How a page came to its end.
enum End {
    Ready,
    /// Time or a bound ended it.
    Cut,
}

impl Page {
    /// Goes to an address, does what is to be done, and reads the tree.
    pub(super) async fn rendered(
        &self,
        url: &str,
        rendering: &Rendering,
        limit: Duration,
    ) -> Result<Rendered, Error> {
        let mut gains = Gains::default();
        let crash = || self.until(|state| state.crash.clone());
        let end = tokio::select! {
            biased;
            reason = crash() => return Err(Error::crashed(reason)),
            () = self.connection.ended() => return Err(Error::crashed("its process ended")),
            done = self.drive(url, rendering, &mut gains) => done?,
            () = self.until(|state| state.is_flood.then_some(())) => End::Cut,
            () = self.spent(limit) => End::Cut,
        };
        if let (End::Cut, Some(number)) = (&end, gains.under_way) {
            return Err(Error::Step {
                number,
                reason: "it was not done when the time of the page was over".to_owned(),
            });
        }
        let read = tokio::select! {
            biased;
            reason = crash() => return Err(Error::crashed(reason)),
            () = self.connection.ended() => return Err(Error::crashed("its process ended")),
            read = self.read() => read,
        };
        let state = self.state();
        let Some(document) = state.document.clone() else {
            return Err(match &state.refused {
                Some(reason) => Error::NoDocument { reason: reason.clone() },
                None => Error::Timeout { after: limit },
            });
        };
        let is_read = read.is_some();
        let (html, is_whole) =
            read.unwrap_or_else(|| (String::from_utf8_lossy(&document.body).into_owned(), false));
        let is_ready = matches!(end, End::Ready);
        tracing::debug!(url, is_ready, is_read, is_whole, "a page was rendered");
        Ok(Rendered {
            url: state.url.clone(),
            html,
            status: document.status,
            headers: document.headers,
            static_body: document.body,
            is_incomplete: !is_ready || !is_whole || state.is_cut,
            requests: state.requests.clone(),
            console: state.console.clone(),
            shots: gains.shots,
            values: gains.values,
            popups: state.popups.clone(),
            cookies: Vec::new(),
            refused_direct: state.refused_direct,
            took: self.begun.elapsed(),
        })
    }

    async fn drive(&self, url: &str, rendering: &Rendering, gains: &mut Gains) -> Result<End, Error> {
        self.change(|state| state.url = url.to_owned());
        // It answers when its process has carried out all that was asked before; otherwise no event would tell of the document.
        let answered = self.evaluate("0").await;
        if matches!(answered, Err(Fault::Ended)) {
            return Err(Error::crashed("the page is gone"));
        }
        let gone = self.connection.call(&self.session, "Page.navigate", json!({"url": url})).await;
        match gone {
            Ok(result) => {
                let failed = result["errorText"].as_str().filter(|text| !text.is_empty());
                if let Some(text) = failed {
                    let refused = self.state().refused.clone();
                    return Err(Error::NoDocument { reason: refused.unwrap_or_else(|| text.to_owned()) });
                }
            }
            Err(Failure::Refused(reason)) => return Err(Error::Invalid { reason }),
            Err(Failure::Ended) => return Err(Error::crashed("its process ended")),
        }
        match self.ready(&rendering.ready).await {
            Ok(()) => {}
            Err(Fault::Ended) => return Err(Error::crashed("the page is gone")),
            Err(fault) => return Err(Error::Invalid { reason: reason(fault) }),
        }
        match self.steps(rendering, gains).await {
            Ok(()) => Ok(End::Ready),
            Err(Stop::Failed { number, reason }) => Err(Error::Step { number, reason }),
            Err(Stop::Ended) => Err(Error::crashed("the page is gone")),
        }
    }

    /// The tree as HTML, and whether it is whole. A page whose scripts do not end is stopped first.
    async fn read(&self) -> Option<(String, bool)> {
        if let Ok(Some(read)) = tokio::time::timeout(READS, self.tree()).await {
            return Some(read);
        }
        let stops = [
            ("Emulation.setScriptExecutionDisabled", json!({"value": true})),
            ("Page.stopLoading", json!({})),
            ("Runtime.terminateExecution", json!({})),
        ];
        for (method, params) in stops {
            let _unread = self.connection.call(&self.session, method, params);
        }
        let (html, _) = tokio::time::timeout(READS, self.tree()).await.ok()??;
        Some((html, false))
    }

    async fn tree(&self) -> Option<(String, bool)> {
        let frames = self.command("Page.getFrameTree", json!({})).await.ok()?;
        let mut is_whole = true;
        for frame in frames_of_site(&frames["frameTree"]) {
            // A frame may go away meanwhile; then it is no part of the page.
            match self.put_frame(&frame).await {
                Ok(is_frame_whole) => is_whole &= is_frame_whole,
                Err(fault) => tracing::debug!(?fault, frame.url, "reading a frame"),
            }
        }
        let read = self.look(&format!("huntsman.html({})", self.bytes)).await;
        let mut read = read.inspect_err(|fault| tracing::debug!(?fault, "reading a tree")).ok()?;
        let Value::String(html) = read["html"].take() else { return None };
        Some((html, is_whole && read["isWhole"] == true))
    }

    /// Reads a frame, and puts it where its parent finds it. Whether it is whole.
    async fn put_frame(&self, frame: &Frame) -> Result<bool, Fault> {
        let world = self.world(&frame.id).await?;
        let mut read = self.run(&format!("huntsman.inner({})", self.bytes), Some(world)).await?;
        let owner = self.command("DOM.getFrameOwner", json!({"frameId": frame.id})).await?;
        let above = self.world(&frame.parent).await?;
        let node = json!({"backendNodeId": owner["backendNodeId"], "executionContextId": above.0});
        let element = self.command("DOM.resolveNode", node).await?;
        let put = json!({
            "objectId": element["object"]["objectId"],
            "functionDeclaration": "function (url, html) { huntsman.putFrame(this, url, html); }",
            "arguments": [{"value": frame.url}, {"value": read["html"].take()}],
        });
        self.command("Runtime.callFunctionOn", put).await?;
        Ok(read["isWhole"] == true)
    }

    /// Reads back the cookies that scripts set. In a session they are told once.
    pub(super) async fn with_cookies(
        &self,
        process: &Process,
        is_own: bool,
        mut rendered: Rendered,
    ) -> Result<Rendered, Error> {
        let found = process.call("Storage.getCookies", json!({"browserContextId": self.context})).await?;
        let cookies: Vec<&Value> = found["cookies"].as_array().into_iter().flatten().collect();
        let now = cookies.iter().map(|cookie| identity(cookie)).collect();
        let new = if is_own { now } else { process.new_cookies(&self.context, &now) };
        let given = self.state().given_cookies.clone();
        let of_scripts = cookies
            .into_iter()
            .filter(|cookie| is_of_script(cookie, &given) && new.contains(&identity(cookie)));
        rendered.cookies = of_scripts.map(line).collect();
        Ok(rendered)
    }

    /// The cookies that scripts set since this was asked before. The first time, before any script of the page ran, there are none.
    pub(super) async fn changed_cookies(&self) -> Vec<(String, String)> {
        let asked = json!({"browserContextId": self.context});
        let Ok(found) = self.connection.call("", "Storage.getCookies", asked).await else {
            return Vec::new();
        };
        let cookies = found["cookies"].as_array().map(Vec::as_slice).unwrap_or_default();
        let mut state = self.state();
        let Some(before) = state.cookies.replace(cookies.iter().map(identity).collect()) else {
            return Vec::new();
        };
        let of_scripts = cookies.iter().filter(|cookie| {
            is_of_script(cookie, &state.given_cookies) && !before.contains(&identity(cookie))
        });
        of_scripts.map(line).collect()
    }
}

/// Whether a script set a cookie, and no answer.
fn is_of_script(cookie: &Value, given: &[(String, String)]) -> bool {
    let is_given = given.iter().any(|(name, value)| cookie["name"] == **name && cookie["value"] == **value);
    cookie["httpOnly"] != true && !is_given
}

/// What makes a cookie another one: where it is of with its name, and its value.
fn identity(cookie: &Value) -> (String, String) {
    let text = |name: &str| cookie[name].as_str().unwrap_or_default();
    (format!("{}\0{}\0{}", text("domain"), text("path"), text("name")), text("value").to_owned())
}

/// A frame in a page.
struct Frame {
    id: String,
    parent: String,
    url: String,
}

/// Frames whose site is that of the page, each after those that it has in it.
fn frames_of_site(tree: &Value) -> Vec<Frame> {
    let site = &tree["frame"];
    let mut frames = Vec::new();
    let mut trees = vec![tree];
    while let Some(above) = trees.pop() {
        for inner in above["childFrames"].as_array().into_iter().flatten() {
            let text = |name: &str| inner["frame"][name].as_str().unwrap_or_default().to_owned();
            if frames.len() < MOST_FRAMES && is_of_site(&inner["frame"], site) {
                let parent = above["frame"]["id"].as_str().unwrap_or_default().to_owned();
                frames.push(Frame { id: text("id"), parent, url: text("url") });
                trees.push(inner);
            }
        }
    }
    // Those above were found first.
    frames.reverse();
    frames
}

/// Whether a frame is of a site. What a page writes into a frame is its own.
fn is_of_site(frame: &Value, site: &Value) -> bool {
    let domain = site["domainAndRegistry"].as_str().unwrap_or_default();
    frame["url"].as_str().is_some_and(|url| url.starts_with("about:"))
        || frame["securityOrigin"] == site["securityOrigin"]
        || !domain.is_empty() && frame["domainAndRegistry"] == domain
}

/// A cookie as a line of `Set-Cookie`, with the address that it is of.
fn line(cookie: &Value) -> (String, String) {
    let text = |name: &str| cookie[name].as_str().unwrap_or_default();
    let domain = text("domain");
    let is_secure = cookie["secure"] == true;
    let scheme = if is_secure || text("sourceScheme") == "Secure" { "https" } else { "http" };
    let port = match cookie["sourcePort"].as_u64() {
        Some(port @ 1..) if port != 80 && port != 443 => format!(":{port}"),
        _ => String::new(),
    };
    let url = format!("{scheme}://{}{port}/", domain.trim_start_matches('.'));
    let mut line = format!("{}={}; Path={}", text("name"), text("value"), text("path"));
    // A leading dot says that hosts below have it, too.
    if let Some(domain) = domain.strip_prefix('.') {
        line.push_str(&format!("; Domain={domain}"));
    }
    if is_secure {
        line.push_str("; Secure");
    }
    if let Some(same_site) = cookie["sameSite"].as_str() {
        line.push_str(&format!("; SameSite={same_site}"));
    }
    let expires = cookie["expires"].as_f64().unwrap_or(-1.0);
    if cookie["session"] != true && expires > 0.0 {
        let now = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap_or_default()
            .as_secs_f64();
        line.push_str(&format!("; Max-Age={}", (expires - now).max(0.0) as u64));
    }
    (url, line)
}

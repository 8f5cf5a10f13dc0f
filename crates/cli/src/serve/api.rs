//! The API: its shape is that of Earwig's Copyvio Detector, with some additions of our own.

use std::time::SystemTime;

use huntsman::Timestamp;
use huntsman::detect::copyvio::{Chain, Confidence, highlight_html};
use huntsman::sweep::MemoryPermit;
use serde_json::{Value, json};

use super::article::Named;
use super::checker::{Checker, Done, PASTED};
use super::order::{CompareOrder, SearchOrder};
use super::params::Params;
use super::refusal::Refusal;
use super::wiki::Wikis;
use crate::copyvio::Compared;

/// The format of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Json,
    /// An HTML page that shows the JSON to people.
    Page,
}

/// The action that a call of the API asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    Compare,
    Search,
    Sites,
}

impl Format {
    /// Reads `format`: `json` (the default) or `jsonfm`.
    ///
    /// # Errors
    /// `unknown_format`.
    pub(crate) fn read(params: &Params) -> Result<Self, Refusal> {
        match params.get("format").map(str::trim) {
            None | Some("json") => Ok(Self::Json),
            Some("jsonfm") => Ok(Self::Page),
            Some(other) => {
                Err(Refusal::new("unknown_format", format!("'{other}' is no format; use json or jsonfm")))
            }
        }
    }
}

impl Call {
    /// Reads `action`, of `version` 1.
    ///
    /// # Errors
    /// `unsupported_version`, `missing_action`, `unknown_action`.
    pub(crate) fn read(params: &Params) -> Result<Self, Refusal> {
        match params.get("version").map(str::trim) {
            None | Some("1") => {}
            Some(other) => {
                return Err(Refusal::new(
                    "unsupported_version",
                    format!("'{other}' is no version of the API; use 1"),
                ));
            }
        }
        match params.get("action").map(|action| action.trim().to_ascii_lowercase()).as_deref() {
            Some("compare") => Ok(Self::Compare),
            Some("search") => Ok(Self::Search),
            Some("sites") => Ok(Self::Sites),
            Some(other) => Err(Refusal::new(
                "unknown_action",
                format!("'{other}' is no action; use compare, search or sites"),
            )),
            None => Err(Refusal::new("missing_action", "'action' is compare, search or sites")),
        }
    }

    /// Carries out the action.
    ///
    /// # Errors
    /// Those of orders and of the checker.
    pub(crate) async fn answer(
        self,
        params: Params,
        checker: &Checker,
        wikis: &Wikis,
    ) -> Result<Told, Refusal> {
        let (done, has_detail) = match self {
            Call::Sites => {
                let (langs, projects) = (wikis.languages(), wikis.projects());
                return Ok(json!({"status": "ok", "langs": langs, "projects": projects}).into());
            }
            Call::Compare => {
                let order = CompareOrder::read(&params, wikis)?;
                // The parameters may be as large as the order, and the order may have to wait.
                drop(params);
                let has_detail = order.detail;
                (checker.compare(order).await?, has_detail)
            }
            Call::Search => {
                let order = SearchOrder::read(&params, wikis)?;
                drop(params);
                (checker.search(order, false).await?, false)
            }
        };
        let told = move || Told { value: ok(&done, has_detail), _room: done.room };
        tokio::task::spawn_blocking(told).await.map_err(Refusal::of_task)
    }
}

/// A response together with the memory reserved for it.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) value: Value,
    _room: Option<MemoryPermit>,
}

impl From<Value> for Told {
    fn from(value: Value) -> Self {
        Self { value, _room: None }
    }
}

/// The response for an error.
pub(crate) fn error(refusal: &Refusal) -> Value {
    json!({"status": "error", "error": {"code": refusal.code, "info": refusal.info}})
}

fn ok(done: &Done, has_detail: bool) -> Value {
    let checked = done.comparison.check.as_ref();
    let cached = checked.and_then(|checked| checked.cached);
    let mut meta = json!({
        "time": done.time.as_secs_f64(),
        "queries": checked.map_or(0, |checked| checked.queries),
        "cached": cached.is_some(),
        "redirected": done.article.original.is_some(),
    });
    if let Some(since) = cached.and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok()) {
        let micros = u64::try_from(since.as_micros()).unwrap_or(u64::MAX);
        meta["cache_time"] = json!(Timestamp(micros).to_rfc3339());
    }
    if let Some(checked) = checked {
        let errors = checked.errors.iter().map(|(by, error)| json!({"by": by, "error": error}));
        meta["possible_miss"] = json!(checked.possible_miss);
        meta["errors"] = errors.collect();
    }
    let mut out = json!({"status": "ok", "meta": meta, "page": named(&done.article.page)});
    if let Some(original) = &done.article.original {
        out["original_page"] = named(original);
    }
    let comparison = &done.comparison;
    out["best"] = match comparison.result.best() {
        Some(best) => {
            let is_pasted = best.url == PASTED;
            judged((!is_pasted).then_some(best.url.as_str()), best.confidence)
        }
        None => judged(None, Confidence::ZERO),
    };
    out["sources"] = comparison.sources.iter().map(source).collect();
    out["violation"] = json!(comparison.result.violation);
    out["unified_confidence"] = json!(comparison.result.unified.map(|confidence| confidence.value()));
    if has_detail {
        out["detail"] = detail(done);
    }
    out
}

fn named(page: &Named) -> Value {
    json!({"title": page.title, "url": page.url})
}

fn judged(url: Option<&str>, confidence: Confidence) -> Value {
    json!({"url": url, "confidence": confidence.value(), "violation": confidence.band().to_string()})
}

/// The source's data: the reference's five fields, then ours.
fn source(compared: &Compared) -> Value {
    let source = &compared.source;
    let is_pasted = source.url == PASTED;
    let mut out = judged((!is_pasted).then_some(source.url.as_str()), source.confidence);
    out["skipped"] = json!(source.status.is_skipped());
    out["excluded"] = json!(source.status.is_excluded());
    let Value::Object(mut ours) = compared.json() else { return out };
    for name in ["status", "reason", "evidence", "spans", "direction", "licence", "found_by"] {
        if let Some(value) = ours.get_mut(name) {
            out[name] = value.take();
        }
    }
    out
}

/// The texts of the article and of the best source, with the shared passages marked.
fn detail(done: &Done) -> Value {
    let text = done.comparison.sources.first().and_then(|best| best.found.as_ref()?.text.as_ref());
    let Some(source) = text else { return Value::Null };
    let article = done.comparison.article.exact();
    json!({
        "article": highlight_html(article, &Chain::of(source.exact(), done.degree)),
        "source": highlight_html(source.exact(), &Chain::of(article, done.degree)),
    })
}

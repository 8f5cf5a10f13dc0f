//! The API: its shape is that of Earwig's Copyvio Detector, with some additions of our own.

use std::time::SystemTime;

use huntsman_crawler::Timestamp;
use huntsman_detect::copyvio::{Chain, Confidence, highlight_html};
use huntsman_sweep::service::{NamedPage, OrderResult, PASTED, Refusal};
use huntsman_sweep::{Compared, MemoryPermit};
use serde_json::{Value, json};

use super::metrics::Action;
use super::order;
use super::params::Params;
use super::site::Service;

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
    pub(crate) async fn answer(self, params: Params, service: &Service) -> Result<ApiResponse, Refusal> {
        let (checker, wikis, telemetry) = (&service.checker, &service.wikis, &service.telemetry);
        let (result, has_detail) = match self {
            Call::Sites => {
                let (langs, projects) = (wikis.languages(), wikis.projects());
                return Ok(json!({"status": "ok", "langs": langs, "projects": projects}).into());
            }
            Call::Compare => {
                let order = order::compare(&params, wikis)?;
                let has_detail = params.flag("detail", false);
                // The parameters may be as large as the order, and the order may have to wait.
                drop(params);
                (telemetry.observe(Action::Compare, checker.compare(order)).await?, has_detail)
            }
            Call::Search => {
                let order = order::search(&params, wikis)?;
                drop(params);
                (telemetry.observe(Action::Search, checker.search(order, false)).await?, false)
            }
        };
        let response =
            move || ApiResponse { value: result_json(&result, has_detail), _memory: result.memory };
        tokio::task::spawn_blocking(response).await.map_err(Refusal::of_task)
    }
}

/// A response together with the memory reserved for it.
#[derive(Debug)]
pub(crate) struct ApiResponse {
    pub(crate) value: Value,
    _memory: Option<MemoryPermit>,
}

impl From<Value> for ApiResponse {
    fn from(value: Value) -> Self {
        Self { value, _memory: None }
    }
}

/// The response for an error.
pub(crate) fn error(refusal: &Refusal) -> Value {
    json!({"status": "error", "error": {"code": refusal.code, "info": refusal.info}})
}

fn result_json(result: &OrderResult, has_detail: bool) -> Value {
    let checked = result.comparison.check.as_ref();
    let cached = checked.and_then(|checked| checked.cached);
    let mut meta = json!({
        "time": result.time.as_secs_f64(),
        "queries": checked.map_or(0, |checked| checked.queries),
        "cached": cached.is_some(),
        "redirected": result.article.original.is_some(),
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
    let mut out = json!({"status": "ok", "meta": meta, "page": page_json(&result.article.page)});
    if let Some(original) = &result.article.original {
        out["original_page"] = page_json(original);
    }
    let comparison = &result.comparison;
    out["best"] = match comparison.result.best() {
        Some(best) => {
            let is_pasted = best.url == PASTED;
            confidence_json((!is_pasted).then_some(best.url.as_str()), best.confidence)
        }
        None => confidence_json(None, Confidence::ZERO),
    };
    out["sources"] = comparison.sources.iter().map(source_json).collect();
    out["violation"] = json!(comparison.result.violation);
    out["unified_confidence"] = json!(comparison.result.unified.map(|confidence| confidence.value()));
    if has_detail {
        out["detail"] = detail(result);
    }
    out
}

fn page_json(page: &NamedPage) -> Value {
    json!({"title": page.title, "url": page.url})
}

fn confidence_json(url: Option<&str>, confidence: Confidence) -> Value {
    json!({"url": url, "confidence": confidence.value(), "violation": confidence.band().to_string()})
}

/// The source's data: the reference's five fields, then ours.
fn source_json(compared: &Compared) -> Value {
    let source = &compared.source;
    let is_pasted = source.url == PASTED;
    let mut out = confidence_json((!is_pasted).then_some(source.url.as_str()), source.confidence);
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
fn detail(result: &OrderResult) -> Value {
    let text = result.comparison.sources.first().and_then(|best| best.found.as_ref()?.text.as_ref());
    let Some(source) = text else { return Value::Null };
    let article = result.comparison.article.exact();
    json!({
        "article": highlight_html(article, &Chain::of(source.exact(), result.degree)),
        "source": highlight_html(source.exact(), &Chain::of(article, result.degree)),
    })
}

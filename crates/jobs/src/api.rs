//! The API of the daemon, in the shape of scrapyd's.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, Request, State as From};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Response;
use axum::routing::{get, post};
use futures_util::future::join_all;
use huntsman_output::{CONTROL, ITEMS, REPORT};
use huntsman_serve::ActiveRequest;
use huntsman_serve::local::{ApiError, Json, LocalClient, body_of, query_value};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use crate::config::Config;
use crate::daemon::{Ask, Seen};
use crate::error::Refusal;
use crate::ledger::{Cancel, CancelStep, Job, State};
use crate::order::Order;
use crate::projects::Projects;
use crate::ranges;
use crate::result::Places;

/// Finished jobs in a list, if the request does not say how many.
const LIMIT: usize = 100;
/// Time in which a running crawl has to tell its numbers.
const NUMBERS_TIME: Duration = Duration::from_secs(2);

type Answer = Result<Json, ApiError>;

#[derive(Clone, Debug)]
pub(crate) struct Api {
    pub(crate) asks: mpsc::Sender<Ask>,
    pub(crate) projects: Arc<Projects>,
    pub(crate) config: Arc<Config>,
    pub(crate) places: Places,
}

pub(crate) fn routes(api: Api) -> Router {
    Router::new()
        .route("/daemonstatus.json", get(daemon_status))
        .route("/listprojects.json", get(list_projects))
        .route("/listspiders.json", get(list_spiders))
        .route("/listjobs.json", get(list_jobs))
        .route("/listschedules.json", get(list_schedules))
        .route("/status.json", get(status))
        .route("/schedule.json", post(schedule))
        .route("/cancel.json", post(cancel))
        .route("/control.json", post(control))
        .route("/logs/{job}", get(log))
        .route("/items/{job}", get(items))
        .route("/reports/{job}", get(report))
        .with_state(api)
}

impl std::convert::From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        let status = match refusal {
            Refusal::Wrong(_) => StatusCode::BAD_REQUEST,
            Refusal::Unknown(_) => StatusCode::NOT_FOUND,
            Refusal::NotNow(_) => StatusCode::SERVICE_UNAVAILABLE,
            Refusal::Failed(_) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self::new(status, refusal.to_string())
    }
}

impl Api {
    /// Asks the owner of the jobs.
    async fn ask<T>(&self, ask: impl FnOnce(oneshot::Sender<T>) -> Ask) -> Result<T, ApiError> {
        let gone = || ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "the daemon has ended");
        let (reply, answer) = oneshot::channel();
        self.asks.send(ask(reply)).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())
    }

    async fn see(&self) -> Result<Seen, ApiError> {
        self.ask(Ask::See).await
    }

    async fn job(&self, id: &str) -> Result<Job, ApiError> {
        let seen = self.see().await?;
        seen.ledger.job(id).cloned().ok_or_else(|| no_job(id))
    }

    /// A job for people and programs. A running one is asked for its numbers.
    async fn shown(&self, job: &Job) -> Value {
        let outcome = job.outcome.as_ref();
        let mut shown = json!({
            "id": job.id,
            "project": job.order.project,
            "spider": job.order.spider,
            "state": job.state,
            "priority": job.order.priority,
            "schedule": job.schedule,
            "created": job.created,
            "started": job.started,
            "ended": job.ended,
            "cancelled": job.cancel != Cancel::No,
            "deaths": job.deaths,
            "pages": outcome.and_then(|outcome| outcome.pages),
            "items": outcome.and_then(|outcome| outcome.items),
            "has_files": job.has_files,
        });
        if let Some(outcome) = outcome {
            shown["exit_code"] = json!(outcome.exit_code);
            shown["signal"] = json!(outcome.signal);
            shown["reason"] = json!(outcome.reason);
            shown["is_good"] = json!(job.is_good());
        }
        if job.state == State::Running {
            shown["pid"] = json!(job.process.as_ref().map(|process| process.pid));
            let asked = async { self.client(&job.id)?.get("/status").await.ok() };
            let numbers = timeout(NUMBERS_TIME, asked).await.ok().flatten();
            shown["has_control"] = json!(numbers.is_some());
            for key in ["pages", "items", "queued"] {
                shown[key] = numbers.as_ref().map_or(Value::Null, |numbers| numbers[key].clone());
            }
        }
        shown
    }

    /// The control of a running crawl; `None` if it has none, or none yet.
    fn client(&self, id: &str) -> Option<LocalClient> {
        LocalClient::of(&self.places.crawl(id).join(CONTROL)).ok()
    }

    async fn file(
        &self,
        id: &str,
        path: std::path::PathBuf,
        headers: &HeaderMap,
    ) -> Result<Response, ApiError> {
        // The id is looked up among the jobs, so no name from outside becomes part of a path.
        let job = self.job(id).await?;
        if job.state == State::Finished && !job.has_files {
            let gone = format!("job {id}: its directory is deleted, or it never ran; raise the limit `keep`");
            return Err(ApiError::new(StatusCode::GONE, gone));
        }
        ranges::answer(&path, headers).await
    }
}

fn no_job(id: &str) -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, format!("there is no job {id:?}; listjobs.json lists all"))
}

async fn daemon_status(From(api): From<Api>) -> Answer {
    let seen = api.see().await?;
    let ledger = &seen.ledger;
    Ok(Json(json!({
        "status": "ok",
        "state": if seen.is_stopping { "stopping" } else { "running" },
        "pending": ledger.count(State::Pending),
        "running": ledger.count(State::Running),
        "finished": ledger.count(State::Finished),
        "forgotten": ledger.forgotten,
        "max_proc": api.config.limits.max_proc,
        "per_spider": api.config.limits.per_spider,
        "pid": std::process::id(),
        "time": seen.now,
        "time_zone": api.config.zone_name,
        "version": env!("CARGO_PKG_VERSION"),
    })))
}

async fn list_projects(From(api): From<Api>) -> Json {
    Json(json!({ "status": "ok", "projects": api.projects.names().collect::<Vec<_>>() }))
}

async fn list_spiders(From(api): From<Api>, uri: Uri) -> Answer {
    let project =
        query_value(&uri, "project").ok_or_else(|| ApiError::bad("name a project: ?project=NAME"))?;
    Ok(Json(json!({ "status": "ok", "spiders": api.projects.spiders(&project).await? })))
}

async fn list_jobs(From(api): From<Api>, uri: Uri) -> Answer {
    let limit = match query_value(&uri, "limit") {
        None => LIMIT,
        Some(text) => text.parse().map_err(|_| ApiError::bad("limit: use a whole number"))?,
    };
    let wanted = |name: &str| query_value(&uri, name).filter(|value| !value.is_empty());
    let (project, spider) = (wanted("project"), wanted("spider"));
    let seen = api.see().await?;
    let fits = |job: &&Job| {
        project.as_ref().is_none_or(|project| *project == job.order.project)
            && spider.as_ref().is_none_or(|spider| *spider == job.order.spider)
    };
    let mut lists: BTreeMap<&str, Vec<&Job>> =
        ["pending", "running", "finished"].map(|name| (name, Vec::new())).into();
    for job in seen.ledger.jobs.iter().filter(fits) {
        let name = match job.state {
            State::Pending => "pending",
            State::Running => "running",
            State::Finished => "finished",
        };
        lists.entry(name).or_default().push(job);
    }
    let mut answer = json!({ "status": "ok", "finished_total": lists["finished"].len() });
    for (name, mut jobs) in lists {
        match name {
            // The order in which they start, as far as the limits of spiders allow.
            "pending" => jobs.sort_by_key(|job| std::cmp::Reverse(job.order.priority)),
            "finished" => {
                jobs.sort_by_key(|job| std::cmp::Reverse(job.ended));
                jobs.truncate(limit);
            }
            _ => {}
        }
        answer[name] = Value::Array(join_all(jobs.into_iter().map(|job| api.shown(job))).await);
    }
    Ok(Json(answer))
}

async fn list_schedules(From(api): From<Api>) -> Answer {
    let seen = api.see().await?;
    let lines = api.config.lines.iter().map(|line| {
        let state = seen.ledger.lines.get(&line.name);
        let next = state.and_then(|state| line.cron.next(state.last, &api.config.zone));
        json!({
            "name": line.name,
            "project": line.order.project,
            "spider": line.order.spider,
            "cron": line.cron.to_string(),
            "next": next,
            "left_out": state.map_or(0, |state| state.left_out),
        })
    });
    let lines: Vec<Value> = lines.collect();
    Ok(Json(json!({ "status": "ok", "time_zone": api.config.zone_name, "schedules": lines })))
}

async fn status(From(api): From<Api>, uri: Uri) -> Answer {
    let id = query_value(&uri, "job").ok_or_else(|| ApiError::bad("name a job: ?job=ID"))?;
    let job = api.job(&id).await?;
    let mut shown = api.shown(&job).await;
    shown["status"] = json!("ok");
    shown["args"] = json!(job.order.args);
    shown["settings"] = json!(job.order.settings);
    shown["directory"] = json!(api.places.job(&id).to_string_lossy());
    Ok(Json(shown))
}

async fn schedule(From(api): From<Api>, visit: ActiveRequest, request: Request) -> Answer {
    let order: Order = body_of(&visit, request).await?;
    api.projects.check(&order).await?;
    let id = api.ask(|reply| Ask::Schedule(order, reply)).await??;
    Ok(Json(json!({ "status": "ok", "jobid": id })))
}

#[derive(Deserialize)]
struct OneJob {
    job: String,
}

async fn cancel(From(api): From<Api>, visit: ActiveRequest, request: Request) -> Answer {
    let OneJob { job } = body_of(&visit, request).await?;
    let step = api.ask(|reply| Ask::Cancel(job, reply)).await??;
    let (before, does) = match step {
        CancelStep::LeftQueue => ("pending", "it has left the queue"),
        CancelStep::Ask => ("running", "it was asked to end; cancel it once more to kill it"),
        CancelStep::Kill => ("running", "it is killed"),
        CancelStep::HadEnded => ("finished", "it had ended"),
    };
    Ok(Json(json!({ "status": "ok", "prevstate": before, "message": does })))
}

/// A link to the page of a running crawl.
async fn control(From(api): From<Api>, visit: ActiveRequest, request: Request) -> Answer {
    let OneJob { job: id } = body_of(&visit, request).await?;
    api.job(&id).await?;
    let none = || {
        let why = format!("job {id} has no control now: it does not run, or has just begun");
        ApiError::new(StatusCode::NOT_FOUND, why)
    };
    let client = api.client(&id).ok_or_else(none)?;
    let link = timeout(NUMBERS_TIME, client.post("/link", &json!({}))).await;
    let link = link.ok().and_then(Result::ok).ok_or_else(none)?;
    Ok(Json(json!({ "status": "ok", "url": link["url"] })))
}

async fn log(From(api): From<Api>, Path(id): Path<String>, headers: HeaderMap) -> Result<Response, ApiError> {
    api.file(&id, api.places.log(&id), &headers).await
}

async fn items(
    From(api): From<Api>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    api.file(&id, api.places.crawl(&id).join(ITEMS), &headers).await
}

async fn report(
    From(api): From<Api>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    api.file(&id, api.places.crawl(&id).join(REPORT), &headers).await
}

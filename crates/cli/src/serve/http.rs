//! HTTP: connections with limits on everything that a client decides.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::order::MOST_TEXT;
use super::site::{Answer, Asked, Route, Service};

/// Connections at once; more wait in the backlog.
const CONNECTIONS: usize = 256;
/// Bytes of a request's head, its address included.
const MOST_HEAD: usize = 64 << 10;
/// Header lines of a request.
const MOST_HEADERS: usize = 100;
/// A head that does not come within this time ends its connection; so does a connection on which nothing is asked for so long.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// Time of a whole body.
const BODY_TIME: Duration = Duration::from_secs(30);
/// Two texts in the form in which a byte takes three.
const MOST_BODY: usize = 2 * 3 * MOST_TEXT + (1 << 20);
/// Bodies of all requests together.
const ALL_BODIES: usize = 64 << 20;
/// Memory of bodies is counted in pieces of so many bytes.
const PIECE: usize = 1 << 10;
/// What a connection may take beside the time of checks: for those who read answers slowly.
const LIFE: Duration = Duration::from_secs(300);
/// What is being answered may end within this time after the first signal.
pub(crate) const DRAIN: Duration = Duration::from_secs(15);

/// Answers until `stop` says so; what is being answered then may end.
pub(crate) async fn serve(
    listener: TcpListener,
    service: Service,
    check_time: Duration,
    mut stop: watch::Receiver<bool>,
) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let bodies = Arc::new(Semaphore::new(ALL_BODIES / PIECE));
    // Dropped with this future, which ends all connections.
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let accepted = async {
            let place = Arc::clone(&places).acquire_owned().await;
            (place, listener.accept().await)
        };
        let (place, accepted) = tokio::select! {
            accepted = accepted => accepted,
            _ = stop.wait_for(|stop| *stop) => break,
        };
        let Ok(place) = place else { break };
        match accepted {
            Ok((stream, _)) => {
                let connection = Conversation { service: service.clone(), bodies: Arc::clone(&bodies) };
                let (stop, life) = (stop.clone(), LIFE + 2 * check_time);
                connections.spawn(async move {
                    let _counted = connection.service.telemetry.connection();
                    connection.run(stream, stop, life).await;
                    drop(place);
                });
            }
            // Out of file descriptors, or the client is gone already: later, without spinning.
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
        while connections.try_join_next().is_some() {}
    }
    drop(listener);
    let all = async { while connections.join_next().await.is_some() {} };
    // Who is slower than that is cut off.
    let _ = tokio::time::timeout(DRAIN, all).await;
}

/// A connection.
#[derive(Clone)]
struct Conversation {
    service: Service,
    bodies: Arc<Semaphore>,
}

impl Conversation {
    async fn run(self, stream: TcpStream, mut stop: watch::Receiver<bool>, life: Duration) {
        let _ = stream.set_nodelay(true);
        let service = service_fn(|request| {
            let conversation = self.clone();
            async move { Ok::<_, Infallible>(conversation.respond(request).await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIME)
            .max_headers(MOST_HEADERS)
            .max_buf_size(MOST_HEAD)
            .serve_connection(TokioIo::new(stream), service);
        let mut connection = pin!(connection);
        let mut end = pin!(tokio::time::sleep(life));
        let mut is_stopping = false;
        loop {
            tokio::select! {
                // A client that breaks off is its own affair.
                _ = connection.as_mut() => return,
                () = end.as_mut() => return,
                _ = stop.wait_for(|stop| *stop), if !is_stopping => {
                    is_stopping = true;
                    connection.as_mut().graceful_shutdown();
                }
            }
        }
    }

    async fn respond(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let (head, body) = request.into_parts();
        let asked = Asked { method: head.method, uri: head.uri, headers: head.headers };
        let route = Route::of(asked.uri.path());
        let answer = match self.service.before_body(&asked) {
            Some(answer) => answer,
            None => match tokio::time::timeout(BODY_TIME, self.read(body)).await {
                Ok(Ok((body, _room))) => self.service.answer(asked, body).await,
                Ok(Err(refusal)) => refusal,
                Err(_) => Answer::text(408, "the body came too slowly\n"),
            },
        };
        self.service.telemetry.answered(route.name(), answer.status);
        response(answer.closed())
    }

    /// A body, and the room that it takes until it is dropped.
    async fn read(&self, mut body: Incoming) -> Result<(Vec<u8>, Option<OwnedSemaphorePermit>), Answer> {
        let too_large = || Answer::text(413, format!("a body has at most {MOST_BODY} bytes\n"));
        if body.size_hint().lower() > MOST_BODY as u64 {
            return Err(too_large());
        }
        let mut bytes: Vec<u8> = Vec::new();
        let mut room: Option<OwnedSemaphorePermit> = None;
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame else { return Err(Answer::text(400, "the body is broken\n")) };
            let Some(data) = frame.data_ref() else { continue };
            if bytes.len() + data.len() > MOST_BODY {
                return Err(too_large());
            }
            // Room for what came, not for what was announced: that costs a client nothing.
            let missing = (bytes.len() + data.len()).div_ceil(PIECE) - bytes.len().div_ceil(PIECE);
            if missing > 0 {
                let more = Arc::clone(&self.bodies)
                    .try_acquire_many_owned(u32::try_from(missing).unwrap_or(u32::MAX));
                let more =
                    more.map_err(|_| Answer::text(503, "too many bodies at once; come again in a minute\n"))?;
                match &mut room {
                    Some(room) => room.merge(more),
                    None => room = Some(more),
                }
            }
            bytes.extend_from_slice(data);
        }
        Ok((bytes, room))
    }
}

fn response(answer: Answer) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(answer.body)));
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    for (name, value) in answer.headers {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

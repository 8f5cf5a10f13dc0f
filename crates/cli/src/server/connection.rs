//! A connection: one request after the other, each with its time.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, RETRY_AFTER};
use http::{HeaderValue, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

use super::Site;
use super::answer::{Answer, Asked};
use super::places::Place;
use super::stream::Guarded;

/// Bytes of a request's head, its address included.
const MOST_HEAD: usize = 64 << 10;
/// Header lines of a request.
const MOST_HEADERS: usize = 100;
/// A head that does not come within this time ends its connection; so does a connection on which nothing is asked for so long.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// Time of a whole body.
const BODY_TIME: Duration = Duration::from_secs(30);

/// Answers what is asked on a connection, as long as it has its place.
pub(super) async fn converse<T>(stream: T, site: impl Site, place: Place, mut stop: watch::Receiver<bool>)
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let place = Arc::new(place);
    let is_sending = Arc::<AtomicBool>::default();
    let service = service_fn(|request| {
        let visit = Visit { place: Arc::clone(&place), body: None };
        let (site, is_sending) = (site.clone(), Arc::clone(&is_sending));
        async move { Ok::<_, Infallible>(respond(&site, request, visit, &is_sending).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_headers(MOST_HEADERS)
        .max_buf_size(MOST_HEAD)
        .title_case_headers(true)
        .serve_connection(TokioIo::new(Guarded::new(stream, Arc::clone(&is_sending))), service);
    let mut connection = pin!(connection);
    let mut is_stopping = false;
    loop {
        tokio::select! {
            // A client that breaks off is its own affair.
            _ = connection.as_mut() => return,
            () = place.lost() => return,
            _ = stop.wait_for(|stop| *stop), if !is_stopping => {
                is_stopping = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    }
}

async fn respond(
    site: &impl Site,
    request: Request<Incoming>,
    mut visit: Visit,
    is_sending: &AtomicBool,
) -> Response<Full<Bytes>> {
    let (head, body) = request.into_parts();
    visit.place.begin();
    visit.body = (!body.is_end_stream()).then_some(body);
    let asked = Asked { method: head.method, uri: head.uri, headers: head.headers };
    let mut response = site.answer(asked, &mut visit).await.into_response();
    visit.place.shrink();
    if visit.has_body() {
        // Nothing else can be asked behind a body that nobody reads.
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        is_sending.store(true, Ordering::Relaxed);
    }
    response
}

/// A request while it is answered.
#[derive(Debug)]
pub(crate) struct Visit {
    place: Arc<Place>,
    body: Option<Incoming>,
}

impl Visit {
    /// Whether there is a body that was not read to its end.
    pub(crate) fn has_body(&self) -> bool {
        self.body.is_some()
    }

    /// The request may be answered, whatever it costs: its connection and its body are not given up for newcomers any more.
    ///
    /// # Errors
    /// There are too many of them.
    pub(crate) fn let_in(&self) -> Result<(), Answer> {
        self.place.let_in().then_some(()).ok_or_else(|| busy("too many requests at once"))
    }

    /// The body; empty if there is none. It takes room until it was answered.
    ///
    /// # Errors
    /// What is answered to one that is larger than `most`, too slow or broken, or for which there is no room.
    pub(crate) async fn body(&mut self, most: usize) -> Result<Vec<u8>, Answer> {
        let Some(body) = &mut self.body else { return Ok(Vec::new()) };
        let read = tokio::time::timeout(BODY_TIME, read(body, &self.place, most)).await;
        let bytes = read.unwrap_or_else(|_| Err(Answer::text(408, "the body came too slowly\n")))?;
        self.body = None;
        Ok(bytes)
    }
}

async fn read(body: &mut Incoming, place: &Place, most: usize) -> Result<Vec<u8>, Answer> {
    let too_large = || Answer::text(413, format!("a body has at most {most} bytes\n"));
    if body.size_hint().lower() > most as u64 {
        return Err(too_large());
    }
    let mut bytes: Vec<u8> = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { return Err(Answer::text(400, "the body is broken\n")) };
        let Some(data) = frame.data_ref() else { continue };
        if bytes.len() + data.len() > most {
            return Err(too_large());
        }
        let before = bytes.capacity();
        bytes.reserve(data.len());
        // Room for what came, not for what was announced: that costs a client nothing.
        if !place.grow(bytes.capacity() - before) {
            return Err(busy("too many bodies at once"));
        }
        bytes.extend_from_slice(data);
    }
    Ok(bytes)
}

fn busy(what: &str) -> Answer {
    Answer::text(503, format!("{what}; come again in a minute\n")).with(RETRY_AFTER, "30")
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
    use tokio::time::Instant;

    use super::super::places::{Limits, Places};
    use super::*;

    /// Lets a request in that has the header `Authorization`, reads the body of the others with a `Content-Type`, and says how long it was.
    #[derive(Clone)]
    struct Lengths;

    impl Site for Lengths {
        type Connection = ();

        fn connection(&self) {}

        async fn answer(&self, asked: Asked, visit: &mut Visit) -> Answer {
            let knows = asked.headers.contains_key("authorization");
            if !knows && !asked.headers.contains_key("content-type") {
                return Answer::text(401, "no\n");
            }
            if knows && let Err(answer) = visit.let_in() {
                return answer;
            }
            match visit.body(1_000).await {
                Ok(body) => Answer::text(200, body.len().to_string()),
                Err(answer) => answer,
            }
        }
    }

    struct House {
        places: Places,
        _running: watch::Sender<bool>,
        stop: watch::Receiver<bool>,
    }

    impl House {
        fn new(connections: usize, bodies: usize) -> Self {
            let (_running, stop) = watch::channel(false);
            Self { places: Places::new(Limits { connections, reserved: 1, bodies }), _running, stop }
        }

        fn connect(&self) -> DuplexStream {
            let (ours, theirs) = tokio::io::duplex(1 << 10);
            let place = self.places.enter(Ipv4Addr::LOCALHOST.into());
            tokio::spawn(converse(theirs, Lengths, place, self.stop.clone()));
            ours
        }

        async fn send(&self, request: &str) -> DuplexStream {
            let mut stream = self.connect();
            stream.write_all(request.as_bytes()).await.unwrap();
            stream
        }

        /// The status of the answer, and after how many seconds the connection was closed.
        async fn ask(&self, request: &str) -> (String, u64) {
            let start = Instant::now();
            (status(self.send(request).await).await, start.elapsed().as_secs())
        }
    }

    async fn status(mut stream: DuplexStream) -> String {
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        String::from_utf8(answer).unwrap().split(' ').nth(1).unwrap_or_default().to_owned()
    }

    fn request(headers: &str, body: &str) -> String {
        format!("POST / HTTP/1.1\r\nConnection: close\r\n{headers}\r\n{body}")
    }

    const FORM: &str = "Content-Type: x\r\nContent-Length: 900\r\n";
    const KNOWN: &str = "Authorization: x\r\nContent-Length: 900\r\n";

    #[tokio::test(start_paused = true)]
    async fn a_body_is_not_waited_for_if_the_head_says_enough() {
        let house = House::new(9, 10_000);
        let mut stream = house.send(&request("Content-Length: 900\r\n", "abc")).await;
        let start = Instant::now();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!((&answer, start.elapsed()), (b"HTTP/1.1 401", Duration::ZERO));
        assert_eq!(house.ask(&request(KNOWN, &"a".repeat(900))).await, ("200".to_owned(), 0));
    }

    #[tokio::test(start_paused = true)]
    async fn heads_and_bodies_that_do_not_come_end_by_their_deadlines() {
        let house = House::new(9, 10_000);
        assert_eq!(house.ask("POST / HTTP/1.1\r\nX: ").await.1, HEAD_TIME.as_secs());
        for head in [FORM, KNOWN] {
            let (status, seconds) = house.ask(&request(head, "abc")).await;
            assert_eq!((status.as_str(), seconds), ("408", BODY_TIME.as_secs()));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn bodies_without_an_end_cost_no_one_else_the_room() {
        let house = House::new(30, 4_000);
        let mut open = Vec::new();
        for _ in 0..20 {
            open.push(house.send(&request(FORM, &"a".repeat(800))).await);
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        for head in [FORM, KNOWN] {
            assert_eq!(house.ask(&request(head, &"a".repeat(900))).await, ("200".to_owned(), 0));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn clients_that_pipeline_and_do_not_read_are_closed_and_hold_nobody_up() {
        let house = House::new(4, 10_000);
        let start = Instant::now();
        let mut open = Vec::new();
        for _ in 0..4 {
            let mut stream = house.connect();
            let many = "GET / HTTP/1.1\r\n\r\n".repeat(2_000);
            open.push(tokio::spawn(async move {
                // All of it is never taken.
                let sent = stream.write_all(many.as_bytes()).await;
                (sent.is_err(), stream)
            }));
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(house.ask(&request(KNOWN, &"a".repeat(900))).await, ("200".to_owned(), 0));
        for sent in open {
            assert!(sent.await.unwrap().0);
        }
        assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn requests_that_were_let_in_are_bounded_and_told_to_come_again() {
        let house = House::new(3, 10_000);
        let open = [house.send(&request(KNOWN, "abc")).await, house.send(&request(KNOWN, "abc")).await];
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(house.ask(&request(KNOWN, "")).await.0, "503");
        assert_eq!(house.ask(&request("", "")).await.0, "401");
        drop(open);
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(house.ask(&request(KNOWN, &"a".repeat(900))).await.0, "200");
    }
}

//! The HTTP/1.1 server of this program: for `serve`, `--metrics`, the demo forum and the bench site.
//!
//! Whatever a client decides is bounded: connections, heads, bodies, the time of all of them, and how slowly answers are read. What a
//! site answers, and whom it knows, is its own business. No TLS.

mod answer;
mod connection;
mod names;
mod places;
mod stream;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;

pub(crate) use answer::{Answer, Asked};
pub(crate) use connection::Visit;
pub(crate) use names::Names;
pub(crate) use places::Limits;

use connection::converse;
use places::Places;

/// What is being answered may end within this time after the server was told to stop.
pub(crate) const DRAIN: Duration = Duration::from_secs(15);

/// What answers requests.
pub(crate) trait Site: Clone + Send + Sync + 'static {
    /// Answers a request, of which the head is there. A panic costs the connection.
    fn answer(&self, asked: Asked, visit: &mut Visit) -> impl Future<Output = Answer> + Send;

    /// What a connection has as long as it is open.
    type Connection: Send + 'static;

    /// A connection was opened.
    fn connection(&self) -> Self::Connection;
}

/// Answers until `stop` says so; what is being answered then may end.
pub(crate) async fn serve(
    listener: TcpListener,
    site: impl Site,
    limits: Limits,
    mut stop: watch::Receiver<bool>,
) {
    let places = Places::new(limits);
    // Dropped with this future, which ends all connections.
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.wait_for(|stop| *stop) => break,
        };
        match accepted {
            Ok((stream, peer)) => {
                let _ = stream.set_nodelay(true);
                let (site, place, stop) = (site.clone(), places.enter(peer.ip()), stop.clone());
                connections.spawn(async move {
                    let _counted = site.connection();
                    converse(stream, site, place, stop).await;
                });
            }
            // Out of file descriptors, or the client is gone already: later, without spinning.
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
        while connections.try_join_next().is_some() {}
    }
    drop(listener);
    let all = async { while connections.join_next().await.is_some() {} };
    // A client that is slower than that is cut off.
    let _ = tokio::time::timeout(DRAIN, all).await;
}

/// Answers GET and HEAD with pages that need nothing but the head, until it is dropped.
pub(crate) async fn serve_pages<F>(
    listener: TcpListener,
    limits: Limits,
    answer: impl Fn(&Asked) -> F + Send + Sync + 'static,
) where
    F: Future<Output = Answer> + Send + 'static,
{
    let (_running, stop) = watch::channel(false);
    serve(listener, Pages(Arc::new(answer)), limits, stop).await;
}

/// A site whose answers need nothing but the head.
struct Pages<A>(Arc<A>);

impl<A> Clone for Pages<A> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<A, F> Site for Pages<A>
where
    A: Fn(&Asked) -> F + Send + Sync + 'static,
    F: Future<Output = Answer> + Send + 'static,
{
    type Connection = ();

    fn connection(&self) {}

    async fn answer(&self, asked: Asked, _: &mut Visit) -> Answer {
        if !matches!(asked.method.as_str(), "GET" | "HEAD") {
            return Answer::text(405, "GET and HEAD only\n");
        }
        let answer = (self.0)(&asked);
        answer.await
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    use super::*;

    async fn exchange(requests: &[u8]) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(serve_pages(listener, Limits::default(), |asked| {
            std::future::ready(Answer::text(200, asked.uri.to_string()))
        }));
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(requests).await.unwrap();
        let mut got = String::new();
        stream.read_to_string(&mut got).await.unwrap();
        server.abort();
        got
    }

    #[tokio::test]
    async fn requests_in_a_row_are_answered_in_order() {
        let got = exchange(b"GET /1 HTTP/1.1\r\n\r\nHEAD /22 HTTP/1.1\r\n\r\nGET /3 HTTP/1.0\r\n\r\n").await;
        let bodies: Vec<&str> = got.split("\r\n\r\n").collect();
        assert!(bodies[1].starts_with("/1HTTP/1.1 200"), "{got}");
        assert!(bodies[1].contains("Content-Length: 3") && bodies[2].starts_with("HTTP/1.0 200"), "{got}");
        assert_eq!(bodies[3], "/3");
    }

    #[tokio::test]
    async fn an_endless_head_is_refused() {
        let mut request = b"GET / HTTP/1.1\r\nX: ".to_vec();
        request.resize(64 << 10, b'a');
        assert!(exchange(&request).await.starts_with("HTTP/1.1 431"));
    }

    #[tokio::test]
    async fn other_methods_and_what_is_no_request_are_refused() {
        assert!(
            exchange(b"DELETE / HTTP/1.1\r\nConnection: close\r\n\r\n").await.starts_with("HTTP/1.1 405")
        );
        assert!(exchange(b"nonsense\r\n\r\n").await.starts_with("HTTP/1.1 400"));
    }
}

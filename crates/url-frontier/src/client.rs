//! One connection to the server, and the calls that are made over it.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::stream;
use http::Uri;
use http::uri::PathAndQuery;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use tokio::net::TcpStream;
use tonic::body::Body;
use tonic::client::Grpc;
use tonic::{Request, Status, Streaming};
use tonic_prost::ProstCodec;

use crate::message::{
    AckMessage, BatchAck, BlockQueueParams, DiscoveredBatch, Empty, GetParams, QueueDelayParams,
    QueueWithinCrawlParams, Stats, UrlInfo, UrlItem,
};
use crate::settings::UrlFrontierSettings;

/// The most bytes of one message that is read. Other crawlers decide what they keep with a URL.
const MAX_MESSAGE: usize = 16 << 20;

/// The calls over one connection. Clones use the same connection.
#[derive(Clone)]
pub(crate) struct Client {
    grpc: Grpc<Connection>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

impl Client {
    /// Connects to the server. A task keeps the connection, which ends with the last clone.
    pub(crate) async fn connect(settings: &UrlFrontierSettings) -> io::Result<Self> {
        let stream = TcpStream::connect(settings.authority()).await?;
        stream.set_nodelay(true)?;
        let handshake = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
        let (sender, connection) = handshake.map_err(io::Error::other)?;
        // How the connection ended is told by the calls that it takes with it.
        tokio::spawn(async move { drop(connection.await) });
        let origin = format!("http://{}", settings.authority()).parse::<Uri>().map_err(io::Error::other)?;
        let grpc = Grpc::with_origin(Connection(sender), origin).max_decoding_message_size(MAX_MESSAGE);
        Ok(Self { grpc })
    }

    async fn ready(&mut self) -> Result<(), Status> {
        self.grpc.ready().await.map_err(|error| Status::unavailable(error.to_string()))
    }

    async fn unary<M, R>(&mut self, method: &'static str, message: M) -> Result<R, Status>
    where
        M: Message + 'static,
        R: Message + Default + 'static,
    {
        self.ready().await?;
        let path = PathAndQuery::from_static(method);
        let codec = ProstCodec::<M, R>::default();
        Ok(self.grpc.unary(Request::new(message), path, codec).await?.into_inner())
    }

    /// Sends messages and reads all replies.
    async fn exchange<M, R>(&mut self, method: &'static str, messages: Vec<M>) -> Result<Vec<R>, Status>
    where
        M: Message + 'static,
        R: Message + Default + 'static,
    {
        self.ready().await?;
        let path = PathAndQuery::from_static(method);
        let codec = ProstCodec::<M, R>::default();
        let sent = Request::new(stream::iter(messages));
        all(self.grpc.streaming(sent, path, codec).await?.into_inner()).await
    }

    /// Takes URLs from the queues.
    pub(crate) async fn get_urls(&mut self, asked: GetParams) -> Result<Vec<UrlInfo>, Status> {
        self.ready().await?;
        let path = PathAndQuery::from_static("/urlfrontier.URLFrontier/GetURLs");
        let codec = ProstCodec::<GetParams, UrlInfo>::default();
        all(self.grpc.server_streaming(Request::new(asked), path, codec).await?.into_inner()).await
    }

    /// Stores URLs, or tells what became of them.
    pub(crate) async fn put_urls(&mut self, items: Vec<UrlItem>) -> Result<Vec<AckMessage>, Status> {
        self.exchange("/urlfrontier.URLFrontier/PutURLs", items).await
    }

    /// Stores URLs that were found.
    pub(crate) async fn put_discovered(&mut self, batch: DiscoveredBatch) -> Result<Vec<BatchAck>, Status> {
        self.exchange("/urlfrontier.URLFrontier/PutDiscovered", vec![batch]).await
    }

    /// Sets the least number of seconds between two servings of a queue.
    pub(crate) async fn set_delay(&mut self, delay: QueueDelayParams) -> Result<(), Status> {
        self.unary::<_, Empty>("/urlfrontier.URLFrontier/SetDelay", delay).await.map(drop)
    }

    /// Keeps a queue from being served until a time.
    pub(crate) async fn block(&mut self, block: BlockQueueParams) -> Result<(), Status> {
        self.unary::<_, Empty>("/urlfrontier.URLFrontier/BlockQueueUntil", block).await.map(drop)
    }

    /// The numbers of a crawl.
    pub(crate) async fn stats(&mut self, queue: QueueWithinCrawlParams) -> Result<Stats, Status> {
        self.unary("/urlfrontier.URLFrontier/GetStats", queue).await
    }
}

async fn all<R>(mut replies: Streaming<R>) -> Result<Vec<R>, Status> {
    let mut all = Vec::new();
    while let Some(reply) = replies.message().await? {
        all.push(reply);
    }
    Ok(all)
}

/// A connection as a service, which is what makes the calls.
#[derive(Clone)]
struct Connection(http2::SendRequest<Body>);

impl tower_service::Service<http::Request<Body>> for Connection {
    type Response = http::Response<hyper::body::Incoming>;
    type Error = hyper::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), hyper::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        Box::pin(self.0.send_request(request))
    }
}

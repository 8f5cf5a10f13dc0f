//! The calls of the server.

use std::convert::Infallible;
use std::sync::Arc;

use futures_util::{StreamExt, TryStreamExt, stream};
use hyper::body::Incoming;
use tonic::body::Body;
use tonic::server::Grpc;
use tonic::{Request, Response, Status, Streaming};
use tonic_prost::ProstCodec;
use tower::service_fn;

use super::Shared;
use crate::message::{
    AckMessage, BatchAck, BlockQueueParams, DiscoveredBatch, DiscoveredUrlItem, Empty, GetParams, Item,
    QueueDelayParams, QueueWithinCrawlParams, Stats, Status as Stored, UrlInfo, UrlItem,
};

impl Shared {
    fn put(&self, item: Option<Item>) -> i32 {
        let stored = match item {
            _ if self.fails() => Stored::Fail,
            Some(item) => {
                let now = self.now();
                self.queues().put(item, now)
            }
            None => Stored::Skipped,
        };
        stored.into()
    }
}

/// Answers one call.
pub(super) async fn answer(
    shared: Arc<Shared>,
    request: http::Request<Incoming>,
) -> Result<http::Response<Body>, Infallible> {
    let path = request.uri().path().to_owned();
    let method = path.strip_prefix("/urlfrontier.URLFrontier/").unwrap_or_default();
    shared.called(method);
    Ok(match method {
        "GetURLs" => {
            let service = service_fn(move |asked: Request<GetParams>| {
                let now = shared.now();
                let served = shared.queues().serve(asked.get_ref(), now, shared.keeps_pauses());
                async move { Ok::<_, Status>(Response::new(stream::iter(served).map(Ok::<UrlInfo, Status>))) }
            });
            let codec = ProstCodec::<UrlInfo, GetParams>::default();
            Grpc::new(codec).server_streaming(service, request).await
        }
        "PutURLs" => {
            let service = service_fn(move |items: Request<Streaming<UrlItem>>| {
                let shared = Arc::clone(&shared);
                let acks = items
                    .into_inner()
                    .map_ok(move |item| AckMessage { status: shared.put(item.item), id: item.id });
                async move { Ok::<_, Status>(Response::new(acks)) }
            });
            let codec = ProstCodec::<AckMessage, UrlItem>::default();
            Grpc::new(codec).streaming(service, request).await
        }
        "PutDiscovered" if shared.knows_batches() => {
            let service = service_fn(move |batches: Request<Streaming<DiscoveredBatch>>| {
                let shared = Arc::clone(&shared);
                let acks = batches.into_inner().map_ok(move |batch| {
                    let found = |info| Some(Item::Discovered(DiscoveredUrlItem { info: Some(info) }));
                    let statuses = batch.items.into_iter().map(|info| shared.put(found(info))).collect();
                    BatchAck { id: batch.id, statuses }
                });
                async move { Ok::<_, Status>(Response::new(acks)) }
            });
            let codec = ProstCodec::<BatchAck, DiscoveredBatch>::default();
            Grpc::new(codec).streaming(service, request).await
        }
        "SetDelay" => {
            let service = service_fn(move |delay: Request<QueueDelayParams>| {
                let QueueDelayParams { key, delay_requestable, crawl_id } = delay.into_inner();
                shared.queues().set_delay(crawl_id, key, delay_requestable);
                async { Ok::<_, Status>(Response::new(Empty {})) }
            });
            Grpc::new(ProstCodec::<Empty, QueueDelayParams>::default()).unary(service, request).await
        }
        "BlockQueueUntil" => {
            let service = service_fn(move |block: Request<BlockQueueParams>| {
                let BlockQueueParams { key, time, crawl_id } = block.into_inner();
                shared.queues().block(crawl_id, key, time);
                async { Ok::<_, Status>(Response::new(Empty {})) }
            });
            Grpc::new(ProstCodec::<Empty, BlockQueueParams>::default()).unary(service, request).await
        }
        "GetStats" => {
            let service = service_fn(move |asked: Request<QueueWithinCrawlParams>| {
                let now = shared.now();
                let stats: Stats = shared.queues().stats(&asked.get_ref().crawl_id, now);
                async move { Ok::<_, Status>(Response::new(stats)) }
            });
            Grpc::new(ProstCodec::<Stats, QueueWithinCrawlParams>::default()).unary(service, request).await
        }
        _ => Status::unimplemented(format!("this server does not know {path}")).into_http(),
    })
}

//! The messages of the URLFrontier protocol that a crawler sends and receives: names and numbers of fields are those of version 2 of its
//! definition (package `urlfrontier`).
//!
//! Protocol buffers skip fields that they do not know, so a field that this crate has no use for is left out.

use std::collections::BTreeMap;

/// What `GetURLs` asks for.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct GetParams {
    /// The most URLs of one queue; 0 is no limit.
    #[prost(uint32, tag = "1")]
    pub(crate) max_urls_per_queue: u32,
    /// The most queues; 0 is no limit.
    #[prost(uint32, tag = "2")]
    pub(crate) max_queues: u32,
    /// The only queue, if it is not empty.
    #[prost(string, tag = "3")]
    pub(crate) key: String,
    /// Seconds for which the URLs are not served again.
    #[prost(uint32, tag = "4")]
    pub(crate) delay_requestable: u32,
    /// The crawl. It is one of two alternatives, the other of which is all crawls.
    #[prost(string, optional, tag = "6")]
    pub(crate) crawl_id: Option<String>,
}

/// A URL in a queue.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct UrlInfo {
    #[prost(string, tag = "1")]
    pub(crate) url: String,
    /// The queue.
    #[prost(string, tag = "2")]
    pub(crate) key: String,
    /// What crawlers keep with the URL.
    #[prost(btree_map = "string, message", tag = "3")]
    pub(crate) metadata: BTreeMap<String, StringList>,
    #[prost(string, tag = "4")]
    pub(crate) crawl_id: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct StringList {
    #[prost(string, repeated, tag = "1")]
    pub(crate) values: Vec<String>,
}

/// A URL that was found, or one that was served before.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct UrlItem {
    #[prost(oneof = "Item", tags = "1, 2")]
    pub(crate) item: Option<Item>,
    /// Names the item in its acknowledgement.
    #[prost(string, tag = "3")]
    pub(crate) id: String,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub(crate) enum Item {
    #[prost(message, tag = "1")]
    Discovered(DiscoveredUrlItem),
    #[prost(message, tag = "2")]
    Known(KnownUrlItem),
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct DiscoveredUrlItem {
    #[prost(message, optional, tag = "1")]
    pub(crate) info: Option<UrlInfo>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct KnownUrlItem {
    #[prost(message, optional, tag = "1")]
    pub(crate) info: Option<UrlInfo>,
    /// Seconds since 1970; with 0 the URL is done.
    #[prost(uint64, tag = "2")]
    pub(crate) refetchable_from_date: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct AckMessage {
    #[prost(string, tag = "1")]
    pub(crate) id: String,
    #[prost(enumeration = "Status", tag = "2")]
    pub(crate) status: i32,
}

/// What became of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum Status {
    Ok = 0,
    /// A URL that was said to be found is known, or something about it is wrong.
    Skipped = 1,
    /// It may be sent again.
    Fail = 2,
}

/// URLs that were found, of `PutDiscovered`, which version 2.6 of the server brought.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct DiscoveredBatch {
    #[prost(string, tag = "1")]
    pub(crate) id: String,
    #[prost(message, repeated, tag = "2")]
    pub(crate) items: Vec<UrlInfo>,
}

/// The statuses of a batch, in its order.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct BatchAck {
    #[prost(string, tag = "1")]
    pub(crate) id: String,
    #[prost(enumeration = "Status", repeated, tag = "2")]
    pub(crate) statuses: Vec<i32>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct QueueDelayParams {
    #[prost(string, tag = "1")]
    pub(crate) key: String,
    /// Seconds between two servings of the queue.
    #[prost(uint32, tag = "2")]
    pub(crate) delay_requestable: u32,
    #[prost(string, tag = "3")]
    pub(crate) crawl_id: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct BlockQueueParams {
    #[prost(string, tag = "1")]
    pub(crate) key: String,
    /// Seconds since 1970; 0 ends a block.
    #[prost(uint64, tag = "2")]
    pub(crate) time: u64,
    #[prost(string, tag = "3")]
    pub(crate) crawl_id: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct QueueWithinCrawlParams {
    #[prost(string, tag = "1")]
    pub(crate) key: String,
    #[prost(string, tag = "2")]
    pub(crate) crawl_id: String,
}

/// The numbers of a crawl.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Stats {
    /// URLs that are not done, served ones included.
    #[prost(uint64, tag = "1")]
    pub(crate) size: u64,
    /// URLs that are served and not done.
    #[prost(uint32, tag = "2")]
    pub(crate) in_process: u32,
    #[prost(btree_map = "string, uint64", tag = "3")]
    pub(crate) counts: BTreeMap<String, u64>,
    #[prost(uint64, tag = "4")]
    pub(crate) number_of_queues: u64,
    #[prost(string, tag = "5")]
    pub(crate) crawl_id: String,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct Empty {}

impl Stats {
    /// Whether nothing of the crawl is left to do.
    ///
    /// The count of queues with work decides if there is one: the sizes of two queues, of which one was counted down too often, can add
    /// up to zero.
    pub(crate) fn is_done(&self) -> bool {
        self.counts.get("active_queues").map_or(self.size == 0 && self.in_process == 0, |queues| *queues == 0)
    }
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;

    /// Number of the field, its wire type, and what it holds.
    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        let length = u8::try_from(bytes.len()).expect("a short field");
        [&[number << 3 | 2, length][..], bytes].concat()
    }

    fn number(field: u8, value: u8) -> Vec<u8> {
        vec![field << 3, value]
    }

    #[test]
    fn a_url_has_the_bytes_of_the_protocol() {
        let info = UrlInfo {
            url: "http://a/".to_owned(),
            key: "a".to_owned(),
            metadata: BTreeMap::from([("k".to_owned(), StringList { values: vec!["v".to_owned()] })]),
            crawl_id: "c".to_owned(),
        };
        let entry = [field(1, b"k"), field(2, &field(1, b"v"))].concat();
        let bytes = [field(1, b"http://a/"), field(2, b"a"), field(3, &entry), field(4, b"c")].concat();
        assert_eq!(info.encode_to_vec(), bytes);
        let known = KnownUrlItem { info: Some(info.clone()), refetchable_from_date: 7 };
        let item = UrlItem { item: Some(Item::Known(known)), id: "9".to_owned() };
        let inner = [field(1, &bytes), number(2, 7)].concat();
        assert_eq!(item.encode_to_vec(), [field(2, &inner), field(3, b"9")].concat());
        let found = Item::Discovered(DiscoveredUrlItem { info: Some(info.clone()) });
        let item = UrlItem { item: Some(found), id: String::new() };
        assert_eq!(item.encode_to_vec(), field(1, &field(1, &bytes)));
        let batch = DiscoveredBatch { id: "9".to_owned(), items: vec![info] };
        assert_eq!(batch.encode_to_vec(), [field(1, b"9"), field(2, &bytes)].concat());
    }

    #[test]
    fn what_is_asked_and_told_has_the_bytes_of_the_protocol() {
        let (key, crawl_id) = ("a".to_owned(), "c".to_owned());
        let asked = GetParams {
            max_urls_per_queue: 1,
            max_queues: 2,
            key: key.clone(),
            delay_requestable: 60,
            crawl_id: Some(crawl_id.clone()),
        };
        let bytes = [number(1, 1), number(2, 2), field(3, b"a"), number(4, 60), field(6, b"c")].concat();
        assert_eq!(asked.encode_to_vec(), bytes);
        let delay = QueueDelayParams { key: key.clone(), delay_requestable: 3, crawl_id: crawl_id.clone() };
        assert_eq!(delay.encode_to_vec(), [field(1, b"a"), number(2, 3), field(3, b"c")].concat());
        let block = BlockQueueParams { key: key.clone(), time: 4, crawl_id: crawl_id.clone() };
        assert_eq!(block.encode_to_vec(), [field(1, b"a"), number(2, 4), field(3, b"c")].concat());
        let queue = QueueWithinCrawlParams { key, crawl_id };
        assert_eq!(queue.encode_to_vec(), [field(1, b"a"), field(2, b"c")].concat());
    }

    #[test]
    fn what_a_server_says_is_read() {
        let ack = AckMessage::decode(&[field(1, b"9"), number(2, 1)].concat()[..]).unwrap();
        assert_eq!((ack.id.as_str(), ack.status()), ("9", Status::Skipped));
        let ack = BatchAck::decode(&[field(1, b"9"), field(2, &[0, 1, 2])].concat()[..]).unwrap();
        assert_eq!(ack.statuses().collect::<Vec<_>>(), [Status::Ok, Status::Skipped, Status::Fail]);
        let count = [field(1, b"active_queues"), number(2, 1)].concat();
        // A field that a later version may add is skipped.
        let stats = [number(1, 5), number(2, 2), field(3, &count), number(4, 3), field(9, b"x")].concat();
        let stats = Stats::decode(&stats[..]).unwrap();
        assert_eq!((stats.size, stats.in_process, stats.number_of_queues), (5, 2, 3));
        assert!(!stats.is_done());
    }

    #[test]
    fn a_crawl_is_done_when_no_queue_has_work() {
        let of = |size, counts: &[(&str, u64)]| Stats {
            size,
            counts: counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect(),
            ..Stats::default()
        };
        assert!(of(0, &[]).is_done() && !of(1, &[]).is_done());
        assert!(of(0, &[("active_queues", 0)]).is_done());
        assert!(!of(0, &[("active_queues", 1)]).is_done(), "two wrong counts add up to zero");
    }
}

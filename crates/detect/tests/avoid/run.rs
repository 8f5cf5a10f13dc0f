//! A crawl without a network: requests in the order of their discovery, so many in flight.

use std::collections::{BTreeMap, HashSet, VecDeque};

use huntsman_detect::avoid::{Decision, Options, PageText, Predictor};
use url::Url;

use crate::cases::{Case, text};

/// What came of a crawl.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// Share of the requests for known contents that were not sent.
    pub(crate) recall: f64,
    /// Share of the contents that never came.
    pub(crate) lost: f64,
    pub(crate) fetched: usize,
    pub(crate) skipped: usize,
}

pub(crate) fn site_of(url: &Url) -> &str {
    let host = url.host_str().expect("a host");
    host.strip_prefix("www.").unwrap_or(host)
}

/// Priority of what is skipped if nothing speaks against it until the end.
const LAST: i64 = 5_000;
const HELD: i64 = 1_000;
/// Links are found that far ahead of the requests.
const AHEAD: usize = 200;

pub(crate) fn crawl(case: &Case, in_flight: usize, seed: u64) -> Outcome {
    let mut predictor = Predictor::new(Options { seed, ..Options::default() });
    let urls: Vec<Url> = case.requests.iter().map(|(url, _)| Url::parse(url).expect("a URL")).collect();
    let mut seen = HashSet::new();
    let mut queue: BTreeMap<(i64, usize), usize> =
        (0..urls.len()).filter(|n| seen.insert(urls[*n].as_str())).map(|n| ((0, n), n)).collect();
    let total = queue.len();
    let (mut discovered, mut fetched, mut skipped) = (0, 0, 0);
    let mut flying: VecDeque<usize> = VecDeque::new();
    let mut got: HashSet<u64> = HashSet::new();
    let mut waits = false;
    loop {
        if (flying.len() > in_flight || queue.is_empty() || waits)
            && let Some(n) = flying.pop_front()
        {
            waits = false;
            predictor.flies(site_of(&urls[n]), &urls[n], false);
            predictor.learn(site_of(&urls[n]), &urls[n], page(case.requests[n].1));
            continue;
        }
        waits = false;
        while discovered < urls.len() && discovered < AHEAD + fetched + total - queue.len() {
            predictor.discover(site_of(&urls[discovered]), &urls[discovered], None);
            discovered += 1;
        }
        let Some(((priority, at), n)) = queue.pop_first() else { break };
        if priority >= LAST && !flying.is_empty() {
            queue.insert((priority, at), n);
            waits = true;
            continue;
        }
        match predictor.decide(site_of(&urls[n]), &urls[n], priority >= LAST) {
            Decision::Drop(_) => {
                skipped += 1;
                continue;
            }
            Decision::Skip(_) => {
                queue.insert((LAST, at), n);
                continue;
            }
            Decision::Delay { probability } if priority < (probability * 50.0) as i64 => {
                queue.insert(((probability * 50.0) as i64, at), n);
                continue;
            }
            Decision::Hold if priority < HELD && !flying.is_empty() => {
                queue.insert((HELD, at), n);
                continue;
            }
            _ => {}
        }
        fetched += 1;
        got.insert(case.requests[n].1);
        predictor.flies(site_of(&urls[n]), &urls[n], true);
        flying.push_back(n);
    }
    let contents: HashSet<u64> = case.requests.iter().map(|(_, content)| *content).collect();
    let copies = total - contents.len();
    Outcome {
        recall: if copies == 0 { 1.0 } else { 1.0 - (fetched - got.len()) as f64 / copies as f64 },
        lost: 1.0 - got.len() as f64 / contents.len() as f64,
        fetched,
        skipped,
    }
}

fn page(content: u64) -> PageText {
    let lines = text(content);
    PageText::of(lines.iter().map(|(position, line)| (*position, line.as_str())))
}

/// What is decided request by request, one at a time; with a restart after so many.
pub(crate) fn decisions(case: &Case, seed: u64, restart: Option<usize>) -> Vec<String> {
    let options = Options { seed, ..Options::default() };
    let mut predictor = Predictor::new(options);
    predictor.keep_journal();
    let mut batches = Vec::new();
    let mut answers = Vec::new();
    for (at, (url, content)) in case.requests.iter().enumerate() {
        let url = Url::parse(url).expect("a URL");
        predictor.discover(site_of(&url), &url, None);
        if at % 97 == 0 {
            batches.extend(predictor.take_journal());
        }
        if restart == Some(at) {
            batches.extend(predictor.take_journal());
            predictor = Predictor::restored(options, batches.iter().map(Vec::as_slice)).expect("as it was");
            predictor.keep_journal();
        }
        let decision = predictor.decide(site_of(&url), &url, false);
        let believed =
            predictor.explain(site_of(&url), &url).map(|reason| (reason.kinship, reason.probability));
        let is_fetched = !matches!(decision, Decision::Skip(_));
        answers.push(format!("{is_fetched} {believed:?}"));
        if is_fetched {
            predictor.learn(site_of(&url), &url, page(*content));
        }
    }
    answers
}

/// The journal of a crawl that fetches everything.
pub(crate) fn journal(case: &Case) -> Vec<u8> {
    let mut predictor = Predictor::new(Options::default());
    predictor.keep_journal();
    for (url, content) in &case.requests {
        let url = Url::parse(url).expect("a URL");
        predictor.discover(site_of(&url), &url, None);
        predictor.learn(site_of(&url), &url, page(*content));
    }
    predictor.take_journal().expect("there is one")
}

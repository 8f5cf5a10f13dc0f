//! Runs a predictor over the requests of a generated site, one at a time.

use huntsman_detect::avoid::evaluation::CaseRequest;
use huntsman_detect::avoid::{Attempt, Decision, Options, PageText, Predictor};

fn learn(predictor: &mut Predictor, request: &CaseRequest) {
    let blocks = request.blocks();
    let text = PageText::of(blocks.iter().map(|(position, text)| (*position, text.as_str())));
    predictor.learn(request.site(), &request.url, text);
}

/// The decisions request by request, optionally with a restart after a number of them.
pub(crate) fn decisions(requests: &[CaseRequest], seed: u64, restart: Option<usize>) -> Vec<String> {
    let options = Options { seed, ..Options::default() };
    let mut predictor = Predictor::new(options);
    predictor.keep_journal();
    let mut batches = Vec::new();
    let mut answers = Vec::new();
    for (at, request) in requests.iter().enumerate() {
        let (site, url) = (request.site(), &request.url);
        predictor.discover(site, url, None);
        if at % 97 == 0 {
            batches.extend(predictor.take_journal());
        }
        if restart == Some(at) {
            batches.extend(predictor.take_journal());
            predictor = Predictor::restored(options, batches.iter().map(Vec::as_slice)).expect("as it was");
            predictor.keep_journal();
        }
        let decision = predictor.decide(site, url, Attempt::Regular);
        let believed = predictor.explain(site, url).map(|reason| (reason.kinship, reason.probability));
        let is_fetched = !matches!(decision, Decision::Skip(_));
        answers.push(format!("{decision:?} {believed:?}"));
        if is_fetched {
            learn(&mut predictor, request);
        }
    }
    answers
}

/// The journal of a crawl that fetches every request.
pub(crate) fn journal(requests: &[CaseRequest]) -> Vec<u8> {
    let mut predictor = Predictor::new(Options::default());
    predictor.keep_journal();
    for request in requests {
        predictor.discover(request.site(), &request.url, None);
        learn(&mut predictor, request);
    }
    predictor.take_journal().expect("there is one")
}

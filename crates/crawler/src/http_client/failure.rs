//! Classifies errors of a fetch by the chain of causes that the HTTP library returns.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::time::Duration;

use super::proxy::{Proxy, Scheme};
use crate::fetch::{FetchError, FetchErrorKind, ProxyFault};

/// An error made by the resolver. The HTTP library passes it on as a cause, where it is found again.
#[derive(Debug)]
pub(crate) struct Failure {
    kind: FetchErrorKind,
    message: String,
}

impl Failure {
    pub(crate) fn new(kind: FetchErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    pub(crate) fn kind(&self) -> FetchErrorKind {
        self.kind
    }

    /// The same failure as a failure of the proxy, unless its kind is more specific.
    pub(crate) fn of_proxy(mut self) -> Self {
        if self.kind != FetchErrorKind::ConnectTimeout {
            self.kind = FetchErrorKind::Proxy;
        }
        self.message = format!("proxy: {}", self.message);
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl StdError for Failure {}

/// The causes of an error, beginning with the error itself. The number is bounded, because the chain comes from other
/// code.
fn chain<'a>(error: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    const MAX_CAUSES: usize = 16;
    std::iter::successors(Some(error), |error| cause_of(*error)).take(MAX_CAUSES)
}

/// The next cause. The `source` of an I/O error skips the error inside it, so that one is returned first.
fn cause_of<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a (dyn StdError + 'static)> {
    match error.downcast_ref::<io::Error>() {
        Some(io) => io.get_ref().map(|inner| inner as _),
        None => error.source(),
    }
}

/// The classification of an error that occurred before the end of the headers.
pub(crate) struct Classification {
    pub(crate) kind: FetchErrorKind,
    /// The connection was lost: if it was idle before, a new one may work.
    pub(crate) lost: bool,
    /// The server said that it did not process the request.
    pub(crate) unprocessed: bool,
}

impl Classification {
    fn of(kind: FetchErrorKind) -> Self {
        Self { kind, lost: false, unprocessed: false }
    }

    fn lost() -> Self {
        Self { kind: FetchErrorKind::Reset, lost: true, unprocessed: false }
    }
}

/// The target of a request and the way to it, for classifying errors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestTarget<'a> {
    pub(crate) host: &'a str,
    pub(crate) https: bool,
    pub(crate) proxy: Option<&'a Proxy>,
}

/// Classifies an error that occurred before the headers were complete.
pub(crate) fn classify(error: &reqwest::Error, target: &RequestTarget<'_>) -> Classification {
    use FetchErrorKind as K;
    if error.is_builder() {
        return Classification::of(K::InvalidRequest);
    }
    if error.is_connect() {
        return Classification::of(classify_connect(error, target));
    }
    let mut verdict = Classification::lost();
    for cause in chain(error) {
        if let Some(error) = cause.downcast_ref::<h2::Error>() {
            return classify_h2(error);
        }
        if let Some(error) = cause.downcast_ref::<hyper::Error>() {
            if error.is_parse() {
                // The server sent something, so the connection was alive when the request was written.
                verdict = Classification::of(K::BadResponse);
            } else if error.is_user() {
                verdict = Classification::of(K::InvalidRequest);
            }
        } else if let Some(verdict) = cause.downcast_ref::<io::Error>().and_then(classify_io) {
            return verdict;
        }
    }
    verdict
}

/// Classifies a failure to connect.
fn classify_connect(error: &reqwest::Error, target: &RequestTarget<'_>) -> FetchErrorKind {
    use FetchErrorKind as K;
    let (mut invalid, mut lost, mut before_site) = (false, false, false);
    for cause in chain(error) {
        if let Some(failure) = cause.downcast_ref::<Failure>() {
            return failure.kind();
        }
        if let Some(error) = cause.downcast_ref::<io::Error>() {
            invalid |= error.kind() == io::ErrorKind::InvalidData;
            lost |= matches!(
                error.kind(),
                io::ErrorKind::UnexpectedEof
                    | io::ErrorKind::ConnectionReset
                    | io::ErrorKind::ConnectionAborted
                    | io::ErrorKind::BrokenPipe
            );
        } else if target.proxy.is_some() {
            // These types are private: only their text says that the proxy failed.
            let text = cause.to_string();
            before_site |= text.starts_with("tunnel error") || text.contains("socks proxy");
        }
    }
    match target.proxy {
        _ if error.is_timeout() => K::ConnectTimeout,
        // On a socket only TLS reports invalid data, and an established connection can only be lost in the handshake.
        None if target.https && (invalid || lost) => K::Tls,
        None => K::Connect,
        Some(_) if target.https && invalid && !before_site => K::Tls,
        Some(_) => K::Proxy,
    }
}

/// Classifies an I/O error if it is more specific than a lost connection. HTTP/2 keeps only its kind and its text, so
/// the kind must suffice.
fn classify_io(error: &io::Error) -> Option<Classification> {
    // On a socket only TLS reports invalid data.
    (error.kind() == io::ErrorKind::InvalidData).then(|| Classification::of(FetchErrorKind::Tls))
}

fn classify_h2(error: &h2::Error) -> Classification {
    if let Some(verdict) = error.get_io().and_then(classify_io) {
        return verdict;
    }
    if error.is_library() && !error.is_io() {
        return Classification::of(FetchErrorKind::BadResponse);
    }
    let refused = error.reason() == Some(h2::Reason::REFUSED_STREAM);
    let gone = error.is_go_away() && error.reason() == Some(h2::Reason::NO_ERROR);
    Classification { unprocessed: refused || gone, ..Classification::lost() }
}

/// How far a proxy is at fault for an error of a request that went through it. A proxy that cannot reach a site is not to blame for that, but it
/// says only that it made no tunnel, so it remains open which of the two failed.
pub(crate) fn proxy_fault(error: &FetchError, target: &RequestTarget<'_>) -> ProxyFault {
    use FetchErrorKind as K;
    /// What proxies say if the connection behind them fails. The types of these errors are private: only their text can be read.
    const BEHIND: [&str; 7] = [
        "tunnel error: unsuccessful",
        "general server failure",
        "connection not allowed",
        "network unreachable",
        "host unreachable",
        "SOCKS error: connection refused",
        "ttl expired",
    ];
    let Some(proxy) = target.proxy else { return ProxyFault::None };
    match error.kind() {
        K::Proxy => {
            let message = error.to_string();
            let is_behind = BEHIND.iter().any(|text| message.contains(text));
            if is_behind { ProxyFault::Possible } else { ProxyFault::Certain }
        }
        // A request for http is sent to the proxy itself, so there is nothing else that could have been connected to.
        K::ConnectTimeout if !target.https && matches!(proxy.scheme, Scheme::Http { .. }) => {
            ProxyFault::Certain
        }
        K::Connect
        | K::Tls
        | K::ConnectTimeout
        | K::FirstByteTimeout
        | K::IdleTimeout
        | K::TotalTimeout
        | K::Reset
        | K::Incomplete
        | K::BadResponse => ProxyFault::Possible,
        _ => ProxyFault::None,
    }
}

/// How long to wait for other requests to finish when the process cannot open more files.
pub(crate) const OUT_OF_FILES_WAIT: Duration = Duration::from_millis(100);

/// Whether the process or the system cannot open more files.
pub(crate) fn is_out_of_files(error: &(dyn StdError + 'static)) -> bool {
    /// EMFILE and ENFILE have these numbers on every Unix.
    const CODES: [i32; 2] = [24, 23];
    cfg!(unix)
        && chain(error).any(|cause| {
            let code = cause.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error);
            code.is_some_and(|code| CODES.contains(&code))
        })
}

/// The chain of causes as one sentence for the record, without repetitions.
pub(crate) fn describe(error: &(dyn StdError + 'static)) -> String {
    let mut text = String::new();
    let mut last = String::new();
    for cause in chain(error) {
        let sentence = cause.to_string();
        // The library's own layers add only "error sending request" and "client error".
        let says_nothing =
            sentence.is_empty() || cause.is::<reqwest::Error>() || sentence.starts_with("client error");
        if says_nothing || last.contains(&sentence) {
            continue;
        }
        if !text.is_empty() {
            text.push_str(": ");
        }
        text.push_str(&sentence);
        last = sentence;
    }
    text
}

/// The error of a request that received no headers.
pub(crate) fn of_head(error: reqwest::Error, target: &RequestTarget<'_>) -> FetchError {
    let kind = classify(&error, target).kind;
    let sent = !error.is_connect() && !error.is_builder();
    let message = match error.is_connect() {
        true => format!("connecting to {}: {}", target.host, describe(&error)),
        false => describe(&error),
    };
    let failed = FetchError::new(kind, message).with_source(error.without_url());
    if sent { failed.after_sending() } else { failed }
}

/// The error of an incomplete body: declared bytes are missing, a chunk is broken, or the connection was lost.
pub(crate) fn of_body(error: &reqwest::Error, received: u64) -> FetchError {
    let message = format!("reading the body after {received} bytes: {}", describe(error));
    FetchError::new(FetchErrorKind::Incomplete, message).after_sending()
}

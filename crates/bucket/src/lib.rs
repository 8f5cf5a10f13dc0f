//! A client for a bucket of S3 or a compatible server: set up from the environment, with errors that say what to do.
//!
//! [`find`] leads from an address to an [`Object`] or a [`Listing`], whose bytes are fetched ahead of their reader. What is read and written is up to
//! the crates that use it.

mod objects;

use std::time::Duration;

use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey};
use object_store::path::Error as NameError;
use object_store::{BackoffConfig, ClientConfigKey, Error, RetryConfig};

pub use objects::{
    Ahead, Bucket, FindError, Found, Listing, Object, Page, Pieces, REQUESTS, Reader, find, pieces,
};

const CREDENTIALS: &str = "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN";

/// A client for a bucket, with region, endpoint and credentials from the environment. It sends no request yet.
///
/// A request is sent at most `attempts` times, or fewer if `AWS_MAX_ATTEMPTS` says so.
///
/// # Errors
/// A variable of the environment is not valid; `purpose` is as for [`describe`].
pub fn connected(
    bucket: &str,
    attempts: usize,
    patience: Duration,
    purpose: &str,
) -> Result<AmazonS3, String> {
    let attempts = match std::env::var("AWS_MAX_ATTEMPTS") {
        Ok(text) => match text.parse() {
            Ok(most @ 1..=100) => attempts.min(most),
            _ => return Err(format!("AWS_MAX_ATTEMPTS {text}: use a number from 1 to 100")),
        },
        Err(_) => attempts,
    };
    let retry = RetryConfig {
        backoff: BackoffConfig { max_backoff: Duration::from_secs(15), ..BackoffConfig::default() },
        max_retries: attempts - 1,
        retry_timeout: patience,
    };
    // The client uses the process-wide cryptography provider. If the program has installed one, that one stays.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = AmazonS3Builder::from_env().with_bucket_name(bucket).with_retry(retry);
    let setting =
        |builder: &AmazonS3Builder, key| builder.get_config_value(&key).filter(|value| !value.is_empty());
    let endpoint = setting(&builder, AmazonS3ConfigKey::S3Endpoint)
        .or_else(|| setting(&builder, AmazonS3ConfigKey::Endpoint));
    if let Some(endpoint) = endpoint {
        let url =
            url::Url::parse(&endpoint).map_err(|error| format!("AWS_ENDPOINT_URL {endpoint}: {error}"))?;
        let is_allowed = setting(&builder, AmazonS3ConfigKey::Client(ClientConfigKey::AllowHttp))
            .is_some_and(|value| ["true", "1", "yes", "on"].contains(&value.to_ascii_lowercase().as_str()));
        if url.scheme() == "http" && !is_allowed {
            if !is_loopback(&url) {
                return Err(format!(
                    "AWS_ENDPOINT_URL {endpoint} sends texts in the clear; use https://, or set AWS_ALLOW_HTTP=true"
                ));
            }
            builder = builder.with_allow_http(true);
        }
    }
    builder.build().map_err(|error| describe(&error, purpose))
}

fn is_loopback(url: &url::Url) -> bool {
    match url.host() {
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        Some(url::Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

/// Whether the error would be the same for any other object.
pub fn is_of_the_server(error: &Error) -> bool {
    let Error::Generic { .. } = error else { return false };
    // An error code from the server is about this request only.
    code(&error.to_string())
        .is_none_or(|code| ["InternalError", "ServiceUnavailable", "SlowDown"].contains(&code))
}

/// Whether the server says that there is no such bucket.
pub fn is_missing_bucket(error: &Error) -> bool {
    code(&error.to_string()) == Some("NoSuchBucket")
}

/// The value of an XML element in a server's reply.
fn element<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    Some(rest.split_once(&format!("</{name}>"))?.0).filter(|value| value.len() < 1_000)
}

fn code(text: &str) -> Option<&str> {
    element(text, "Code")
}

/// The error as one line: what the server says, or the root cause, and what to do. `purpose` says what the credentials must allow, such as
/// `list and read it`.
pub fn describe(error: &Error, purpose: &str) -> String {
    let text = error.to_string();
    let said = match (code(&text), element(&text, "Message")) {
        (Some(code), Some(message)) => format!("{code}: {}", message.trim_end_matches('.')),
        (Some(code), None) => code.to_owned(),
        _ if text.contains("/latest/") => "no credentials".to_owned(),
        _ => match error {
            Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => "access is denied".to_owned(),
            _ => root_cause(error),
        },
    };
    let advice = match code(&text) {
        Some("NoSuchBucket") => "check its name, AWS_REGION and AWS_ENDPOINT_URL".to_owned(),
        Some("InvalidAccessKeyId" | "SignatureDoesNotMatch" | "ExpiredToken" | "InvalidToken") => {
            format!("check {CREDENTIALS}")
        }
        Some("PermanentRedirect" | "AuthorizationHeaderMalformed" | "TemporaryRedirect") => {
            "check AWS_REGION".to_owned()
        }
        Some("AccessDenied") => format!("check {CREDENTIALS}, and whether they may {purpose}"),
        Some(_) => "see what the server means by it".to_owned(),
        None if said == "no credentials" => format!(
            "set {CREDENTIALS} (`aws configure export-credentials --format env` prints them), or \
             AWS_SKIP_SIGNATURE=true to read a public bucket without"
        ),
        None if text.contains("AccessKey") => format!("check {CREDENTIALS}"),
        None if text.contains("region") => "check AWS_REGION".to_owned(),
        None if matches!(error, Error::PermissionDenied { .. } | Error::Unauthenticated { .. }) => {
            format!("check {CREDENTIALS}, and whether they may {purpose}")
        }
        None => "check AWS_ENDPOINT_URL and the network".to_owned(),
    };
    format!("{said}; {advice}")
}

/// The root cause of the error.
fn root_cause(error: &Error) -> String {
    let mut root_cause: &dyn std::error::Error = error;
    while let Some(source) = root_cause.source() {
        root_cause = source;
    }
    root_cause.to_string()
}

/// Why an object of a name cannot be used.
pub fn bad_name(error: &NameError) -> String {
    let why = match error {
        NameError::EmptySegment { .. } => "it has two slashes in a row",
        _ => "it has a segment `.` or `..`, or a control character",
    };
    format!("an object of this name cannot be asked for, as {why}; copy it to another name")
}

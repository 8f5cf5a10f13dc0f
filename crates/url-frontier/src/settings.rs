//! Which job on which server, and how long to wait for it.

use std::str::FromStr;
use std::time::Duration;

use url::Url;

use crate::error::{Error, ErrorKind};

/// The server, the job, and how long to wait for the server.
///
/// Parsed from an address, `urlfrontier://HOST[:PORT][?NAME=VALUE&...]`; the names are `timeout` and `patience`, in seconds. The protocol
/// has no password, and the connection is not encrypted.
///
/// ```
/// let settings: huntsman_url_frontier::UrlFrontierSettings = "urlfrontier://queue.example?timeout=5".parse().unwrap();
/// assert_eq!(settings.job("books").address(), "urlfrontier://queue.example:7071");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlFrontierSettings {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) job: String,
    pub(crate) timeout: Duration,
    pub(crate) patience: Duration,
}

/// The port of the reference server.
const PORT: u16 = 7071;
/// The most bytes of the name of a job, as of the name of a queue.
const NAME: usize = 255;

impl UrlFrontierSettings {
    /// Sets the name of the job, which is the crawl ID in the server; default `crawl`.
    pub fn job(mut self, name: impl Into<String>) -> Self {
        self.job = name.into();
        self
    }

    /// Sets the time limit for a reply, and for connecting; default 30 s, at least a millisecond.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout.max(Duration::from_millis(1));
        self
    }

    /// Sets how long to retry if the server cannot be reached; default 30 s. A call is tried again after 50 ms, 100 ms and so on, with at
    /// most 2 s between attempts. It does not hold for the first connection: a server that is not there at the start is an error.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Scheme, host and port, as in error messages.
    pub fn address(&self) -> String {
        format!("urlfrontier://{}", self.authority())
    }

    pub(crate) fn authority(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.job.trim().is_empty() || self.job.len() > NAME {
            let message = format!("{:?} is no name of a job: use 1 to {NAME} bytes", self.job);
            return Err(Error::new(ErrorKind::Input, message));
        }
        Ok(())
    }
}

impl FromStr for UrlFrontierSettings {
    type Err = Error;

    /// Parses an address.
    ///
    /// # Errors
    /// The text is not a valid address; the error says why.
    fn from_str(address: &str) -> Result<Self, Error> {
        parse(address).map_err(|why| {
            let form = "urlfrontier://HOST[:PORT][?timeout=SECONDS&patience=SECONDS]";
            let message = format!("not the address of a URLFrontier server: {why}; it has the form {form}");
            Error::new(ErrorKind::Input, message)
        })
    }
}

fn parse(address: &str) -> Result<UrlFrontierSettings, String> {
    let url = Url::parse(address).map_err(|error| error.to_string())?;
    if url.scheme() != "urlfrontier" {
        return Err("it begins with urlfrontier://".to_owned());
    }
    let host = url.host_str().filter(|host| !host.is_empty()).ok_or("it names no host")?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err("the protocol knows no user and no password".to_owned());
    }
    if !matches!(url.path(), "" | "/") || url.fragment().is_some() {
        return Err("nothing but names and values may follow the host; --job names the crawl".to_owned());
    }
    let seconds = Duration::from_secs(30);
    let mut settings = UrlFrontierSettings {
        host: host.to_owned(),
        port: url.port().unwrap_or(PORT),
        job: "crawl".to_owned(),
        timeout: seconds,
        patience: seconds,
    };
    for (name, value) in url.query_pairs() {
        let seconds = value.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let seconds = seconds.ok_or_else(|| format!("{name} is a number of seconds"));
        settings = match &*name {
            "timeout" => settings.timeout(seconds?),
            "patience" => settings.patience(seconds?),
            _ => return Err(format!("{name} is none of timeout and patience")),
        };
    }
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_and_what_is_wrong_with_it_is_said() {
        let settings: UrlFrontierSettings = "urlfrontier://[::1]:7?timeout=0.5&patience=2".parse().unwrap();
        assert_eq!((settings.host.as_str(), settings.port), ("[::1]", 7));
        assert_eq!(
            (settings.timeout, settings.patience),
            (Duration::from_millis(500), Duration::from_secs(2))
        );
        for (wrong, why) in [
            ("redis://a", "begins with urlfrontier://"),
            ("urlfrontier:", "no host"),
            ("urlfrontier://", "no host"),
            ("urlfrontier://u:p@a", "no password"),
            ("urlfrontier://a/books", "--job"),
            ("urlfrontier://a?timeout=x", "timeout is a number"),
            ("urlfrontier://a?lease=3", "lease is none of"),
        ] {
            let error = wrong.parse::<UrlFrontierSettings>().unwrap_err();
            assert!(error.to_string().contains(why), "{wrong}: {error}");
            assert_eq!(error.kind(), ErrorKind::Input);
        }
    }

    #[test]
    fn a_job_without_a_name_is_refused() {
        let settings: UrlFrontierSettings = "urlfrontier://a".parse().unwrap();
        assert!(settings.check().is_ok());
        assert!(settings.clone().job(" ").check().is_err());
        assert!(settings.job("x".repeat(256)).check().is_err());
    }
}

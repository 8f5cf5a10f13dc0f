//! The address of a server, and how long to wait for it.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use url::{Host, Url};

use crate::error::{Error, ErrorKind};

/// The address of a Redis server, the credentials, and how long to wait.
///
/// Parsed from an address, `redis://[[USER]:PASSWORD@]HOST[:PORT][/DB][?NAME=VALUE&...]`, with `rediss://` for TLS. Each name after the `?`
/// has a method, too: `ca` (a file of certificates), `patience` and `timeout` in seconds. A cluster is detected automatically; any of its
/// nodes will do.
///
/// A password is never shown, neither by `Debug` nor in an error.
///
/// ```
/// let settings: huntsman_redis::Settings = "rediss://crawler@db.example:6380/2?timeout=5".parse().unwrap();
/// assert_eq!(settings.address(), "rediss://db.example:6380/2");
/// assert!(!format!("{:?}", settings.password("a secret")).contains("secret"));
/// ```
#[derive(Clone)]
pub struct Settings {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) database: u32,
    pub(crate) tls: bool,
    pub(crate) ca: Option<PathBuf>,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
    pub(crate) timeout: Duration,
    pub(crate) patience: Duration,
}

/// The names of settings in an address, as in error messages.
const NAMES: &str = "ca, patience and timeout";

impl Settings {
    /// Parses an address with further settings than those of a server. `further` gets each name that this type does not know, with its
    /// value, and returns whether it knows the name; `names` lists its names, as `layout, tag`, for the error message.
    ///
    /// # Errors
    /// [`Input`](ErrorKind::Input): the text is not a valid address. The error says why and does not repeat the text, because it may
    /// contain a password.
    pub fn parse(
        address: &str,
        names: &str,
        further: impl FnMut(&str, &str) -> Result<bool, String>,
    ) -> Result<Self, Error> {
        parse(address, names, further).map_err(|why| {
            let form = "redis://[USER:PASSWORD@]HOST[:PORT][/DB][?tag=...] (rediss:// for TLS)";
            let message = format!("not the address of a Redis server: {why}; it has the form {form}");
            Error::new(ErrorKind::Input, message)
        })
    }

    /// Sets the user name, for servers with access control lists.
    pub fn user(mut self, name: impl Into<String>) -> Self {
        self.user = Some(name.into());
        self
    }

    /// Sets the password of the user, or of the server (`requirepass`) if no user is set.
    pub fn password(mut self, password: impl Into<String>) -> Self {
        self.password = Some(password.into());
        self
    }

    /// Sets a file of PEM certificates that must have issued the server's certificate, instead of those that the system trusts. Only with
    /// `rediss://`.
    pub fn ca(mut self, file: impl Into<PathBuf>) -> Self {
        self.ca = Some(file.into());
        self
    }

    /// Sets the time limit for a reply, and for connecting; default 30 s, at least a millisecond.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout.max(Duration::from_millis(1));
        self
    }

    /// Sets how long to retry without any reply if a connection is lost or a server is loading its data; default 30 s.
    ///
    /// A connection is retried after 50 ms, 100 ms and so on, with at most 2 s between attempts. Commands without a reply are sent again.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Scheme, host, port and database, without credentials, as in error messages.
    pub fn address(&self) -> String {
        let scheme = if self.tls { "rediss" } else { "redis" };
        format!("{scheme}://{}/{}", authority(&self.host, self.port), self.database)
    }

    /// The time limit for a reply.
    pub fn reply_timeout(&self) -> Duration {
        self.timeout
    }

    /// How long to retry without any reply.
    pub fn retry_patience(&self) -> Duration {
        self.patience
    }

    /// Whether a password is set.
    pub fn has_password(&self) -> bool {
        self.password.is_some()
    }

    /// Sets one setting by its name in an address; `None` if there is no such name.
    fn set(self, name: &str, value: &str) -> Result<Option<Self>, String> {
        let seconds = || {
            let seconds: f64 = value.parse().map_err(|_| format!("{name} is a number of seconds"))?;
            Duration::try_from_secs_f64(seconds).map_err(|_| format!("{name} is a number of seconds"))
        };
        Ok(Some(match name {
            "ca" => self.ca(value),
            "patience" => self.patience(seconds()?),
            "timeout" => self.timeout(seconds()?),
            _ => return Ok(None),
        }))
    }
}

impl FromStr for Settings {
    type Err = Error;

    /// Parses an address without further settings.
    ///
    /// # Errors
    /// As [`Settings::parse`].
    fn from_str(address: &str) -> Result<Self, Error> {
        Self::parse(address, "", |_, _| Ok(false))
    }
}

fn parse(
    address: &str,
    names: &str,
    mut further: impl FnMut(&str, &str) -> Result<bool, String>,
) -> Result<Settings, String> {
    let url = Url::parse(address).map_err(|error| error.to_string())?;
    let tls = match url.scheme() {
        "redis" => false,
        "rediss" => true,
        _ => return Err("it begins with redis:// or rediss://".to_owned()),
    };
    let host = match url.host() {
        // For schemes other than the web's, the URL parser takes an IPv4 address for a name.
        Some(Host::Domain(name)) if !name.is_empty() => name.to_owned(),
        Some(Host::Ipv4(address)) => address.to_string(),
        Some(Host::Ipv6(address)) => address.to_string(),
        _ => return Err("it names no host".to_owned()),
    };
    let database = match url.path().trim_matches('/') {
        "" => 0,
        path => path.parse().map_err(|_| "behind the / is the number of a database".to_owned())?,
    };
    if url.fragment().is_some() {
        return Err("nothing follows a #".to_owned());
    }
    let decoded = |text: &str| {
        let pair = format!("x={}", text.replace('+', "%2B"));
        let (_, value) = url::form_urlencoded::parse(pair.as_bytes()).next().expect("one pair");
        value.into_owned()
    };
    let mut settings = Settings {
        host,
        port: url.port().unwrap_or(6379),
        database,
        tls,
        ca: None,
        user: Some(url.username()).filter(|user| !user.is_empty()).map(decoded),
        password: url.password().map(decoded),
        timeout: Duration::from_secs(30),
        patience: Duration::from_secs(30),
    };
    for (name, value) in url.query_pairs() {
        match settings.clone().set(&name, &value)? {
            Some(set) => settings = set,
            None if further(&name, &value)? => {}
            None if names.is_empty() => return Err(format!("settings are {NAMES}")),
            None => return Err(format!("settings are {names}, {NAMES}")),
        }
    }
    if settings.ca.is_some() && !tls {
        return Err("ca is for TLS, which rediss:// asks for".to_owned());
    }
    Ok(settings)
}

/// Host and port as in an address: IPv6 in brackets.
pub(crate) fn authority(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("address", &self.address())
            .field("user", &self.user)
            .field("password", &self.password.as_ref().map(|_| "..."))
            .field("ca", &self.ca)
            .field("timeout", &self.timeout)
            .field("patience", &self.patience)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_says_all() {
        let settings: Settings =
            "redis://me:a%2Fb+c%40@[::1]:7000/3?patience=0.5&timeout=2".parse().expect("an address");
        assert_eq!(settings.address(), "redis://[::1]:7000/3");
        assert_eq!(settings.user.as_deref(), Some("me"));
        assert_eq!(settings.password.as_deref(), Some("a/b+c@"));
        assert_eq!(settings.patience, Duration::from_millis(500));
        let plain: Settings = "redis://localhost".parse().expect("an address");
        assert_eq!(plain.address(), "redis://localhost:6379/0");
        assert_eq!((plain.user, plain.password, plain.tls), (None, None, false));
        let secure: Settings = "rediss://:pw@a.example?ca=/a/b.pem".parse().expect("an address");
        assert!(secure.tls && secure.user.is_none() && secure.ca == Some(PathBuf::from("/a/b.pem")));
    }

    #[test]
    fn further_settings_are_those_that_the_caller_knows() {
        let mut found = Vec::new();
        let mut parse = |address: &str| {
            Settings::parse(address, "lease", |name, value| {
                found.push(format!("{name}={value}"));
                Ok(name == "lease")
            })
        };
        assert!(parse("redis://a?lease=3&timeout=1").is_ok());
        let error = parse("redis://a?least=3").expect_err("no such name").to_string();
        assert!(error.contains("lease, ca"), "{error}");
        assert_eq!(found, ["lease=3", "least=3"]);
    }

    #[test]
    fn what_is_no_address_is_refused_and_never_repeated() {
        for (wrong, why) in [
            ("http://me:secret@host", "redis://"),
            ("redis://me:secret@/0", "host"),
            ("redis://me:secret@host:70000", "port"),
            ("redis://me:secret@host/x", "database"),
            ("redis://me:secret@host/-1", "database"),
            ("redis://me:secret@host#x", "#"),
            ("redis://me:secret@host?tags=band", "timeout"),
            ("redis://me:secret@host?timeout=-1", "timeout"),
            ("redis://me:secret@host?ca=x", "rediss://"),
            ("secret", "relative"),
        ] {
            let error = wrong.parse::<Settings>().expect_err(wrong);
            let message = error.to_string();
            assert_eq!(error.kind(), ErrorKind::Input, "{wrong}");
            assert!(message.contains(why) && !message.contains("secret"), "{wrong}: {message}");
        }
    }
}

//! Requests as commands of curl: what browsers copy as "Copy as cURL" becomes a request, and a request becomes a command that sends it by
//! hand.
//!
//! Nothing is run, and no file is read: an option that names a file is an error.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, COOKIE, HeaderName, HeaderValue, REFERER, USER_AGENT,
};
use http::{HeaderMap, Method};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC};
use url::Url;

use super::Request;
use crate::error::{Error, Result};

mod words;

/// What `--data-urlencode` encodes.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Options without a value that change nothing about the request, or something that settings of the crawl decide.
const HARMLESS: &[&str] = &[
    "compressed",
    "fail",
    "globoff",
    "http1.1",
    "http2",
    "include",
    "insecure",
    "location",
    "no-buffer",
    "progress-bar",
    "show-error",
    "silent",
    "verbose",
];

/// The long names of the short options.
const SHORT: &[(u8, &str)] = &[
    (b'#', "progress-bar"),
    (b'A', "user-agent"),
    (b'G', "get"),
    (b'H', "header"),
    (b'I', "head"),
    (b'L', "location"),
    (b'N', "no-buffer"),
    (b'S', "show-error"),
    (b'X', "request"),
    (b'b', "cookie"),
    (b'd', "data"),
    (b'e', "referer"),
    (b'f', "fail"),
    (b'g', "globoff"),
    (b'i', "include"),
    (b'k', "insecure"),
    (b's', "silent"),
    (b'u', "user"),
    (b'v', "verbose"),
];

/// Options that take a value.
const VALUED: &[&str] = &[
    "cookie",
    "data",
    "data-ascii",
    "data-binary",
    "data-raw",
    "data-urlencode",
    "header",
    "json",
    "referer",
    "request",
    "url",
    "user",
    "user-agent",
];

impl Request {
    /// The request of a curl command, as the developer tools of browsers copy it ("Copy as cURL", for bash).
    ///
    /// Understood are `-X`, `-H`, `-d` with all its forms, `--json`, `-G`, `-I`, `-b`, `-u`, `-A`, `-e` and `--url`. Options that do not
    /// change the request (`--compressed`, `-k`, `-L`, `-s`, ...) are ignored: settings of the crawl decide that. A `Cookie` header becomes
    /// cookies of the request.
    ///
    /// ```
    /// use huntsman_crawler::Request;
    ///
    /// let request = Request::from_curl("curl 'https://shop.example/api?page=2' -H 'accept: application/json' -b 'id=7'")?;
    /// assert_eq!(request.url.as_str(), "https://shop.example/api?page=2");
    /// assert_eq!(request.headers["accept"], "application/json");
    /// assert_eq!(request.cookies(), [("id".to_owned(), "7".to_owned())]);
    /// # Ok::<(), huntsman_crawler::Error>(())
    /// ```
    ///
    /// # Errors
    /// The text is no command of curl, a quote is open, an option is unknown or names a file, or the URL or a header is not valid. The error
    /// names the option.
    pub fn from_curl(command: &str) -> Result<Self> {
        let read = Command::read(command)?;
        if !read.unknown.is_empty() {
            return Err(Error::usage(format!(
                "the curl command has an unknown option: {}; remove it, or ignore it by Request::from_curl_lenient",
                read.unknown.join(", ")
            )));
        }
        read.into_request()
    }

    /// Like [`Request::from_curl`], but unknown options are ignored and returned. Such an option is taken to have no value.
    ///
    /// # Errors
    /// As [`Request::from_curl`], without unknown options.
    pub fn from_curl_lenient(command: &str) -> Result<(Self, Vec<String>)> {
        let read = Command::read(command)?;
        let unknown = read.unknown.clone();
        Ok((read.into_request()?, unknown))
    }

    /// A curl command, for bash, that sends this request: its method, URL, headers, cookies and body. It is the inverse of
    /// [`Request::from_curl`].
    ///
    /// What middlewares would add (cookies of the jar, the user agent) is not part of it. The command contains the cookies and credentials
    /// that the request has.
    ///
    /// # Errors
    /// The body contains a zero byte, which no argument of a program can.
    pub fn to_curl(&self) -> Result<String> {
        let mut command = format!("curl {}", words::quote(self.url.as_str().as_bytes()));
        let mut option = |name: &str, value: &[u8]| {
            command.push(' ');
            command.push_str(name);
            if !value.is_empty() {
                command.push(' ');
                command.push_str(&words::quote(value));
            }
        };
        let implied = if self.body.is_empty() { Method::GET } else { Method::POST };
        if self.method == Method::HEAD && self.body.is_empty() {
            option("-I", b"");
        } else if self.method != implied {
            option("-X", self.method.as_str().as_bytes());
        }
        for (name, value) in &self.headers {
            let line = match value.as_bytes() {
                b"" => format!("{name};").into_bytes(),
                value => [name.as_str().as_bytes(), b": ", value].concat(),
            };
            option("-H", &line);
        }
        if !self.cookies().is_empty() {
            let cookies: Vec<String> =
                self.cookies().iter().map(|(name, value)| format!("{name}={value}")).collect();
            option("-b", cookies.join("; ").as_bytes());
        }
        if !self.body.is_empty() {
            if self.body.contains(&0) {
                let url = crate::secrets::redacted(self.url.as_str());
                return Err(Error::usage(format!(
                    "{url}: a body with a zero byte cannot be an argument of curl"
                )));
            }
            if !self.headers.contains_key(CONTENT_TYPE) {
                // Without it curl would add the type of forms.
                option("-H", b"Content-Type:");
            }
            option("--data-raw", &self.body);
        }
        Ok(command)
    }
}

/// A command of curl that was read.
#[derive(Default)]
struct Command {
    urls: Vec<String>,
    method: Option<String>,
    headers: HeaderMap,
    /// Headers that curl would add and the command takes out.
    removed: Vec<HeaderName>,
    cookies: Vec<(String, String)>,
    data: Option<Vec<u8>>,
    is_json: bool,
    data_to_query: bool,
    is_head: bool,
    unknown: Vec<String>,
}

impl Command {
    fn read(command: &str) -> Result<Self> {
        let mut words = words::split(command)?.into_iter();
        let program = words.next().unwrap_or_default();
        let program = String::from_utf8_lossy(&program).into_owned();
        if !matches!(program.rsplit('/').next(), Some("curl" | "curl.exe")) {
            return Err(Error::usage(format!(
                "a curl command begins with the word curl, not with \"{}\"",
                program.escape_debug().take(60).collect::<String>()
            )));
        }
        let mut read = Self::default();
        let mut only_urls = false;
        while let Some(word) = words.next() {
            if only_urls || !word.starts_with(b"-") || word == b"-" {
                read.set_url(&word)?;
            } else if word == b"--" {
                only_urls = true;
            } else if let Some(name) = word.strip_prefix(b"--") {
                let name = String::from_utf8_lossy(name).into_owned();
                read.option(&name, &format!("--{name}"), None, &mut words)?;
            } else {
                read.short_options(&word[1..], &mut words)?;
            }
        }
        Ok(read)
    }

    /// Reads a word such as `-sSL` or `-XPOST`, without its hyphen.
    fn short_options(&mut self, mut word: &[u8], words: &mut impl Iterator<Item = Vec<u8>>) -> Result<()> {
        while let Some((&letter, rest)) = word.split_first() {
            let shown = format!("-{}", char::from(letter));
            let Some((_, name)) = SHORT.iter().find(|(short, _)| *short == letter) else {
                self.unknown.push(shown);
                return Ok(());
            };
            if VALUED.contains(name) {
                let attached = (!rest.is_empty()).then(|| rest.to_vec());
                return self.option(name, &shown, attached, words);
            }
            self.option(name, &shown, None, words)?;
            word = rest;
        }
        Ok(())
    }

    fn option(
        &mut self,
        name: &str,
        shown: &str,
        attached: Option<Vec<u8>>,
        words: &mut impl Iterator<Item = Vec<u8>>,
    ) -> Result<()> {
        if !VALUED.contains(&name) {
            match name {
                "get" => self.data_to_query = true,
                "head" => self.is_head = true,
                name if HARMLESS.contains(&name) => {}
                _ => self.unknown.push(shown.to_owned()),
            }
            return Ok(());
        }
        let value = attached.or_else(|| words.next());
        let value = value.ok_or_else(|| {
            Error::usage(format!("the curl command ends behind {shown}, which takes a value"))
        })?;
        match name {
            "url" => self.set_url(&value),
            "request" => {
                self.method = Some(text(shown, &value)?);
                Ok(())
            }
            "header" => self.header(shown, &value),
            "cookie" => self.cookie(shown, &text(shown, &value)?),
            "user" => {
                let credentials = format!("Basic {}", BASE64_STANDARD.encode(&value));
                self.set_header(shown, AUTHORIZATION, credentials.as_bytes())
            }
            "user-agent" => self.set_header(shown, USER_AGENT, &value),
            "referer" => self.set_header(shown, REFERER, &value),
            _ => self.data(name, shown, value),
        }
    }

    fn set_url(&mut self, word: &[u8]) -> Result<()> {
        self.urls.push(text("the URL", word)?);
        Ok(())
    }

    fn header(&mut self, shown: &str, line: &[u8]) -> Result<()> {
        if line.starts_with(b"@") {
            return Err(names_a_file(shown, line));
        }
        let Some(colon) = line.iter().position(|byte| *byte == b':') else {
            // "Name;" is a header without a value.
            let Some(name) = line.strip_suffix(b";") else {
                return Err(Error::usage(format!(
                    "{shown} \"{}\" is no header: a colon is missing",
                    preview(line)
                )));
            };
            return self.set_header(shown, header_name(shown, name)?, b"");
        };
        let (name, value) = (header_name(shown, &line[..colon])?, line[colon + 1..].trim_ascii());
        if value.is_empty() {
            self.removed.push(name);
            return Ok(());
        }
        if name == COOKIE {
            return self.cookie(shown, &text(shown, value)?);
        }
        let value = HeaderValue::from_bytes(value).map_err(|_| not_allowed(shown, line))?;
        self.headers.append(name, value);
        Ok(())
    }

    fn set_header(&mut self, shown: &str, name: HeaderName, value: &[u8]) -> Result<()> {
        let value = HeaderValue::from_bytes(value).map_err(|_| not_allowed(shown, value))?;
        self.headers.insert(name, value);
        Ok(())
    }

    fn cookie(&mut self, shown: &str, cookies: &str) -> Result<()> {
        if !cookies.contains('=') {
            return Err(names_a_file(shown, cookies.as_bytes()));
        }
        let pairs = cookies.split(';').map(str::trim).filter(|pair| !pair.is_empty());
        self.cookies.extend(pairs.map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or(("", pair));
            (name.to_owned(), value.to_owned())
        }));
        Ok(())
    }

    fn data(&mut self, name: &str, shown: &str, value: Vec<u8>) -> Result<()> {
        let value = match name {
            "data-urlencode" => urlencoded(shown, &value)?,
            "data-raw" => value,
            _ if value.starts_with(b"@") => return Err(names_a_file(shown, &value)),
            _ => value,
        };
        self.is_json |= name == "json";
        match &mut self.data {
            Some(data) => {
                if name != "json" {
                    data.push(b'&');
                }
                data.extend_from_slice(&value);
            }
            None => self.data = Some(value),
        }
        Ok(())
    }

    fn into_request(self) -> Result<Request> {
        let written = match &self.urls[..] {
            [] => return Err(Error::usage("the curl command has no URL")),
            [url] => url.clone(),
            [_, second, ..] => {
                return Err(Error::usage(format!(
                    "the curl command has a second URL, \"{}\"; a request has one",
                    crate::secrets::redacted(second).escape_debug()
                )));
            }
        };
        // curl takes an address without a scheme for one of http.
        let absolute = if written.contains("://") { written } else { format!("http://{written}") };
        let mut request = Request::parse(&absolute)?;
        request.headers = self.headers;
        if !self.cookies.is_empty() {
            request.rare_mut().cookies = self.cookies;
        }
        let mut implied = if self.is_head { Method::HEAD } else { Method::GET };
        match self.data {
            Some(data) if self.data_to_query => add_to_query(&mut request.url, &data),
            Some(data) => {
                implied = Method::POST;
                let usual =
                    if self.is_json { "application/json" } else { "application/x-www-form-urlencoded" };
                let mut default = |name: HeaderName| {
                    if !request.headers.contains_key(&name) && !self.removed.contains(&name) {
                        request.headers.insert(name, HeaderValue::from_static(usual));
                    }
                };
                default(CONTENT_TYPE);
                if self.is_json {
                    default(ACCEPT);
                }
                request.body = data.into();
            }
            None => {}
        }
        request.method = match self.method {
            Some(name) => Method::from_bytes(name.to_ascii_uppercase().as_bytes())
                .map_err(|_| Error::usage(format!("-X \"{}\" is no method of HTTP", name.escape_debug())))?,
            None => implied,
        };
        Ok(request)
    }
}

/// The value of `--data-urlencode`: `content`, `=content` or `name=content`, where the content is encoded.
fn urlencoded(shown: &str, value: &[u8]) -> Result<Vec<u8>> {
    let encode = |content: &[u8]| percent_encoding::percent_encode(content, ENCODED).to_string();
    let at = value.iter().position(|byte| matches!(byte, b'=' | b'@'));
    match at.map(|at| (value[at], at)) {
        None => Ok(encode(value).into_bytes()),
        Some((b'@', _)) => Err(names_a_file(shown, value)),
        Some((_, 0)) => Ok(encode(&value[1..]).into_bytes()),
        Some((_, at)) => Ok([&value[..=at], encode(&value[at + 1..]).as_bytes()].concat()),
    }
}

fn add_to_query(url: &mut Url, data: &[u8]) {
    let data = String::from_utf8_lossy(data);
    let query = match url.query() {
        Some(query) => format!("{query}&{data}"),
        None => data.into_owned(),
    };
    url.set_query(Some(&query));
}

fn text(shown: &str, value: &[u8]) -> Result<String> {
    let text = str::from_utf8(value)
        .map_err(|_| Error::usage(format!("{shown} is not UTF-8: \"{}\"", preview(value))))?;
    Ok(text.to_owned())
}

fn header_name(shown: &str, name: &[u8]) -> Result<HeaderName> {
    HeaderName::from_bytes(name.trim_ascii()).map_err(|_| not_allowed(shown, name))
}

fn not_allowed(shown: &str, value: &[u8]) -> Error {
    Error::usage(format!("{shown} \"{}\" is not allowed in HTTP", preview(value)))
}

fn names_a_file(shown: &str, value: &[u8]) -> Error {
    Error::usage(format!(
        "{shown} \"{}\" names a file, and no files are read; write its content into the command",
        preview(value)
    ))
}

/// The beginning of a value, for messages.
fn preview(value: &[u8]) -> String {
    String::from_utf8_lossy(value).escape_debug().take(60).collect()
}

#[cfg(test)]
mod tests;

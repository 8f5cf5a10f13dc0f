//! Lines of server logs: the common and the combined format, also with the name of the host before them, and JSON.
//!
//! Formats: Apache HTTP Server, "Log Files" (`common`, `combined`, `vhost_combined`); the same of nginx; JSON as nginx, Caddy and Traefik write it, by
//! the usual names of its fields.

use std::borrow::Cow;
use std::net::IpAddr;

use serde_json::Value;

use super::time;

/// A request that a server answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Hit<'a> {
    /// The host, if the line names it.
    pub(super) host: Option<Cow<'a, str>>,
    pub(super) method: Cow<'a, str>,
    /// The path with the query, or a whole URL; empty if what was sent is no request.
    pub(super) target: Cow<'a, str>,
    pub(super) status: u16,
    pub(super) agent: Option<Cow<'a, str>>,
    pub(super) address: Option<IpAddr>,
    pub(super) time: Option<i64>,
}

/// Reads a line.
///
/// # Errors
/// What is wrong with it.
pub(super) fn read(line: &str) -> Result<Hit<'_>, &'static str> {
    let line = line.trim();
    if line.starts_with('{') {
        return json(line);
    }
    if line.starts_with('#') {
        return Err("it is a line of the W3C extended format, which is not read");
    }
    combined(line)
}

/// `host address identity user [time] "request" status bytes "referer" "agent"`; the host, and what is behind the bytes, may be missing.
fn combined(line: &str) -> Result<Hit<'_>, &'static str> {
    let (before, rest) = line.split_once('[').ok_or("it has no time in brackets")?;
    let (time, rest) = rest.split_once(']').ok_or("it has no time in brackets")?;
    let time = time::common(time).ok_or("its time is not as in 26/Nov/2026:14:03:00 +0000")?;
    let (request, rest) = quoted(rest).ok_or("it has no request in quotes")?;
    let mut numbers = rest.split_ascii_whitespace();
    let status = numbers.next().and_then(status).ok_or("it has no status behind the request")?;
    let mut names = before.split_ascii_whitespace();
    let (first, second) = (names.next().unwrap_or_default(), names.next().unwrap_or_default());
    let (host, address) = match (first.parse(), second.parse()) {
        (Ok(address), _) => (None, Some(address)),
        (Err(_), Ok(address)) => (Some(first), Some(address)),
        // A server that looks names of clients up.
        (Err(_), Err(_)) => (None, None),
    };
    let agent = quoted(rest).and_then(|(_, rest)| quoted(rest)).map(|(agent, _)| agent);
    let agent = agent.filter(|agent| !matches!(&**agent, "" | "-"));
    let mut hit =
        Hit { status, agent, address, time: Some(time), host: host.map(Cow::Borrowed), ..Hit::default() };
    match request {
        Cow::Borrowed(request) => hit.request(request, Cow::Borrowed),
        Cow::Owned(request) => hit.request(&request, |part| Cow::Owned(part.to_owned())),
    }
    Ok(hit)
}

impl<'a> Hit<'a> {
    /// Takes method and target of a request line. What is no request, such as the beginning of TLS on a port without it, has none.
    fn request<'b>(&mut self, line: &'b str, owned: impl Fn(&'b str) -> Cow<'a, str>) {
        let Some((method, rest)) = line.trim().split_once(' ') else { return };
        if !method.bytes().all(|byte| byte.is_ascii_uppercase()) {
            return;
        }
        let target = match rest.rsplit_once(' ') {
            Some((target, version)) if version.starts_with("HTTP/") => target,
            _ => rest,
        };
        (self.method, self.target) = (owned(method), owned(target.trim()));
    }
}

/// The text in the next quotes, and what is behind them. Servers write quotes and other signs within as `\"` and `\x22`.
fn quoted(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let begin = text.find('"')? + 1;
    let bytes = text.as_bytes();
    let (mut at, mut is_escaped) = (begin, false);
    while *bytes.get(at)? != b'"' {
        let is_mark = bytes[at] == b'\\';
        is_escaped |= is_mark;
        at += if is_mark { 2 } else { 1 };
    }
    let inner = text.get(begin..at)?;
    let inner = if is_escaped { Cow::Owned(unescaped(inner)) } else { Cow::Borrowed(inner) };
    Some((inner, text.get(at + 1..).unwrap_or_default()))
}

fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let of_number = |digits: &[u8]| {
            std::str::from_utf8(digits).ok().and_then(|digits| u8::from_str_radix(digits, 16).ok())
        };
        match (first, behind) {
            (b'\\', [b'x', digits @ ..]) if digits.len() >= 2 && of_number(&digits[..2]).is_some() => {
                bytes.extend(of_number(&digits[..2]));
                rest = &digits[2..];
            }
            (b'\\', [escaped, behind @ ..]) => {
                bytes.push(*escaped);
                rest = behind;
            }
            _ => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn status(text: &str) -> Option<u16> {
    text.parse().ok().filter(|status| (100..1_000).contains(status))
}

/// The names of fields in JSON, by what they tell. A field may be within another one: `request.uri`.
const HOST: &[&str] = &["host", "http_host", "vhost", "server_name", "request.host", "RequestHost"];
const REQUEST: &[&str] = &["request", "request_line"];
const METHOD: &[&str] = &["request_method", "method", "request.method", "RequestMethod", "http_method"];
const TARGET: &[&str] =
    &["request_uri", "uri", "request.uri", "RequestPath", "path", "url", "http_url", "request_path"];
const QUERY: &[&str] = &["args", "query_string"];
const STATUS: &[&str] =
    &["status", "status_code", "DownstreamStatus", "http_status", "response.status", "code"];
const AGENT: &[&str] = &[
    "http_user_agent",
    "user_agent",
    "userAgent",
    "agent",
    "request.headers.User-Agent",
    "request_User-Agent",
    "useragent",
];
const ADDRESS: &[&str] = &[
    "remote_addr",
    "client_ip",
    "remote_ip",
    "request.client_ip",
    "request.remote_ip",
    "ClientHost",
    "ip",
    "clientip",
    "client",
];
const TIME: &[&str] =
    &["time_iso8601", "time_local", "time", "timestamp", "@timestamp", "ts", "StartUTC", "msec", "date"];

fn json(line: &str) -> Result<Hit<'static>, &'static str> {
    let object: Value = serde_json::from_str(line).map_err(|_| "it is no valid JSON")?;
    let text = |names: &[&str]| names.iter().find_map(|name| text_of(field(&object, name)?));
    let mut hit = Hit {
        status: text(STATUS)
            .as_deref()
            .and_then(status)
            .ok_or("it has no status, such as {\"status\": 200}")?,
        host: text(HOST).map(Cow::Owned),
        agent: text(AGENT).filter(|agent| agent != "-").map(Cow::Owned),
        // A port may stand behind the address.
        address: text(ADDRESS)
            .and_then(|text| text.parse().ok().or_else(|| text.rsplit_once(':')?.0.parse().ok())),
        time: text(TIME).and_then(|text| time::any(&text)),
        ..Hit::default()
    };
    if let Some(target) = text(TARGET) {
        let query = text(QUERY).filter(|query| !matches!(query.as_str(), "" | "-") && !target.contains('?'));
        hit.method = text(METHOD).map_or(Cow::Borrowed("GET"), Cow::Owned);
        hit.target = query
            .map_or(target.clone(), |query| format!("{target}?{}", query.trim_start_matches('?')))
            .into();
    } else if let Some(request) = text(REQUEST) {
        hit.request(&request, |part| Cow::Owned(part.to_owned()));
    } else {
        return Err("it has no URL, such as {\"request_uri\": \"/\"}");
    }
    Ok(hit)
}

fn field<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    object.get(name).or_else(|| {
        let (outer, inner) = name.split_once('.')?;
        field(object.get(outer)?, inner)
    })
}

fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Array(values) => values.first().and_then(text_of),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(line: &str) -> String {
        match read(line) {
            Ok(hit) => format!(
                "{} {} {} {} | {} | {} | {}",
                hit.host.as_deref().unwrap_or("-"),
                hit.method,
                hit.target,
                hit.status,
                hit.agent.as_deref().unwrap_or("-"),
                hit.address.map_or("-".to_owned(), |address| address.to_string()),
                hit.time.unwrap_or(-1),
            ),
            Err(why) => why.to_owned(),
        }
    }

    #[test]
    fn lines_of_apache_and_nginx_are_read() {
        for (line, expected) in [
            (
                r#"127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326"#,
                "- GET /apache_pb.gif 200 | - | 127.0.0.1 | 971211336",
            ),
            (
                r#"66.249.66.1 - - [10/Oct/2000:20:55:36 +0000] "GET /a?b=1 HTTP/1.1" 404 - "-" "Mozilla/5.0 (compatible; Googlebot/2.1)""#,
                "- GET /a?b=1 404 | Mozilla/5.0 (compatible; Googlebot/2.1) | 66.249.66.1 | 971211336",
            ),
            (
                r#"shop.example:443 2001:db8::1 - - [10/Oct/2000:20:55:36 +0000] "HEAD /a%20b HTTP/2.0" 301 0 "https://x/?q=\"a\"" "a \"bot\" \x41\\" 0.003"#,
                "shop.example:443 HEAD /a%20b 301 | a \"bot\" A\\ | 2001:db8::1 | 971211336",
            ),
            (
                r#"crawl.example - - [10/Oct/2000:20:55:36 +0000] "GET /with space HTTP/1.1" 200 1 "-" "-""#,
                "- GET /with space 200 | - | - | 971211336",
            ),
            (
                r#"1.2.3.4 - - [10/Oct/2000:20:55:36 +0000] "\x16\x03\x01" 400 0 "-" "-""#,
                "-   400 | - | 1.2.3.4 | 971211336",
            ),
            (r#"1.2.3.4 - - [10/Oct/2000:20:55:36 +0000] "-" 408 0"#, "-   408 | - | 1.2.3.4 | 971211336"),
        ] {
            assert_eq!(told(line), expected, "{line}");
        }
    }

    #[test]
    fn json_is_read_by_the_names_of_several_servers() {
        for (line, expected) in [
            (
                r#"{"time_iso8601":"2000-10-10T20:55:36+00:00","remote_addr":"1.2.3.4","request":"GET /a?b HTTP/1.1","status":"200","http_user_agent":"bingbot","host":"shop.example"}"#,
                "shop.example GET /a?b 200 | bingbot | 1.2.3.4 | 971211336",
            ),
            (
                r#"{"ts":971211336.25,"request":{"remote_ip":"1.2.3.4","method":"HEAD","host":"shop.example:8443","uri":"/a","headers":{"User-Agent":["GPTBot"]}},"status":301}"#,
                "shop.example:8443 HEAD /a 301 | GPTBot | 1.2.3.4 | 971211336",
            ),
            (
                r#"{"ClientHost":"1.2.3.4","DownstreamStatus":404,"RequestHost":"b.example","RequestMethod":"GET","RequestPath":"/x","StartUTC":"2000-10-10T20:55:36.5Z","request_User-Agent":"x"}"#,
                "b.example GET /x 404 | x | 1.2.3.4 | 971211336",
            ),
            (
                r#"{"path":"/a","query_string":"?b=1","status":200,"remote_addr":"1.2.3.4:5678"}"#,
                "- GET /a?b=1 200 | - | 1.2.3.4 | -1",
            ),
        ] {
            assert_eq!(told(line), expected, "{line}");
        }
    }

    #[test]
    fn what_is_no_line_of_a_log_says_why() {
        for (line, expected) in [
            ("", "it has no time in brackets"),
            ("hello", "it has no time in brackets"),
            (
                "1.2.3.4 - - [yesterday] \"GET / HTTP/1.1\" 200 1",
                "its time is not as in 26/Nov/2026:14:03:00 +0000",
            ),
            ("1.2.3.4 - - [10/Oct/2000:20:55:36 +0000] GET / 200", "it has no request in quotes"),
            ("1.2.3.4 - - [10/Oct/2000:20:55:36 +0000] \"GET / HTTP/1.1", "it has no request in quotes"),
            ("1.2.3.4 - - [10/Oct/2000:20:55:36 +0000] \"GET / HTTP/1.1\\", "it has no request in quotes"),
            (
                "1.2.3.4 - - [10/Oct/2000:20:55:36 +0000] \"GET / HTTP/1.1\" - 1",
                "it has no status behind the request",
            ),
            ("{\"status\": 200", "it is no valid JSON"),
            ("{\"uri\": \"/\"}", "it has no status, such as {\"status\": 200}"),
            ("{\"status\": 200}", "it has no URL, such as {\"request_uri\": \"/\"}"),
            ("#Fields: date time", "it is a line of the W3C extended format, which is not read"),
        ] {
            assert_eq!(told(line), expected, "{line}");
        }
    }
}

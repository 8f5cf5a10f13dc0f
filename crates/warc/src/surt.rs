//! Sort-friendly keys of URLs (SURT), by which indexes of archives are sorted.
//!
//! They are those of the Python package `surt`, which players and indexers use: the host is reversed, without `www.` and without the default port; the
//! path and the query are in lower case, and the fields of the query are sorted.

/// The key of a URL, such as `example,shop)/a?b=c`.
///
/// ```
/// assert_eq!(huntsman_warc::surt("http://www.Shop.example:80/A/?c=2&b=1#d"), "example,shop)/a?b=1&c=2");
/// ```
pub fn surt(url: &str) -> String {
    let url: Vec<u8> = url.trim().bytes().filter(|b| !matches!(b, b'\n' | b'\r' | b'\t')).collect();
    if url.is_empty() {
        return "-".to_owned();
    }
    let parts = Parts::of(&with_scheme(&url));
    let path = match parts.path.as_slice() {
        b"" if parts.host.is_empty() => Vec::new(),
        path => lowered_path(&unescaped(path), !parts.host.is_empty()),
    };
    let mut key = Vec::new();
    if parts.host.is_empty() {
        key.extend_from_slice(&parts.scheme);
        key.push(b':');
    } else {
        let host = host_key(&parts.host, &parts.scheme);
        key.extend_from_slice(&host);
        if let Some(port) = parts.port {
            key.extend_from_slice(format!(":{port}").as_bytes());
        }
        key.push(b')');
    }
    key.extend_from_slice(&path);
    let query = sorted_query(&parts.query);
    if !query.is_empty() {
        if path.is_empty() {
            key.push(b'/');
        }
        key.push(b'?');
        key.extend_from_slice(&query);
    }
    String::from_utf8_lossy(&key).into_owned()
}

/// The parts of a URL, as bytes.
struct Parts {
    scheme: Vec<u8>,
    host: Vec<u8>,
    /// If it is not the default one.
    port: Option<u16>,
    path: Vec<u8>,
    query: Vec<u8>,
}

fn scheme_length(url: &[u8]) -> Option<usize> {
    let end = url.iter().position(|b| !(b.is_ascii_alphanumeric() || b"+-.".contains(b)))?;
    (url[end] == b':' && url[0].is_ascii_alphabetic()).then_some(end)
}

fn with_scheme(url: &[u8]) -> Vec<u8> {
    if scheme_length(url).is_none() {
        return [b"http://", url].concat();
    }
    // "http://https://..." is the last of them.
    let mut rest = url;
    loop {
        let after = [&b"http://"[..], b"https://"].into_iter().find_map(|scheme| rest.strip_prefix(scheme));
        match after {
            Some(after) if after.starts_with(b"http://") || after.starts_with(b"https://") => rest = after,
            _ => return rest.to_vec(),
        }
    }
}

impl Parts {
    fn of(url: &[u8]) -> Self {
        let end = scheme_length(url).unwrap_or(0);
        let (scheme, rest) = (url[..end].to_ascii_lowercase(), &url[(end + 1).min(url.len())..]);
        let until =
            |bytes: &[u8], ends: &[u8]| bytes.iter().position(|b| ends.contains(b)).unwrap_or(bytes.len());
        let rest = &rest[..until(rest, b"#")];
        let (mut authority, mut rest) = match rest.strip_prefix(b"//") {
            Some(after) => after.split_at(until(after, b"/?")),
            None => (&b""[..], rest),
        };
        if authority.is_empty() && scheme.starts_with(b"http") {
            // "http:////host/path"
            let start = rest.iter().position(|b| *b != b'/').unwrap_or(rest.len());
            (authority, rest) = rest[start..].split_at(until(&rest[start..], b"/?"));
        }
        let (path, query) = rest.split_at(until(rest, b"?"));
        let authority =
            authority.iter().rposition(|b| *b == b'@').map_or(authority, |at| &authority[at + 1..]);
        let (host, port) = host_and_port(authority);
        let default = match scheme.as_slice() {
            b"http" => 80,
            b"https" => 443,
            _ => 0,
        };
        Self {
            host: host.to_ascii_lowercase(),
            port: port.filter(|port| *port != default),
            path: path.to_vec(),
            query: query.get(1..).unwrap_or_default().to_vec(),
            scheme,
        }
    }
}

fn host_and_port(authority: &[u8]) -> (&[u8], Option<u16>) {
    let number = |digits: &[u8]| std::str::from_utf8(digits).ok()?.parse().ok();
    if let Some(literal) = authority.strip_prefix(b"[") {
        let end = literal.iter().position(|b| *b == b']').unwrap_or(literal.len());
        let port = literal.get(end + 1..).and_then(|rest| rest.strip_prefix(b":")).and_then(number);
        return (&literal[..end], port);
    }
    match authority.iter().position(|b| *b == b':') {
        Some(at) => (&authority[..at], number(&authority[at + 1..])),
        None => (authority, None),
    }
}

fn host_key(host: &[u8], scheme: &[u8]) -> Vec<u8> {
    let host = unescaped(host);
    let mut kept: Vec<u8> = Vec::with_capacity(host.len());
    let mut at = 0;
    while at < host.len() {
        kept.push(host[at]);
        at += if host[at..].starts_with(b"..") { 2 } else { 1 };
    }
    let host = kept.iter().position(|b| *b != b'.').map_or(&b""[..], |start| {
        let end = kept.iter().rposition(|b| *b != b'.').map_or(start, |end| end + 1);
        &kept[start..end]
    });
    let host = escaped(&host.to_ascii_lowercase());
    let host = match scheme {
        b"dns" => &host[..],
        _ => without_www(&host),
    };
    let mut labels: Vec<&[u8]> = host.split(|b| *b == b'.').collect();
    labels.reverse();
    labels.join(&b","[..])
}

/// Without `www.`, `www2.` and the like.
fn without_www(host: &[u8]) -> &[u8] {
    let Some(rest) = host.strip_prefix(b"www") else { return host };
    let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
    rest[digits..].strip_prefix(b".").unwrap_or(host)
}

fn lowered_path(path: &[u8], is_hierarchical: bool) -> Vec<u8> {
    let path = if is_hierarchical { normal_path(path) } else { path.to_vec() };
    let path = escaped(&path).to_ascii_lowercase();
    match path.strip_suffix(b"/") {
        Some(b"") | None => path,
        Some(rest) => rest.to_vec(),
    }
}

/// Without `.`, `..` and empty parts.
fn normal_path(path: &[u8]) -> Vec<u8> {
    let mut kept: Vec<&[u8]> = Vec::new();
    for part in path.split(|b| *b == b'/').skip(1) {
        match part {
            b"." => {}
            b".." if !kept.is_empty() => drop(kept.pop()),
            part => kept.push(part),
        }
    }
    let mut out = vec![b'/'];
    let Some((last, first)) = kept.split_last() else { return out };
    for part in first.iter().filter(|part| !part.is_empty()) {
        out.extend_from_slice(part);
        out.push(b'/');
    }
    out.extend_from_slice(last);
    out
}

fn sorted_query(query: &[u8]) -> Vec<u8> {
    let mut query = escaped(&unescaped(query));
    for session in SESSIONS {
        query = session.taken_from(query);
    }
    let query = query.to_ascii_lowercase();
    if query.len() <= 1 {
        return query;
    }
    let field = |field: &[u8]| match field.iter().position(|b| *b == b'=') {
        Some(at) => (field[..at].to_vec(), Some(field[at + 1..].to_vec())),
        None => (field.to_vec(), None),
    };
    let mut fields: Vec<_> = query.split(|b| *b == b'&').map(field).collect();
    fields.sort();
    let fields: Vec<Vec<u8>> = fields
        .into_iter()
        .map(|(name, value)| match value {
            Some(value) => [name, value].join(&b'='),
            None => name,
        })
        .collect();
    fields.join(&b'&')
}

/// A field that only names a session.
struct SessionField {
    name: &'static [u8],
    /// Letters between the name and the equals sign.
    more_name: usize,
    length: usize,
    digits: bool,
}

const SESSIONS: [SessionField; 4] = [
    SessionField { name: b"jsessionid", more_name: 0, length: 32, digits: true },
    SessionField { name: b"phpsessid", more_name: 0, length: 32, digits: true },
    SessionField { name: b"sid", more_name: 0, length: 32, digits: true },
    SessionField { name: b"aspsessionid", more_name: 8, length: 24, digits: false },
];

impl SessionField {
    /// The query without the last such field that ends at `&` or at the end.
    fn taken_from(&self, query: Vec<u8>) -> Vec<u8> {
        for at in (0..query.len()).rev() {
            if let Some(end) = self.end(&query, at) {
                let rest = query.get(end + 1..).unwrap_or_default();
                return [&query[..at], rest].concat();
            }
        }
        query
    }

    fn end(&self, query: &[u8], at: usize) -> Option<usize> {
        let equals = at + self.name.len() + self.more_name;
        let end = equals + 1 + self.length;
        let is_here = query.get(at..at + self.name.len())?.eq_ignore_ascii_case(self.name)
            && query.get(at + self.name.len()..equals)?.iter().all(u8::is_ascii_alphabetic)
            && *query.get(equals)? == b'='
            && query
                .get(equals + 1..end)?
                .iter()
                .all(|b| b.is_ascii_alphabetic() || (self.digits && b.is_ascii_digit()));
        (is_here && matches!(query.get(end), None | Some(b'&'))).then_some(end)
    }
}

/// Percent-decoded until nothing changes.
fn unescaped(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    loop {
        let mut out = Vec::with_capacity(bytes.len());
        let mut at = 0;
        while at < bytes.len() {
            let hex = |at: usize| char::from(*bytes.get(at)?).to_digit(16);
            match (bytes[at], hex(at + 1), hex(at + 2)) {
                (b'%', Some(high), Some(low)) => {
                    out.push(u8::try_from(high * 16 + low).expect("two digits"));
                    at += 3;
                }
                (byte, ..) => {
                    out.push(byte);
                    at += 1;
                }
            }
        }
        if out.len() == bytes.len() {
            return out;
        }
        bytes = out;
    }
}

/// What is not printable ASCII, `#` and `%` are percent-encoded.
fn escaped(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            b'#' | b'%' => out.extend_from_slice(format!("%{byte:02X}").as_bytes()),
            0x21..=0x7e => out.push(*byte),
            _ => out.extend_from_slice(format!("%{byte:02X}").as_bytes()),
        }
    }
    out
}

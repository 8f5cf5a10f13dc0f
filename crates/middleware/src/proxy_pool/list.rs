//! The list of proxies, as the settings or a file give it.

use std::collections::HashMap;
use std::path::Path;

use huntsman_crawler::{Error, Result};
use url::Url;

use crate::proxies::check;

/// Greatest number of proxies: choosing one looks at all of them.
const MAX_PROXIES: usize = 10_000;

/// One proxy of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listed {
    /// The address, which may contain user and password.
    pub(crate) url: String,
    /// Host and port, with a number if another proxy of the list has the same. It never contains a user.
    pub(crate) name: String,
    pub(crate) weight: u32,
}

/// Reads the proxies of the settings, and those of the file if there is one.
pub(crate) fn read(entries: &[String], file: Option<&Path>) -> Result<Vec<Listed>> {
    let mut listed = Vec::new();
    let mut names = HashMap::new();
    for (index, entry) in entries.iter().enumerate() {
        let source = format!("setting proxy_pool, entry {}", index + 1);
        listed.push(parse(entry, &source, &mut names)?);
    }
    if let Some(path) = file {
        let doing = || format!("setting proxy_pool_file: reading {}", path.display());
        let text = std::fs::read_to_string(path).map_err(|cause| Error::from(cause).context(doing()))?;
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if !line.is_empty() && !line.starts_with('#') {
                let source = format!("{}, line {}", path.display(), index + 1);
                listed.push(parse(line, &source, &mut names)?);
            }
        }
        if listed.is_empty() {
            return Err(Error::usage(format!("setting proxy_pool_file: {} lists no proxy", path.display())));
        }
    }
    if listed.len() > MAX_PROXIES {
        let count = listed.len();
        return Err(Error::usage(format!(
            "the pool has {count} proxies; at most {MAX_PROXIES} are possible"
        )));
    }
    Ok(listed)
}

/// Reads `URL`, `URL weight=3`, or `host:port:user:password`, as sellers of proxies write it. The error does not repeat the entry, which may
/// contain a password.
fn parse(entry: &str, source: &str, names: &mut HashMap<String, u32>) -> Result<Listed> {
    let mut words = entry.split_whitespace();
    let address = words.next().unwrap_or_default();
    let mut weight = 1;
    for word in words {
        let number = word.strip_prefix("weight=").and_then(|number| number.parse().ok());
        weight = number.filter(|weight| (1..=1_000).contains(weight)).ok_or_else(|| {
            Error::usage(format!(
                "{source}: after the address only weight=N is possible, with N from 1 to 1000"
            ))
        })?;
    }
    let url = check(&of_four_parts(address).unwrap_or_else(|| address.to_owned()), source)?;
    let parsed = Url::parse(&url).map_err(|_| Error::usage(format!("{source}: the address is not a URL")))?;
    let usual = match parsed.scheme() {
        "https" => 443,
        "http" => 80,
        _ => 1080,
    };
    let place = format!("{}:{}", parsed.host_str().unwrap_or_default(), parsed.port().unwrap_or(usual));
    let count = names.entry(place.clone()).or_default();
    *count += 1;
    let name = if *count == 1 { place } else { format!("{place}#{count}") };
    Ok(Listed { url, name, weight })
}

/// The URL of `host:port:user:password`; `None` if the address is written in another way.
fn of_four_parts(address: &str) -> Option<String> {
    let parts: Vec<&str> = address.split(':').collect();
    let [host, port, user, password] = parts[..] else { return None };
    let is_host = !host.is_empty() && !host.contains(['/', '@', '[']);
    if !is_host || port.parse::<u16>().is_err() {
        return None;
    }
    let mut url = Url::parse(&format!("http://{host}:{port}")).ok()?;
    url.set_username(user).ok()?;
    url.set_password(Some(password)).ok()?;
    Some(url.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(list: &[&str]) -> Result<Vec<Listed>> {
        read(&list.iter().map(|entry| (*entry).to_owned()).collect::<Vec<_>>(), None)
    }

    #[test]
    fn proxies_are_named_by_host_and_port_and_never_by_their_users() {
        let listed = entries(&[
            "http://ann:SECRET@gate.example:7000",
            "http://bob:SECRET@gate.example:7000 weight=3",
            "p.example:3128",
            "socks5h://s.example",
            "1.2.3.4:8080:ann:SEC@RET",
        ])
        .unwrap();
        let shown: Vec<(&str, u32)> = listed.iter().map(|proxy| (&*proxy.name, proxy.weight)).collect();
        let expected = [
            ("gate.example:7000", 1),
            ("gate.example:7000#2", 3),
            ("p.example:3128", 1),
            ("s.example:1080", 1),
            ("1.2.3.4:8080", 1),
        ];
        assert_eq!(shown, expected);
        assert_eq!(listed[4].url, "http://ann:SEC%40RET@1.2.3.4:8080/");
        assert_eq!(listed[2].url, "http://p.example:3128");
    }

    #[test]
    fn a_bad_entry_is_named_by_its_place_and_not_repeated() {
        for (bad, what) in [
            ("ftp://ann:SECRET@h", "expected http, https, socks5"),
            ("http://ann:SECRET@h weight=0", "weight=N"),
            ("http://ann:SECRET@h wight=2", "weight=N"),
            ("", "expected http"),
        ] {
            let error = entries(&["http://ok:1", bad]).unwrap_err();
            let text = error.to_string();
            assert!(error.is_usage() && text.contains("entry 2") && text.contains(what), "{text}");
            assert!(!text.contains("SECRET"), "{text}");
        }
    }

    #[test]
    fn a_file_has_a_proxy_a_line_and_its_errors_name_the_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("proxies.txt");
        std::fs::write(&path, "# ours\n\nhttp://a:1\n  http://b:2 weight=2  \n").unwrap();
        let listed = read(&["http://a:1".to_owned()], Some(&path)).unwrap();
        let names: Vec<&str> = listed.iter().map(|proxy| &*proxy.name).collect();
        assert_eq!(names, ["a:1", "a:1#2", "b:2"]);
        std::fs::write(&path, "http://a:1\nftp://u:SECRET@b\n").unwrap();
        let error = read(&[], Some(&path)).unwrap_err().to_string();
        assert!(error.contains("proxies.txt, line 2") && !error.contains("SECRET"), "{error}");
        std::fs::write(&path, "# none\n").unwrap();
        assert!(read(&[], Some(&path)).unwrap_err().to_string().contains("lists no proxy"));
        let missing = read(&[], Some(&folder.path().join("none"))).unwrap_err().to_string();
        assert!(missing.contains("proxy_pool_file: reading"), "{missing}");
    }
}

//! Wrong input: the message says what is wrong, where, and what to do; the exit code is right; no files are left
//! behind.

use huntsman_testkit::{RunningSite, Site};

use crate::common::{huntsman, run};

fn site() -> RunningSite {
    Site::builder().page("/", "x").start_blocking()
}

/// Runs `crawl` with these arguments in an empty directory, and checks that it stays empty and that no secret is
/// printed.
fn refused(args: &[&str], code: i32, parts: &[&str]) {
    let dir = tempfile::tempdir().unwrap();
    let said = run(huntsman(dir.path()).arg("crawl").args(args));
    assert_eq!(said.code, Some(code), "{args:?}: {said:?}");
    for part in parts {
        assert!(said.stderr.contains(part), "{args:?}: no \"{part}\" in {}", said.stderr);
    }
    assert_eq!(said.stdout, "");
    assert!(!said.stderr.contains("SECRET"), "{args:?}: {}", said.stderr);
    let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(left.is_empty(), "{args:?} left {left:?}");
}

#[test]
fn a_url_that_is_none() {
    refused(&["not a url"], 2, &["not a url", "https://example.org/"]);
    refused(&["http://"], 2, &["http://"]);
    refused(&["localhost"], 2, &["localhost is neither a URL", "https://example.org/", "crawl localhost"]);
}

#[test]
fn a_scheme_that_is_not_crawled() {
    refused(&["file:///etc/passwd"], 2, &["only http and https"]);
}

#[test]
fn no_start_url_at_all() {
    refused(&[], 2, &["<URL>"]);
}

#[test]
fn an_unknown_flag_names_the_nearest() {
    refused(&["http://a.example/", "--max-page", "3"], 2, &["--max-page", "--max-pages"]);
}

#[test]
fn an_unknown_setting_names_the_nearest() {
    refused(
        &["http://a.example/", "--set", "retry_tmies=3"],
        2,
        &["retry_tmies", "did you mean retry_times?"],
    );
}

#[test]
fn a_setting_of_the_wrong_type() {
    refused(&["http://a.example/", "--set", "retry_times=often"], 2, &["retry_times", "often"]);
}

#[test]
fn a_settings_file_that_is_not_there_or_broken() {
    refused(&["http://a.example/", "--config", "nowhere.toml"], 2, &["nowhere.toml"]);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "retry_times = = 3\n").unwrap();
    let path = file.path().to_str().unwrap();
    refused(&["http://a.example/", "--config", path], 2, &[path, "line 1"]);
}

#[test]
fn a_private_address_is_refused_before_anything_is_made() {
    let site = site();
    let url = site.url("/").to_string();
    let flag = format!("--allow-address 127.0.0.1:{}", site.port());
    refused(&[&url], 1, &["127.0.0.1", &flag]);
    assert_eq!(site.requests().len(), 0);
}

#[test]
fn odd_spellings_of_a_private_address_are_refused_too() {
    let site = site();
    for host in ["2130706433", "0x7f.1", "0177.0.0.1", "[::ffff:127.0.0.1]", "127.1"] {
        refused(&[&format!("http://{host}:{}/", site.port())], 1, &["--allow-address"]);
    }
    assert_eq!(site.requests().len(), 0);
}

#[test]
fn a_name_that_does_not_resolve() {
    refused(&["http://no-such-host.invalid/"], 1, &["no-such-host.invalid", "check the name"]);
}

#[test]
fn an_output_that_cannot_be_written() {
    let site = site();
    let (url, address) = (site.url("/").to_string(), format!("127.0.0.1:{}", site.port()));
    let out = |path: &str| {
        refused(&[&url, "--allow-address", &address, "--profile", "test", "--out", path], 2, &[path]);
    };
    out("/proc/nowhere/out");
    out("/dev/null");
    assert_eq!(site.requests().len(), 0);
}

#[test]
fn a_store_that_this_build_does_not_have() {
    refused(&["http://a.example/", "--store", "redis://127.0.0.1"], 2, &["no such store", "memory"]);
}

#[test]
fn a_glob_an_exception_a_resolution_or_a_list_that_is_not_understood() {
    refused(&["http://a.example/", "--include", "["], 2, &["include"]);
    refused(&["http://a.example/", "--allow-address", "here"], 2, &["here"]);
    refused(&["http://a.example/", "--resolve", "a.example=1"], 2, &["a.example=1"]);
    refused(&["http://a.example/", "--only", "nowhere.txt"], 2, &["nowhere.txt"]);
    refused(&["http://a.example/", "--auth", "nonsense"], 2, &["http_auth"]);
}

#[test]
fn credentials_for_every_host_are_refused_with_what_to_use() {
    for name in ["Authorization", "authorization", "X-Api-Key", "Cookie", "Proxy-Authorization"] {
        let headers = format!("default_request_headers={{\"{name}\": \"SECRET\"}}");
        refused(&["http://a.example/", "--set", &headers], 2, &["default_request_headers", name, "--"]);
    }
}

#[test]
fn seeds_with_a_line_that_is_no_url_name_the_line() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "http://a.example/\nnonsense\n").unwrap();
    refused(&["--seeds", file.path().to_str().unwrap()], 2, &["line 2", "nonsense"]);
    refused(&["--seeds", "nowhere.txt"], 2, &["nowhere.txt"]);
    refused(&["--seeds", "-"], 2, &["stdin has no start URL"]);
}

#[test]
fn metrics_for_everybody_must_be_asked_for() {
    refused(&["http://a.example/", "--metrics", "0.0.0.0:0"], 2, &["--metrics-public"]);
}

#[test]
fn broad_crawls_without_a_contact() {
    refused(&["http://a.example/", "--profile", "broad"], 2, &["contact", "user_agent"]);
}

#[test]
fn a_log_that_cannot_be_written() {
    let site = site();
    let (url, address) = (site.url("/").to_string(), format!("127.0.0.1:{}", site.port()));
    refused(&[&url, "--allow-address", &address, "--set", "log_file=/nowhere/log"], 2, &["/nowhere/log"]);
    refused(&[&url, "--allow-address", &address, "--set", "log_level=loud"], 2, &["log_level", "loud"]);
}

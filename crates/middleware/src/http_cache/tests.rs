//! Single requests with a store, hook by hook.

use super::*;
use http::Method;
use huntsman_crawler::FetchErrorKind;
use tempfile::TempDir;

use crate::http_cache::HttpCacheSettings;
use crate::retry::RetrySettings;

struct Cache {
    cache: HttpCache,
    cx: Context,
    folder: TempDir,
}

fn settings(folder: &TempDir, change: impl FnOnce(&mut Settings)) -> Settings {
    let mut settings = Settings::default();
    settings.change(|own: &mut HttpCacheSettings| own.httpcache_enabled = true);
    settings.change(|own: &mut HttpCacheSettings| {
        own.httpcache_dir = folder.path().join("cache").to_str().unwrap().to_owned()
    });
    change(&mut settings);
    settings
}

impl Cache {
    fn new(change: impl FnOnce(&mut Settings)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let settings = settings(&folder, change);
        let cache = HttpCache::from_settings(&settings).unwrap().unwrap();
        Self { cache, cx: Context::detached(settings), folder }
    }

    fn rfc(change: impl FnOnce(&mut Settings)) -> Self {
        Self::new(|settings| {
            settings.change(|own: &mut HttpCacheSettings| own.httpcache_policy = HttpCachePolicy::Rfc);
            change(settings);
        })
    }

    /// The same directory in another run with other settings.
    fn reopened(self, change: impl FnOnce(&mut Settings)) -> Self {
        let Self { cache, folder, .. } = self;
        drop(cache);
        let settings = settings(&folder, change);
        let cache = HttpCache::from_settings(&settings).unwrap().unwrap();
        Self { cache, cx: Context::detached(settings), folder }
    }

    /// The result of the chain for a request whose download ends like this: the origin of the response, its status and
    /// body.
    async fn exchange(&self, mut request: Request, answer: Result<Response, FetchError>) -> String {
        let mut response = match self.cache.process_request(&mut request, &self.cx).await.unwrap() {
            OnRequest::Continue => match answer {
                Ok(response) => response,
                Err(error) => match self.cache.process_exception(&request, &error, &self.cx).await.unwrap() {
                    OnException::Respond(response) => *response,
                    _ => return format!("failed {}", error.kind().name()),
                },
            },
            OnRequest::Respond(response) => *response,
            OnRequest::Drop(reason) => return format!("dropped {}", reason.reason),
            OnRequest::Reschedule(_) | OnRequest::Fail(_) => panic!("never"),
        };
        self.cache.process_response(&request, &mut response, &self.cx).await.unwrap();
        self.cache.storage.flush().unwrap();
        let from = if response.has_flag("cached") { "cached" } else { "network" };
        format!("{from} {} {}", response.status.as_u16(), String::from_utf8_lossy(&response.body))
    }

    async fn get(&self, answer: Response) -> String {
        self.exchange(request("http://h/a"), Ok(answer)).await
    }

    fn stats(&self) -> Vec<(String, i64)> {
        let all = self.cx.stats().snapshot().into_iter();
        all.filter_map(|(key, value)| {
            Some((key.strip_prefix("httpcache/")?.to_owned(), value.as_i64().unwrap()))
        })
        .collect()
    }
}

fn request(url: &str) -> Request {
    Request::parse(url).unwrap()
}

fn answer(status: u16, headers: &[(&'static str, &str)], body: &'static str) -> Response {
    let url = url::Url::parse("http://h/a").unwrap();
    let mut response = Response::new(url, StatusCode::from_u16(status).unwrap(), body);
    for (name, value) in headers {
        response.headers.append(*name, value.parse().unwrap());
    }
    response
}

fn pairs(pairs: &[(&str, i64)]) -> Vec<(String, i64)> {
    pairs.iter().map(|(key, count)| ((*key).to_owned(), *count)).collect()
}

#[tokio::test(start_paused = true)]
async fn the_dummy_policy_stores_and_uses_everything() {
    let cache = Cache::new(|_| {});
    for (n, status) in [200, 201, 301, 404, 410].into_iter().enumerate() {
        let url = format!("http://h/{n}");
        let first = answer(status, &[("cache-control", "no-store"), ("vary", "*")], "one");
        assert_eq!(cache.exchange(request(&url), Ok(first)).await, format!("network {status} one"));
        let second = cache.exchange(request(&url), Ok(answer(500, &[], "two"))).await;
        assert_eq!(second, format!("cached {status} one"));
    }
    let expected = pairs(&[("firsthand", 5), ("hit", 5), ("miss", 5), ("store", 5)]);
    assert_eq!(cache.stats(), expected);
}

#[tokio::test(start_paused = true)]
async fn failures_and_cut_off_bodies_are_never_stored() {
    let cache =
        Cache::new(|settings| settings.change(|own: &mut RetrySettings| own.retry_http_codes = vec![418]));
    for status in [500, 503, 599, 408, 429, 418, 206, 304] {
        assert!(cache.get(answer(status, &[], "")).await.starts_with("network"), "{status}");
        assert_eq!(cache.stats(), pairs(&[("firsthand", 1), ("miss", 1), ("uncacheable", 1)]), "{status}");
        for key in ["firsthand", "miss", "uncacheable"] {
            cache.cx.stats().counter(&format!("httpcache/{key}")).set(0);
        }
    }
    for flag in ["dataloss", "partial", "truncated", "unread", "download_stopped"] {
        let mut cut = answer(200, &[], "cut");
        cut.add_flag(flag);
        assert_eq!(cache.get(cut).await, "network 200 cut", "{flag}");
    }
    assert_eq!(cache.get(answer(200, &[], "whole")).await, "network 200 whole");
    assert_eq!(cache.get(answer(200, &[], "new")).await, "cached 200 whole");
}

#[tokio::test(start_paused = true)]
async fn some_requests_pass_by() {
    let cache = Cache::new(|settings| {
        settings.change(|own: &mut HttpCacheSettings| own.httpcache_ignore_schemes = vec!["FTP".to_owned()]);
        settings.change(|own: &mut HttpCacheSettings| own.httpcache_ignore_http_codes = vec![404]);
    });
    for asked in [
        request("http://h/a").with_meta(meta::DONT_CACHE, true),
        request("http://h/a").header("range", "bytes=0-1").unwrap(),
        request("ftp://h/a"),
    ] {
        for _ in 0..2 {
            assert_eq!(cache.exchange(asked.clone(), Ok(answer(200, &[], "x"))).await, "network 200 x");
        }
    }
    assert!(cache.stats().is_empty());
    for _ in 0..2 {
        assert_eq!(cache.get(answer(404, &[], "none")).await, "network 404 none");
    }
}

#[tokio::test(start_paused = true)]
async fn the_key_is_method_address_and_body() {
    let cache = Cache::new(|_| {});
    let form = |value| Request::form(url::Url::parse("http://h/a").unwrap(), [("k", value)]);
    let head = request("http://h/a").method(Method::HEAD);
    let others = [request("http://h/a"), head, request("http://g/a"), form("1"), form("2")];
    for (n, asked) in others.iter().enumerate() {
        let body = ["0", "1", "2", "3", "4"][n];
        assert_eq!(
            cache.exchange(asked.clone(), Ok(answer(200, &[], body))).await,
            format!("network 200 {body}")
        );
    }
    for (n, asked) in others.into_iter().enumerate() {
        assert_eq!(cache.exchange(asked, Ok(answer(200, &[], "x"))).await, format!("cached 200 {n}"));
    }
    let same = request("http://h/a#fragment");
    assert_eq!(cache.exchange(same, Ok(answer(200, &[], "x"))).await, "cached 200 0");
}

#[tokio::test(start_paused = true)]
async fn an_old_answer_is_missing() {
    let cache = Cache::new(|settings| {
        settings.change(|own: &mut HttpCacheSettings| own.httpcache_expiration_secs = 60.0)
    });
    cache.get(answer(200, &[], "one")).await;
    tokio::time::advance(std::time::Duration::from_secs(59)).await;
    assert_eq!(cache.get(answer(200, &[], "two")).await, "cached 200 one");
    tokio::time::advance(std::time::Duration::from_secs(2)).await;
    assert_eq!(cache.get(answer(200, &[], "two")).await, "network 200 two");
    assert_eq!(cache.get(answer(200, &[], "three")).await, "cached 200 two");
}

#[tokio::test(start_paused = true)]
async fn without_a_network_what_is_missing_is_dropped() {
    let cache = Cache::rfc(|_| {});
    cache.get(answer(200, &[("etag", "\"1\"")], "one")).await;
    let offline = cache.reopened(|settings| {
        settings.change(|own: &mut HttpCacheSettings| own.httpcache_policy = HttpCachePolicy::Rfc);
        settings.change(|own: &mut HttpCacheSettings| own.httpcache_ignore_missing = true);
    });
    assert_eq!(offline.get(answer(200, &[], "two")).await, "cached 200 one", "stale, but there is no other");
    let missing = offline.exchange(request("http://h/b"), Ok(answer(200, &[], "b"))).await;
    assert_eq!(missing, "dropped not_cached");
    assert_eq!(offline.stats(), pairs(&[("hit", 1), ("ignore", 1), ("miss", 1)]));
}

#[tokio::test(start_paused = true)]
async fn a_damaged_entry_is_a_miss_and_is_replaced() {
    let cache = Cache::new(|_| {});
    cache.get(answer(200, &[], "one")).await;
    cache.cache.storage.damage(request("http://h/a").fingerprint());
    assert_eq!(cache.get(answer(200, &[], "two")).await, "network 200 two");
    assert_eq!(cache.get(answer(200, &[], "three")).await, "cached 200 two");
    let expected = [("firsthand", 2), ("hit", 1), ("miss", 2), ("retrieve_error", 1), ("store", 2)];
    assert_eq!(cache.stats(), pairs(&expected));
}

#[tokio::test(start_paused = true)]
async fn a_directory_has_one_process_at_a_time_and_crawls_of_it_share_it() {
    let cache = Cache::new(|_| {});
    cache.get(answer(200, &[], "one")).await;
    let other = HttpCache::from_settings(cache.cx.settings()).unwrap().unwrap();
    let mut asked = request("http://h/a");
    let answered = other.process_request(&mut asked, &cache.cx).await.unwrap();
    assert!(matches!(answered, OnRequest::Respond(response) if &response.body[..] == b"one"));
    let path = cache.folder.path().join("cache");
    let error = HttpCacheDirectory::read(&path).unwrap_err().to_string();
    assert!(error.contains("another process"), "{error}");
    let Cache { cache, cx, folder: _folder } = cache;
    drop((cache, other));
    // As another process would see it.
    let held = HttpCacheDirectory::read(&path).unwrap();
    let second = HttpCacheDirectory::read(&path).unwrap();
    assert_eq!((held.usage().unwrap().responses, second.usage().unwrap().responses), (1, 1));
    let error = HttpCache::from_settings(cx.settings()).unwrap_err().to_string();
    assert!(error.contains("httpcache_dir") && error.contains("another process reads"), "{error}");
    assert!(HttpCache::from_settings(&Settings::default()).unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_stale_answer_is_asked_for_with_its_validators() {
    let cache = Cache::rfc(|_| {});
    let changed = "Tue, 14 Nov 2023 22:13:20 GMT";
    let headers = [("etag", "\"1\""), ("last-modified", changed), ("cache-control", "max-age=60")];
    cache.get(answer(200, &headers, "one")).await;
    assert_eq!(cache.get(answer(200, &[], "two")).await, "cached 200 one", "fresh");
    tokio::time::advance(std::time::Duration::from_secs(61)).await;
    let mut asked = request("http://h/a");
    let OnRequest::Continue = cache.cache.process_request(&mut asked, &cache.cx).await.unwrap() else {
        panic!("it is stale");
    };
    assert_eq!(asked.headers["if-none-match"], "\"1\"");
    assert_eq!(asked.headers["if-modified-since"], changed);
    assert!(added::is_ours(&asked, &header::IF_NONE_MATCH), "a redirect does not carry it on");

    let unchanged = answer(304, &[("cache-control", "max-age=10"), ("x-new", "1")], "");
    assert_eq!(cache.get(unchanged).await, "cached 200 one");
    tokio::time::advance(std::time::Duration::from_secs(9)).await;
    assert_eq!(cache.get(answer(200, &[], "two")).await, "cached 200 one", "fresh again by the 304");
    tokio::time::advance(std::time::Duration::from_secs(2)).await;
    assert_eq!(cache.get(answer(200, &[("etag", "\"2\"")], "two")).await, "network 200 two");
    let expected =
        [("firsthand", 1), ("hit", 2), ("invalidate", 1), ("miss", 1), ("revalidate", 1), ("store", 2)];
    assert_eq!(cache.stats(), pairs(&expected));
}

#[tokio::test(start_paused = true)]
async fn a_304_to_validators_of_others_says_nothing_of_the_stored_answer() {
    let cache = Cache::rfc(|_| {});
    let theirs = || request("http://h/a").header("if-none-match", "\"theirs\"").unwrap();
    cache.get(answer(200, &[("cache-control", "max-age=0")], "one")).await;
    assert_eq!(cache.exchange(theirs(), Ok(answer(304, &[], ""))).await, "network 304 ");
    assert_eq!(cache.get(answer(503, &[], "sorry")).await, "cached 200 one", "and does not forget it");

    cache.get(answer(200, &[("last-modified", "Tue, 14 Nov 2023 22:13:20 GMT")], "two")).await;
    tokio::time::advance(std::time::Duration::from_secs(86_400 * 3_650)).await;
    let mut asked = theirs();
    cache.cache.process_request(&mut asked, &cache.cx).await.unwrap();
    assert!(!asked.headers.contains_key("if-none-match") && asked.headers.contains_key("if-modified-since"));
    assert_eq!(cache.exchange(theirs(), Ok(answer(304, &[], ""))).await, "cached 200 two");
}

#[tokio::test(start_paused = true)]
async fn a_stale_answer_helps_out_unless_it_must_be_revalidated() {
    for (control, helps) in [("max-age=0", true), ("max-age=0, must-revalidate", false)] {
        let cache = Cache::rfc(|_| {});
        cache.get(answer(200, &[("etag", "\"1\""), ("cache-control", control)], "one")).await;
        let bad = cache.get(answer(503, &[], "sorry")).await;
        assert_eq!(bad, if helps { "cached 200 one" } else { "network 503 sorry" }, "{control}");
        let lost = FetchError::new(FetchErrorKind::Reset, "lost");
        let lost = cache.exchange(request("http://h/a"), Err(lost)).await;
        assert_eq!(lost, if helps { "cached 200 one" } else { "failed connection_reset" }, "{control}");
        // A refusal by the address guard is not a network failure.
        let refused = FetchError::new(FetchErrorKind::AddressRefused, "inside");
        assert_eq!(cache.exchange(request("http://h/a"), Err(refused)).await, "failed address_refused");
        assert_eq!(cache.cx.stats().get("httpcache/errorrecovery"), i64::from(helps));
        assert_eq!(cache.get(answer(304, &[], "")).await, "cached 200 one", "a failure forgets nothing");
    }
}

#[tokio::test(start_paused = true)]
async fn a_response_that_became_private_is_removed() {
    let cache = Cache::rfc(|_| {});
    cache.get(answer(200, &[("etag", "\"1\"")], "one")).await;
    assert_eq!(cache.get(answer(200, &[("cache-control", "no-store")], "two")).await, "network 200 two");
    assert_eq!(cache.get(answer(503, &[], "sorry")).await, "network 503 sorry", "not the first one");
}

#[tokio::test(start_paused = true)]
async fn answers_vary_by_the_headers_that_they_name() {
    let cache = Cache::rfc(|_| {});
    let asked = |language: &str, agent: &str| {
        request("http://h/a")
            .header("accept-language", language)
            .unwrap()
            .header("user-agent", agent)
            .unwrap()
    };
    let varying = [("cache-control", "max-age=60"), ("vary", "Accept-Language")];
    let none = || Ok(answer(200, &varying, "x"));
    assert_eq!(
        cache.exchange(asked("de", "a"), Ok(answer(200, &varying, "hallo"))).await,
        "network 200 hallo"
    );
    assert_eq!(
        cache.exchange(asked("en", "a"), Ok(answer(200, &varying, "hello"))).await,
        "network 200 hello"
    );
    assert_eq!(cache.exchange(asked("de", "b"), none()).await, "cached 200 hallo");
    assert_eq!(cache.exchange(asked("en", "b"), none()).await, "cached 200 hello");
    assert_eq!(cache.exchange(request("http://h/a"), none()).await, "network 200 x", "absent is a value");
    assert_eq!(cache.exchange(request("http://h/a"), none()).await, "cached 200 x");
}

/// A request with a header, as middlewares mark what they bind to an origin.
fn with(name: &'static str, value: &str, is_marked: bool) -> Request {
    let mut request = request("http://h/a");
    let mut value = http::HeaderValue::from_str(value).unwrap();
    value.set_sensitive(is_marked);
    request.headers.insert(name, value);
    request
}

#[tokio::test(start_paused = true)]
async fn what_was_fetched_with_credentials_is_for_the_same_credentials_only() {
    for policy in [HttpCachePolicy::Dummy, HttpCachePolicy::Rfc] {
        for (name, is_marked) in
            [("authorization", false), ("cookie", false), ("cookie", true), ("x-api-key", true)]
        {
            let mut cache = Cache::new(|settings| {
                settings.change(|own: &mut HttpCacheSettings| own.httpcache_policy = policy)
            });
            let fresh = |body| Ok(answer(200, &[("cache-control", "max-age=600")], body));
            let none = || Err(FetchError::new(FetchErrorKind::Reset, "no request is sent"));
            let mine = || with(name, "SECRET-of-mine", is_marked);
            let yours = || with(name, "SECRET-of-yours", is_marked);
            assert_eq!(cache.exchange(mine(), fresh("mine")).await, "network 200 mine", "{name}");
            assert_eq!(cache.get(fresh("public").unwrap()).await, "network 200 public", "{name}");
            assert_eq!(cache.exchange(yours(), fresh("yours")).await, "network 200 yours", "{name}");
            // In a later crawl, too; and none has taken the place of another.
            for _ in 0..2 {
                assert_eq!(cache.exchange(mine(), none()).await, "cached 200 mine", "{name}");
                assert_eq!(cache.exchange(yours(), none()).await, "cached 200 yours", "{name}");
                assert_eq!(cache.get(answer(500, &[], "")).await, "cached 200 public", "{name}");
                cache = cache.reopened(|settings| {
                    settings.change(|own: &mut HttpCacheSettings| own.httpcache_policy = policy)
                });
            }
            let mut is_told = false;
            let row = &mut |key: &[u8], value: &[u8]| {
                is_told |= [key, value].iter().any(|bytes| bytes.windows(6).any(|part| part == b"SECRET"));
                true
            };
            cache.cache.storage.store().scan(b"", row).unwrap();
            assert!(!is_told, "{name}: the value is in the store");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn two_caches_have_different_keys_for_the_same_credentials() {
    let key = || Cache::new(|_| {}).cache.key(&with("cookie", "a=1", true));
    assert_ne!(key(), key());
    let cache = Cache::new(|_| {});
    assert_eq!(cache.cache.key(&request("http://h/a")), request("http://h/a").fingerprint());
}

#[tokio::test(start_paused = true)]
async fn cookies_may_be_left_out_of_the_key() {
    let cache = Cache::new(|settings| {
        settings.change(|own: &mut HttpCacheSettings| own.httpcache_bind_cookies = false)
    });
    cache.exchange(with("cookie", "a=1", true), Ok(answer(200, &[], "one"))).await;
    assert_eq!(cache.get(answer(500, &[], "")).await, "cached 200 one");
    let other = cache.exchange(with("authorization", "x", true), Ok(answer(200, &[], "two"))).await;
    assert_eq!(other, "network 200 two");
}

#[tokio::test(start_paused = true)]
async fn answers_of_other_middlewares_are_not_stored() {
    let cache = Cache::new(|_| {});
    let mut theirs = answer(200, &[], "theirs");
    cache.cache.process_response(&request("http://h/a"), &mut theirs, &cache.cx).await.unwrap();
    assert!(cache.stats().is_empty());
    assert_eq!(cache.get(answer(200, &[], "ours")).await, "network 200 ours");
}

/// The entries that a version of the format wrote, as hexadecimal keys and values.
fn fixture(name: &str) -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

#[tokio::test(start_paused = true)]
#[ignore = "writes the fixture; to be run once for each new form, with a new name"]
async fn write_the_fixture() {
    let path = fixture("httpcache-2.json");
    assert!(!path.exists(), "what an earlier version wrote is not written anew");
    let cache = Cache::rfc(|settings| {
        settings.change(|own: &mut HttpCacheSettings| own.httpcache_always_store = true)
    });
    let page = "<p>many words that repeat</p>".repeat(100).leak();
    let varying = [("cache-control", "max-age=60"), ("vary", "Accept-Language")];
    let asked = |path: &str| request(&format!("http://h/{path}"));
    for (request, status, headers, body) in [
        (asked("page"), 200, &[("etag", "\"1\"")][..], &*page),
        (asked("gone"), 404, &[], "gone"),
        (asked("form").method(Method::POST).body("a=1"), 200, &[], "thanks"),
        (asked("vary").header("accept-language", "de").unwrap(), 200, &varying, "hallo"),
        (asked("vary").header("accept-language", "en").unwrap(), 200, &varying, "hello"),
    ] {
        let mut answer = answer(status, headers, body);
        answer.url = request.url.clone();
        cache.exchange(request, Ok(answer)).await;
    }
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let mut rows = Vec::new();
    let row = &mut |key: &[u8], value: &[u8]| {
        rows.push((hex(key), hex(value)));
        true
    };
    cache.cache.storage.store().scan(b"", row).unwrap();
    let rows: Vec<String> = rows.iter().map(|(key, value)| format!("  [\"{key}\", \"{value}\"]")).collect();
    std::fs::write(path, format!("[\n{}\n]\n", rows.join(",\n"))).unwrap();
}

/// A cache in the format of an earlier version.
fn old_cache(folder: &TempDir, name: &str) -> std::path::PathBuf {
    let path = folder.path().join("cache");
    let rows: Vec<(String, String)> = serde_json::from_slice(&std::fs::read(fixture(name)).unwrap()).unwrap();
    let bytes = |hex: &str| -> Vec<u8> {
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
    };
    let directory = huntsman_store::JobDirectory::open(&path, huntsman_store::Backend::Redb).unwrap();
    let mut batch = huntsman_store::Batch::new();
    rows.iter().for_each(|(key, value)| batch.put(bytes(key), bytes(value)));
    directory.store().write(&batch, huntsman_store::Durability::Process).unwrap();
    path
}

#[tokio::test(start_paused = true)]
async fn caches_of_earlier_forms_open_and_go_on() {
    // The first format had no sizes, methods and varying headers.
    opens_and_goes_on("httpcache-1.json", false).await;
    opens_and_goes_on("httpcache-2.json", true).await;
}

async fn opens_and_goes_on(name: &str, is_weighed: bool) {
    let folder = tempfile::tempdir().unwrap();
    let path = old_cache(&folder, name);
    // Opening for reading must not change it.
    let looked = |is_weighed: bool| {
        let directory = HttpCacheDirectory::read(&path).unwrap();
        let mut all = Vec::new();
        directory
            .each(|answer| {
                let answer = answer.unwrap();
                assert_eq!(answer.used().is_some(), is_weighed);
                all.push((answer.url().to_string(), answer.method().cloned(), answer.body().unwrap().len()));
                true
            })
            .unwrap();
        all.sort_by(|a, b| (&a.0, a.2).cmp(&(&b.0, b.2)));
        (directory.usage().unwrap(), all)
    };
    let (usage, all) = looked(is_weighed);
    let get = Some(Method::GET);
    let expected = [("gone", 4), ("page", 2_900), ("vary", 5), ("vary", 5)]
        .map(|(path, length)| (format!("http://h/{path}"), get.clone(), length));
    assert_eq!(all, expected);
    assert_eq!(usage.responses, 4);
    let directory = HttpCacheDirectory::read(&path).unwrap();
    let found = directory.find(&request("http://h/vary#top").url, None).unwrap();
    let mut varying: Vec<_> =
        found.iter().map(|answer| (answer.varies_by().to_vec(), answer.body().unwrap())).collect();
    varying.sort();
    let asked = |language: &str| match is_weighed {
        true => vec![("accept-language".to_owned(), Some(language.to_owned()))],
        false => Vec::new(),
    };
    assert_eq!(varying, [(asked("de"), "hallo".into()), (asked("en"), "hello".into())]);
    assert!(directory.find(&request("http://h/vary").url, Some(&Method::POST)).unwrap().is_empty());
    drop(directory);

    let settings = settings(&folder, |settings| {
        settings.change(|own: &mut HttpCacheSettings| own.httpcache_policy = HttpCachePolicy::Dummy)
    });
    let cache = HttpCache::from_settings(&settings).unwrap().unwrap();
    let cache = Cache { cache, cx: Context::detached(settings), folder };
    let none = || Err(FetchError::new(FetchErrorKind::Reset, "no request is sent"));
    assert_eq!(cache.exchange(request("http://h/gone"), none()).await, "cached 404 gone");
    for (language, body) in [("de", "hallo"), ("en", "hello")] {
        let asked = request("http://h/vary").header("accept-language", language).unwrap();
        assert_eq!(cache.exchange(asked, none()).await, format!("cached 200 {body}"));
    }
    cache.exchange(request("http://h/new"), Ok(answer(200, &[], "new"))).await;
    let Cache { cache, folder: _folder, .. } = cache;
    drop(cache);
    let (after, all) = looked(true);
    assert_eq!((after.responses, all.len()), (5, 5));
    assert!(after.bytes > usage.bytes);
}

#[tokio::test(start_paused = true)]
async fn the_bound_holds_and_what_made_room_is_counted() {
    let cache =
        Cache::new(|settings| settings.change(|own: &mut HttpCacheSettings| own.httpcache_max_bytes = 2_000));
    let body = "x".repeat(200).leak();
    for n in 0..20 {
        cache.exchange(request(&format!("http://h/{n}")), Ok(answer(200, &[], body))).await;
        // It is used again and again, so it is not evicted.
        let first = cache.exchange(request("http://h/0"), Ok(answer(500, &[], ""))).await;
        assert!(first.starts_with("cached 200"), "{n}: {first}");
    }
    let (answers, bytes) = cache.cache.storage.usage();
    assert!(bytes <= 2_000 && answers >= 3, "{answers} answers, {bytes} bytes");
    assert_eq!(cache.cx.stats().get("httpcache/evicted"), 20 - i64::try_from(answers).unwrap());
    assert!(
        cache.exchange(request("http://h/5"), Ok(answer(200, &[], "again"))).await.starts_with("network")
    );
    // A response larger than the bound evicts no others.
    let mut random = String::new();
    for n in 0..600u32 {
        random.push_str(&n.wrapping_mul(2_654_435_761).to_string());
    }
    let answered = cache.exchange(request("http://h/large"), Ok(answer(200, &[], random.leak()))).await;
    assert!(answered.starts_with("network"));
    assert!(cache.exchange(request("http://h/0"), Ok(answer(500, &[], ""))).await.starts_with("cached"));
}

#[tokio::test]
async fn a_crawl_finds_what_an_earlier_one_stored_while_both_are_open() {
    let first = Cache::new(|_| {});
    let urls: Vec<String> = (0..300).map(|n| format!("http://h/{n}")).collect();
    for url in &urls {
        let mut asked = request(url);
        let mut response = answer(200, &[], "one");
        first.cache.process_request(&mut asked, &first.cx).await.unwrap();
        first.cache.process_response(&asked, &mut response, &first.cx).await.unwrap();
    }
    // The last writes may still be in the queue of the storage, which both share.
    let settings = settings(&first.folder, |_| {});
    let second = HttpCache::from_settings(&settings).unwrap().unwrap();
    for url in urls.iter().rev() {
        let found = second.process_request(&mut request(url), &first.cx).await.unwrap();
        assert!(matches!(found, OnRequest::Respond(_)), "{url}");
    }
}

use super::*;

fn read(command: &str) -> Request {
    Request::from_curl(command).unwrap_or_else(|error| panic!("{command}: {error}"))
}

fn message(command: &str) -> String {
    Request::from_curl(command).map(|request| format!("{request:?}")).expect_err(command).to_string()
}

#[test]
fn what_a_browser_copies_is_the_request_that_it_sent() {
    let request = read(
        "curl 'https://shop.example/api/search?q=a%20b' \\\n  -X 'POST' \\\n  -H 'accept: application/json, text/plain, */*' \\\n  \
         -H 'content-type: application/json' \\\n  -b 'session=a1; theme=dark' \\\n  -H 'user-agent: Mozilla/5.0 (X11)' \\\n  \
         --data-raw $'{\"text\":\"it\\'s \\u00fc\\u0021\"}' \\\n  --compressed",
    );
    assert_eq!(
        (request.method.as_str(), request.url.as_str()),
        ("POST", "https://shop.example/api/search?q=a%20b")
    );
    assert_eq!(&request.body[..], "{\"text\":\"it's ü!\"}".as_bytes());
    let cookies: Vec<_> =
        request.cookies().iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(cookies, [("session", "a1"), ("theme", "dark")]);
    let headers: Vec<_> =
        request.headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
    let expected = [
        ("accept", "application/json, text/plain, */*"),
        ("content-type", "application/json"),
        ("user-agent", "Mozilla/5.0 (X11)"),
    ];
    assert_eq!(headers, expected);
}

#[test]
fn data_makes_a_form_that_is_posted_or_becomes_the_query() {
    let request = read(
        "curl http://h.example/p -d a=1 --data 'b=2 3' --data-urlencode 'c=4 & 5' --data-urlencode '=é'",
    );
    assert_eq!(
        (request.method.as_str(), &request.body[..]),
        ("POST", &b"a=1&b=2 3&c=4%20%26%205&%C3%A9"[..])
    );
    assert_eq!(request.headers["content-type"], "application/x-www-form-urlencoded");
    let request = read("curl -G 'http://h.example/p?x=0' -d a=1 -d b=2");
    assert_eq!((request.method.as_str(), request.url.as_str()), ("GET", "http://h.example/p?x=0&a=1&b=2"));
    assert_eq!((request.body.len(), request.headers.len()), (0, 0));
    let request = read(r#"curl --json '{"a":' --json '1}' h.example/api"#);
    assert_eq!((request.url.as_str(), &request.body[..]), ("http://h.example/api", &br#"{"a":1}"#[..]));
    assert_eq!(
        (&request.headers["accept"], &request.headers["content-type"]),
        (&"application/json".parse().unwrap(), &"application/json".parse().unwrap())
    );
    let request = read("curl http://h.example/ -X PUT -H 'Content-Type:' --data-raw @x");
    assert_eq!((request.method.as_str(), &request.body[..], request.headers.len()), ("PUT", &b"@x"[..], 0));
}

#[test]
fn short_options_stand_together_and_take_attached_values() {
    let request = read(
        r#"/usr/bin/curl -sSLk -XDELETE -H"A: b" -Aagent -e http://r.example/ -u 'me:secret' -- http://h.example/"#,
    );
    assert_eq!(request.method.as_str(), "DELETE");
    assert_eq!(request.headers["a"], "b");
    assert_eq!(request.headers["user-agent"], "agent");
    assert_eq!(request.headers["referer"], "http://r.example/");
    assert_eq!(request.headers["authorization"], "Basic bWU6c2VjcmV0");
    assert_eq!(read("curl -I http://h.example/").method, Method::HEAD);
    assert_eq!(read("curl http://h.example/ -H 'X-Empty;' -H 'Cookie: a=1'").headers["x-empty"], "");
}

#[test]
fn words_are_split_as_bash_splits_them() {
    for (command, expected) in [
        (r#"a 'b c'd "e\"\$f\n" g\ h"#, vec!["a", "b cd", "e\"$f\\n", "g h"]),
        ("a \\\n b\\\r\n c", vec!["a", "b", "c"]),
        (r"$'\x41\102\n\u00e9\U0001f600\q\'' ''", vec!["AB\né😀\\q'", ""]),
        ("", vec![]),
    ] {
        let words = words::split(command).unwrap();
        let words: Vec<&str> = words.iter().map(|word| str::from_utf8(word).unwrap()).collect();
        assert_eq!(words, expected, "{command}");
    }
}

#[test]
fn what_cannot_be_read_is_an_error_that_names_the_option() {
    for (command, expected) in [
        ("wget http://h.example/", "begins with the word curl, not with \"wget\""),
        ("curl", "has no URL"),
        ("curl 'http://h.example/", "quote at character 6"),
        ("curl http://h.example/ -H", "ends behind -H"),
        ("curl http://h.example/ -H nonsense", "a colon is missing"),
        ("curl http://h.example/ -H 'b ad: x'", "not allowed in HTTP"),
        ("curl http://h.example/ -d @body.json", "names a file"),
        ("curl http://h.example/ -b cookies.txt", "names a file"),
        ("curl http://h.example/ http://i.example/", "second URL"),
        ("curl http://h.example/ --proxy-header x", "unknown option: --proxy-header"),
        ("curl http://h.example/ -o file", "unknown option: -o"),
        ("curl http://h.example/ | jq .", "behind the curl command follows \"|\""),
        ("curl ^\"http://h.example/^\"", "cmd of Windows"),
        ("curl http://h.example/ \\", "ends with a backslash"),
    ] {
        let message = message(command);
        assert!(message.contains(expected), "{command}: {message}");
    }
}

#[test]
fn unknown_options_can_be_ignored() {
    let (request, unknown) = Request::from_curl_lenient("curl --tcp-nodelay http://h.example/ -4s").unwrap();
    assert_eq!(
        (request.url.as_str(), unknown),
        ("http://h.example/", vec!["--tcp-nodelay".to_owned(), "-4".to_owned()])
    );
}

#[test]
fn a_request_comes_back_from_its_command() {
    let url = |path: &str| Url::parse("http://h.example/").unwrap().join(path).unwrap();
    let requests = [
        Request::get(url("a?b=c&d=%27#part")),
        Request::get(url("a")).method(Method::HEAD),
        Request::get(url("a")).method(Method::PATCH).body("it's\n\t\\ \u{7f}é😀"),
        Request::get(url("a")).method(Method::POST).body(vec![1, 255, b'\'', b'4', 128, b'f']),
        Request::get(url("a")).method(Method::POST),
        Request::get(url("a"))
            .body("x")
            .header("x-a", "1")
            .unwrap()
            .header("x-a", "2")
            .unwrap()
            .header("x-b", "")
            .unwrap(),
        Request::form(url("f"), [("a", "b c"), ("d", "&")]).cookie("id", "7=8").cookie("k", ""),
        Request::json(url("j"), &["it's"]).unwrap(),
    ];
    for request in requests {
        let command = request.to_curl().unwrap();
        let back = read(&command);
        assert_eq!(
            (&back.url, &back.method, &back.body),
            (&request.url, &request.method, &request.body),
            "{command}"
        );
        assert_eq!((&back.headers, back.cookies()), (&request.headers, request.cookies()), "{command}");
    }
    let error = Request::get(url("a")).body("a\0b").to_curl().unwrap_err().to_string();
    assert!(error.contains("zero byte"), "{error}");
}

/// bash itself is the reader: it must see the words that were quoted.
#[test]
fn bash_reads_the_words_that_were_quoted() {
    let words: [&[u8]; 6] =
        [b"plain", b"it's", b"a\nb\tc", b"\\x41 \\", "é😀\u{1}".as_bytes(), &[255, b'1', 254, b'\'', b'a']];
    for word in words {
        let output = std::process::Command::new("bash")
            .args(["-c", &format!("printf %s {}", words::quote(word))])
            .output()
            .unwrap();
        assert_eq!(output.stdout, word, "{}", words::quote(word));
        assert_eq!(words::split(&words::quote(word)).unwrap(), [word]);
    }
}

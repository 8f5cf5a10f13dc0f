//! What a file declares is read from pages, and what is wrong in it is told with its line.

use http::HeaderValue;
use http::header::CONTENT_TYPE;
use huntsman_crawler::{Page, Request, Response, Spider};
use serde_json::{Value, json};
use url::Url;

use super::DeclaredSpider;

fn spider(text: &str) -> DeclaredSpider {
    DeclaredSpider::from_toml(&format!("start = 'http://shop.example/'\n{text}"), "my.toml").unwrap()
}

/// The message about a file, whose first line names a start URL.
fn message(text: &str) -> String {
    let text = format!("start = 'http://shop.example/'\n{text}");
    DeclaredSpider::from_toml(&text, "my.toml").unwrap_err().to_string()
}

fn page_of(kind: &'static str, body: &str) -> Page {
    let url = Url::parse("http://shop.example/list/?p=1").unwrap();
    let mut response = Response::html(url.clone(), body.to_owned());
    response.headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    Page::new(Request::get(url), response)
}

fn page(html: &str) -> Page {
    page_of("text/html; charset=utf-8", html)
}

fn items(spider: &DeclaredSpider, page: &Page) -> Vec<Value> {
    spider.items(page).into_iter().map(|item| Value::Object(item.unwrap())).collect()
}

#[test]
fn every_kind_of_error_has_its_line_and_advice() {
    let field = |keys: &str| format!("[items.a.fields]\nb = {{ {keys} }}");
    for (text, expected) in [
        ("strat = 1", "my.toml, line 2: unknown key \"strat\"; did you mean \"start\"?"),
        ("name = 7", "my.toml, line 2: invalid type: integer `7`, expected a string"),
        ("name = 'x", "my.toml, line 2: "),
        (
            "[settings]\ndownload_dely = 1",
            "my.toml, line 3: unknown setting download_dely; did you mean download_delay?",
        ),
        ("[settings]\ndownload_delay = 'x'", "my.toml, line 3: "),
        ("profile = 'polit'", "my.toml, line 2: unknown profile \"polit\""),
        ("allowed_domains = ['http://a.b/']", "my.toml, line 2: \"http://a.b/\" is not a domain"),
        ("sitemaps = [\n 'x']", "my.toml, line 3: invalid URL \"x\""),
        ("start_file = 'nowhere.txt'", "my.toml, line 2: reading the start URLs nowhere.txt"),
        ("[[rules]]\nalow = 'x'", "my.toml, line 3: unknown key \"alow\"; did you mean \"allow\"?"),
        ("[[rules]]\nallow = [\n'a',\n'(']", "my.toml, line 5: link rule \"(\""),
        ("[[rules]]\nrestrict_css = 'a['", "my.toml, line 3: CSS selector \"a[\", character 3"),
        ("[[rules]]\nrestrict_xpath = '//a['", "my.toml, line 3: XPath \"//a[\", character 5"),
        ("[[rules]]\ncallback = 'start'", "my.toml, line 3: \"start\" cannot be the name of a callback"),
        (
            "[items.a]\nrule = 'autor'\nfields = {}\n[[rules]]\ncallback = 'author'",
            "my.toml, line 3: unknown callback \"autor\"; did you mean \"author\"?",
        ),
        ("[items.a]\npage = '['\nfields = {}", "my.toml, line 3: regex parse error"),
        (
            "[items.a]\neach = 'div::text'\n[items.a.fields]\nb = 'i'",
            "my.toml, line 3: CSS selector \"div::text\"",
        ),
        ("[items.a]\neach_xpath = 'count(//a)'\n[items.a.fields]\nb.xpath = 'i'", "my.toml, line 3: XPath"),
        (
            "[items.a]\neach_json = '$.a['\n[items.a.fields]\nb.json = '$'",
            "my.toml, line 3: JSONPath \"$.a[\", character 5",
        ),
        (
            "[items.a]\neach = 'i'\neach_json = '$'\n[items.a.fields]\nb = 'i'",
            "my.toml, line 4: give one of `each`",
        ),
        ("[items.a]\neach_xpath = '//i'\n[items.a.fields]\nb = 'i'", "my.toml, line 5: within `each_xpath`"),
        ("[items.a.fields]", "my.toml, line 2: the item \"a\" has no fields"),
        ("[items.a.fields]\nb = 'i['", "my.toml, line 3: CSS selector \"i[\""),
        (&field("css = 'i', xpath = '//i'"), "my.toml, line 3: the field \"b\" needs one of"),
        (&field("csss = 'i'"), "my.toml, line 3: unknown key \"csss\"; did you mean \"css\"?"),
        (
            &field("css = 'i', type = 'numbr'"),
            "my.toml, line 3: unknown type \"numbr\"; did you mean \"number\"?",
        ),
        (&field("css = 'i', re = '('"), "my.toml, line 3: regex parse error"),
        (&field("source = 'ur'"), "my.toml, line 3: unknown source \"ur\"; did you mean \"url\"?"),
        (&field("json = '$', script = 'script['"), "my.toml, line 3: CSS selector \"script[\""),
        (&field("css = 'i', script = 'x'"), "my.toml, line 3: `script` says where"),
        (&field("css = 'i', default = 1, required = true"), "my.toml, line 3: the field \"b\" has a default"),
    ] {
        let message = message(text);
        assert!(message.starts_with(expected), "{text}\n{message}");
    }
    let none = DeclaredSpider::from_toml("name = 'x'", "my.toml").unwrap_err();
    assert!(none.to_string().starts_with("my.toml: no start") && none.is_usage());
    assert!(DeclaredSpider::load("/nowhere/my.toml").unwrap_err().to_string().contains("/nowhere/my.toml"));
}

#[test]
fn fields_have_the_types_that_are_declared_in_the_order_of_the_file() {
    let spider = spider(
        "[items.ware]\neach = 'li'\n[items.ware.fields]\nz = 'b::text'\n\
         price = { css = 'i::text', re = '[0-9.]+', type = 'number' }\ncount = { xpath = '@data-n', type = 'integer' }\n\
         sold = { css = '::attr(data-sold)', type = 'bool', default = false }\nurl = { css = 'a::attr(href)', type = 'url' }\n\
         tags = { css = 'u::text', type = 'list' }\nall = { css = 'u::text', join = ', ' }\npage = { source = 'url' }\nnone = 's::text'",
    );
    let page = page(
        "<ul><li data-n=3 data-sold=yes><b> Mill </b><i>7.50 EUR</i><a href=../m>m</a><u>x</u><u> y</u><li data-n=4><i>9</i></ul>",
    );
    let found = items(&spider, &page);
    assert_eq!(
        found[0].to_string(),
        r#"{"z":"Mill","price":7.5,"count":3,"sold":true,"url":"http://shop.example/m","tags":["x","y"],"all":"x, y","page":"http://shop.example/list/?p=1","none":null}"#
    );
    assert_eq!(
        (&found[1]["sold"], &found[1]["tags"], &found[1]["all"]),
        (&json!(false), &json!([]), &json!(null))
    );
}

#[test]
fn an_item_without_a_required_field_costs_no_other() {
    let spider = spider(
        "[items.ware]\neach = 'li'\n[items.ware.fields]\nname = { css = 'b::text', required = true }\nn = { css = 'i::text', type = 'integer' }",
    );
    let found = spider.items(&page("<li><b>a</b><li><b> </b><li><b>c</b><i>many</i>"));
    assert_eq!(found[0].as_ref().unwrap()["name"], "a");
    let message = |at: usize| found[at].as_ref().unwrap_err().to_string();
    assert_eq!(
        message(1),
        "item \"ware\" number 2 of http://shop.example/list/?p=1, field \"name\": it is required, and css \"b::text\" finds nothing"
    );
    assert!(
        message(2).ends_with("field \"n\": \"many\" is not an integer; `re` takes the digits out of a text")
    );
}

#[test]
fn json_is_read_from_bodies_and_from_scripts() {
    let api = spider(
        "[items.ware]\neach_json = '$.items[*]'\n[items.ware.fields]\nname.json = '$.name'\nprice = { json = '$.price', type = 'string' }\n\
         tags = { json = '$.tags', type = 'list' }\nnext = { json = '$.none', default = 0 }",
    );
    let body =
        r#"{"items": [{"name": "mill", "price": 7, "tags": ["a", "b"]}, {"name": "dam", "tags": []}]}"#;
    let expected = [
        json!({"name": "mill", "price": "7", "tags": ["a", "b"], "next": 0}),
        json!({"name": "dam", "price": null, "tags": [], "next": 0}),
    ];
    assert_eq!(items(&api, &page_of("application/json", body)), expected);
    assert!(items(&api, &page("<p>no JSON")).is_empty());
    assert!(api.items(&page_of("application/json", "{"))[0].is_err());
    let script = spider(
        "[items.user.fields]\nname = { json = '$.user.name', script = 'window.__STATE__' }\ntitle = 'title::text'",
    );
    let html = "<title>T</title><script>window.__STATE__ = {user: {\"name\": \"Ada\"}};</script>";
    assert_eq!(items(&script, &page(html)), [json!({"name": "Ada", "title": "T"})]);
    assert_eq!(items(&script, &page("<p>")), [json!({"name": null, "title": null})]);
}

#[test]
fn items_belong_to_rules_and_addresses_and_say_their_kind() {
    let spider = spider(
        "[[rules]]\nallow = '/a/'\ncallback = 'a'\n[items.z]\nrule = 'start'\n[items.z.fields]\nu.source = 'status'\n\
         [items.b]\nrule = 'a'\n[items.b.fields]\nu.source = 'status'\n[items.c]\npage = 'p=1$'\n[items.c.fields]\nu.source = 'title'",
    );
    let kinds = |label: &str| {
        let url = Url::parse("http://shop.example/list/?p=1").unwrap();
        let request = Request::get(url.clone());
        let request = if label.is_empty() { request } else { request.callback(label) };
        let found = items(&spider, &Page::new(request, Response::html(url, "<title>T</title>")));
        found.iter().map(|item| item["item"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(
        (kinds(""), kinds("a")),
        (vec!["z".to_owned(), "c".to_owned()], vec!["b".to_owned(), "c".to_owned()])
    );
}

#[test]
fn the_first_rule_takes_a_link_and_pages_with_callbacks_are_ends() {
    let spider = spider(
        "[[rules]]\nallow = '/item/'\ndeny = '/item/9'\ncallback = 'item'\n[[rules]]\nrestrict_css = 'nav'\n[[rules]]\nallow = 'c$'\ncallback = 'c'\nfollow = true",
    );
    let html = "<nav><a href=/item/1#x>1</a><a href=/next>n</a></nav><a href=/item/1>1</a><a href=/item/9>9</a><a href=/c>c</a>";
    let found = spider.links(&page(html)).unwrap();
    let links: Vec<_> = found.iter().map(|request| (request.url.path(), request.callback.as_ref())).collect();
    assert_eq!(links, [("/item/1", "item"), ("/next", "follow"), ("/c", "c")]);
    let of = |request: &Request| {
        let response = Response::html(request.url.clone(), html);
        spider.links(&Page::new(request.clone(), response)).unwrap().len()
    };
    assert_eq!((of(&found[0]), of(&found[1]), of(&found[2])), (0, 3, 3));
    let stranger = Request::parse("http://shop.example/").unwrap().callback("gone");
    let page = Page::new(stranger.clone(), Response::html(stranger.url, html));
    assert!(spider.links(&page).unwrap_err().to_string().contains("\"gone\""));
}

#[test]
fn settings_domains_and_sitemaps_are_those_of_the_file() {
    let spider = spider(
        "name = 'mills'\nprofile = 'broad'\nallowed_domains = 'Shop.Example'\nsitemaps = 'http://shop.example/robots.txt'\n\
         [settings]\ndownload_delay = 2\nuser_agent = 'me@shop.example'",
    );
    assert_eq!((spider.name(), spider.allowed_domains()), ("mills", vec!["shop.example".to_owned()]));
    assert_eq!(spider.settings(), [("download_delay", json!(2)), ("user_agent", json!("me@shop.example"))]);
    assert_eq!((spider.profile().unwrap().name(), spider.sitemap_urls().len()), ("broad", 1));
    let starts: Vec<String> = spider.start().map(|request| request.unwrap().url.to_string()).collect();
    assert_eq!(starts, ["http://shop.example/robots.txt", "http://shop.example/"]);
}

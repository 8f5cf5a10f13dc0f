//! Items that `#[derive(Item)]` reads from pages of HTML and XML.

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

use huntsman_crawler::{
    CrawlerBuilder, FoundValue, Item, ItemValue, LossKind, Output, Page, PagePart, Processor, Request,
    Response, Result, spider_fn,
};
use huntsman_testkit::ScriptedDownloader;
use serde_json::{Value, json};
use url::Url;

fn html(body: &str) -> Page {
    let url = Url::parse("http://h.test/a/b").unwrap();
    Page::new(Request::get(url.clone()), Response::html(url, body.to_owned()))
}

fn xml(body: &str) -> Page {
    let url = Url::parse("http://h.test/feed").unwrap();
    let mut response = Response::html(url.clone(), body.to_owned());
    response.headers.insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static("application/xml"));
    Page::new(Request::get(url), response)
}

fn error_of<T: Item + fmt::Debug>(body: &str) -> String {
    html(body).item::<T>().unwrap_err().to_string()
}

fn pounds(text: &str) -> String {
    text.replace('£', "")
}

fn price(text: &str) -> Result<f64, std::num::ParseFloatError> {
    pounds(text).parse()
}

#[derive(Item, Debug, PartialEq)]
struct Book {
    #[item(css = "h1")]
    title: String,
    #[item(css = ".price::text", with = price)]
    price: f64,
    #[item(css = ".stock::text", re = r"\((\d+)")]
    stock: u32,
    #[item(css = ".crumbs li", join = " > ", default)]
    crumbs: String,
    #[item(css = "img::attr(src)")]
    images: Vec<Url>,
    #[item(css = ".subtitle")]
    subtitle: Option<String>,
    #[item(xpath = "//dt[. = 'Pages']/following-sibling::dd[1]")]
    pages: Option<u16>,
    #[item(url)]
    page: Url,
}

const BOOK: &str = "<ol class=crumbs><li>Home<li> Old  books</ol><h1> The\n <i>Book</i> </h1><p class=price>£10.99</p>\
    <p class=stock>\n In stock (7 available)</p><img src=../m/1.png><img src=/m/2.png><p class=subtitle> </p>\
    <dl><dt>Weight<dd>1 kg<dt>Pages<dd> 321 </dl>";

#[test]
fn a_struct_is_read_from_a_page() {
    let book: Book = html(BOOK).item().unwrap();
    let url = |path: &str| Url::parse("http://h.test/").unwrap().join(path).unwrap();
    let expected = Book {
        title: "The Book".to_owned(),
        price: 10.99,
        stock: 7,
        crumbs: "Home > Old books".to_owned(),
        images: vec![url("/m/1.png"), url("/m/2.png")],
        subtitle: None,
        pages: Some(321),
        page: url("/a/b"),
    };
    assert_eq!(book, expected);
}

#[test]
fn an_error_names_page_field_value_and_selector() {
    let told = error_of::<Book>(&BOOK.replace("10.99", "ten"));
    assert_eq!(
        told,
        "item of http://h.test/a/b: Book.price: \"£ten\" cannot be converted: invalid float literal"
    );
    let told = error_of::<Book>(&BOOK.replace("h1", "h2"));
    assert_eq!(told, "item of http://h.test/a/b: Book.title: nothing matches css \"h1\"");
    let told = error_of::<Book>(&BOOK.replace("(7", "7"));
    assert_eq!(
        told,
        "item of http://h.test/a/b: Book.stock: re \"\\\\((\\\\d+)\" matches nothing in \"In stock 7 available)\" \
         (css \".stock::text\")"
    );
    let told = error_of::<Book>(&BOOK.replace("321", "many"));
    assert!(told.contains("Book.pages: \"many\" is not a number (u16); take it out with re"), "{told}");
    let told = error_of::<Book>(&BOOK.replace("10.99", &"9".repeat(500).replace("99", "x")));
    assert!(told.len() < 250 && told.contains("xxx...\" cannot be converted"), "{told}");
}

#[test]
fn a_field_that_matches_without_a_text_says_so() {
    let told = error_of::<Book>(&BOOK.replace(" The\n <i>Book</i> ", " "));
    assert!(told.ends_with("Book.title: what css \"h1\" matches has no text"), "{told}");
}

#[derive(Debug, PartialEq)]
struct Isbn(u64);

impl FromStr for Isbn {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        text.replace('-', "").parse().map(Self)
    }
}

#[derive(Item, Debug, PartialEq)]
struct Converted {
    #[item(css = "b", with = str::parse)]
    one: Isbn,
    #[item(css = "b", with = str::parse)]
    optional: Option<Isbn>,
    #[item(css = "i", with = str::parse)]
    none: Option<Isbn>,
    #[item(css = "b", with = Isbn::from_str)]
    list: Vec<Isbn>,
    #[item(css = "b", with = pounds)]
    plain: String,
    #[item(css = "b", with = |text| text.len())]
    length: usize,
    #[item(css = "b", with = |text: &str| text.strip_prefix("4-").map(str::to_owned))]
    chosen: Vec<String>,
    #[item(css = "b", with = |text: &str| Err::<u8, _>(text.to_owned()).or(Ok::<u8, String>(1)))]
    told: Option<u8>,
}

#[test]
fn functions_convert_to_values_options_and_results() {
    let page = html("<b>3-14</b><b>4-15</b>");
    let item: Converted = page.item().unwrap();
    let expected = Converted {
        one: Isbn(314),
        optional: Some(Isbn(314)),
        none: None,
        list: vec![Isbn(314), Isbn(415)],
        plain: "3-14".to_owned(),
        length: 4,
        chosen: vec!["15".to_owned()],
        told: Some(1),
    };
    assert_eq!(item, expected);
    let told = error_of::<Converted>("<b>3</b><b>x</b>");
    assert!(
        told.contains("Converted.list: value 2 of 2: \"x\" cannot be converted: invalid digit"),
        "{told}"
    );
}

#[derive(Item, Debug, PartialEq)]
struct Forms {
    #[item(css = "pre::text", raw)]
    raw: String,
    #[item(css = "pre::text")]
    normal: String,
    #[item(css = "pre", html)]
    markup: String,
    #[item(css = "p::text")]
    texts: Vec<String>,
    #[item(css = "p::text", raw)]
    raw_texts: Vec<String>,
    #[item(css = "em", exists)]
    has_em: bool,
    #[item(css = "p", re = "zzz", exists)]
    has_zzz: bool,
    #[item(xpath = "count(//p) > 1")]
    many: bool,
    #[item(xpath = "count(//p)")]
    count: u8,
    #[item(css = "script", default = json!(null))]
    data: Value,
    #[item(css = "u", default = "none".to_owned())]
    missing: String,
    #[item(css = "u", default = vec![1])]
    missing_list: Vec<u8>,
    #[item(css = "u", default = Some(5))]
    missing_option: Option<u8>,
    #[item(css = "u")]
    missing_lists: Option<Vec<u8>>,
    #[item(default = 7)]
    given: u8,
    #[item(skip)]
    skipped: Vec<Isbn>,
    #[item(css = "s", re = r"(\d+) left|only (\d+)")]
    left: Vec<u8>,
    #[item(css = "s", re = r"\d+", join = "-", with = |text| format!("{text}!"))]
    r#type: String,
}

#[test]
fn white_space_markup_presence_and_defaults_are_as_the_attributes_say() {
    let page = html(
        "<pre> a  b\u{a0}<i>c</i></pre><p> x \n y </p><p> </p><em></em>\
         <script>{\"two  spaces\": [1, 2.5]}</script><s>12 left</s><s>only 3, 4 left</s>",
    );
    let item: Forms = page.item().unwrap();
    let expected = Forms {
        raw: " a  b\u{a0}".to_owned(),
        normal: "a b".to_owned(),
        markup: "<pre> a  b&nbsp;<i>c</i></pre>".to_owned(),
        texts: vec!["x y".to_owned()],
        raw_texts: vec![" x \n y ".to_owned(), " ".to_owned()],
        has_em: true,
        has_zzz: false,
        many: true,
        count: 2,
        data: json!({"two  spaces": [1, 2.5]}),
        missing: "none".to_owned(),
        missing_list: vec![1],
        missing_option: Some(5),
        missing_lists: None,
        given: 7,
        skipped: Vec::new(),
        left: vec![12, 3, 4],
        r#type: "12-3-4!".to_owned(),
    };
    assert_eq!(item, expected);
}

#[derive(Item, Debug)]
struct Numbers {
    #[item(css = "b")]
    _number: f64,
    #[item(css = "i")]
    _flag: bool,
    #[item(css = "a")]
    _link: Option<Url>,
    #[item(css = "script")]
    _data: Option<Value>,
}

#[test]
fn what_is_no_number_boolean_url_or_json_is_an_error_with_advice() {
    for (body, what) in [
        ("<b>inf</b><i>true</i>", "Numbers._number: \"inf\" is not a number (f64); take it out with re"),
        ("<b>1</b><i>maybe</i>", "Numbers._flag: \"maybe\" is neither true nor false; `exists` asks"),
        ("<b>1</b><i>True</i><a href='http://['>x</a>", "Numbers._link: \"http://[\" is not a URL: invalid"),
        ("<b>1</b><i>true</i><a>x</a>", "Numbers._link: <a> has no href"),
        (
            "<b>1</b><i>true</i><script>{a:1}</script>",
            "Numbers._data: \"{a:1}\" is not JSON: key must be a string",
        ),
    ] {
        let told = error_of::<Numbers>(body);
        assert!(told.contains(what), "{told}");
    }
    html("<b>-1.5e3</b><i>TRUE</i><a href=x>x</a>").item::<Numbers>().unwrap();
}

#[derive(Item, Debug, PartialEq)]
struct Offer {
    #[item(css = "::attr(data-id)")]
    id: u32,
    #[item(xpath = "normalize-space(.//b)")]
    price: f64,
}

#[derive(Item, Debug, PartialEq)]
struct Product {
    #[item(css = "div.offer")]
    offers: Vec<Offer>,
    #[item(css = "div.best")]
    best: Offer,
    #[item(css = "div.last")]
    last: Option<Offer>,
    #[item(xpath = "//div[@class = 'best']")]
    by_xpath: Offer,
}

#[test]
fn items_are_read_inside_of_items() {
    let body = "<div class=best data-id=1><b> 1 </b></div><div class=offer data-id=2><b>2</b></div>\
                <div class=offer data-id=3><b>3.5</b></div>";
    let product: Product = html(body).item().unwrap();
    let offer = |id, price| Offer { id, price };
    let (best, by_xpath) = (offer(1, 1.0), offer(1, 1.0));
    assert_eq!(product, Product { offers: vec![offer(2, 2.0), offer(3, 3.5)], best, last: None, by_xpath });
    let told = error_of::<Product>(&body.replace("3.5", "free"));
    assert!(
        told.starts_with(
            "item of http://h.test/a/b: Product.offers: value 2 of 2: Offer.price: \"free\" is not a number"
        ),
        "{told}"
    );
}

#[derive(Item, Debug)]
struct Inner {
    #[item(css = "b::text")]
    _offer: Offer,
}

#[test]
fn an_item_is_not_read_from_a_text() {
    let told = error_of::<Inner>("<b>text</b>");
    assert!(told.ends_with("an item is read from an element, and \"text\" is a text: select elements, without ::text and the like"), "{told}");
}

#[derive(Item, Debug, PartialEq)]
struct Quote {
    #[item(css = "small")]
    author: String,
    #[item(css = "a.tag")]
    tags: Vec<String>,
}

const QUOTES: &str = "<div class=quote><small>Ada</small><a class=tag>x</a><a class=tag>y</a></div>\
    <div class=quote><big>nobody</big></div><div class=quote><small>Bo</small></div>";

#[test]
fn a_bad_row_is_named_and_the_others_can_be_had() {
    let page = html(QUOTES);
    let told = page.items::<Quote>("div.quote").unwrap_err().to_string();
    assert_eq!(
        told,
        "item 2 of 3 (\"div.quote\") of http://h.test/a/b: Quote.author: nothing matches css \"small\""
    );
    let rows = page.try_items::<Quote>("div.quote").unwrap();
    let authors: Vec<Option<String>> =
        rows.into_iter().map(|row| row.ok().map(|quote| quote.author)).collect();
    assert_eq!(authors, [Some("Ada".to_owned()), None, Some("Bo".to_owned())]);
    assert!(page.items::<Quote>("div.none").unwrap().is_empty());
    assert!(page.items::<Quote>("div::text").unwrap_err().to_string().contains("elements are selected here"));
    assert_eq!(page.try_items_xpath::<Quote>("//div[small]").unwrap().len(), 2);
    assert_eq!(page.items_xpath::<Quote>("//div[small]").unwrap()[0].tags, ["x", "y"]);
}

#[test]
fn elements_and_nodes_are_items_too() {
    let page = html(QUOTES);
    let quote: Quote = page.select("div.quote").unwrap()[2].item().unwrap();
    assert_eq!(quote, Quote { author: "Bo".to_owned(), tags: Vec::new() });
    let quote: Quote = page.nodes("//div").unwrap()[0].item().unwrap();
    assert_eq!((quote.author.as_str(), quote.tags.len()), ("Ada", 2));
    let body = page.select("body").unwrap()[0];
    assert_eq!(body.items::<Quote>("div:first-child").unwrap(), [quote]);
    assert_eq!(page.nodes("//body").unwrap()[0].items_xpath::<Quote>("div[3]").unwrap()[0].author, "Bo");
    let told = page.nodes("//div/small/text()").unwrap()[0].item::<Quote>().unwrap_err().to_string();
    assert!(told.contains("CSS selects in elements of the page"), "{told}");
}

#[derive(Item, Debug, PartialEq)]
#[item(prefix(a = "http://www.w3.org/2005/Atom"))]
struct Entry {
    #[item(xpath = "a:title")]
    title: String,
    #[item(xpath = "a:link")]
    link: Url,
    #[item(xpath = "a:id")]
    id: Url,
    #[item(xpath = "a:author/a:name/text()")]
    authors: Vec<String>,
}

#[derive(Item, Debug)]
struct Feed {
    #[item(xpath = "//*[local-name() = 'entry']")]
    entries: Vec<Entry>,
}

#[test]
fn xml_is_read_with_namespaces() {
    let page = xml(
        "<?xml version='1.0'?><feed xmlns='http://www.w3.org/2005/Atom'><entry><title> A <![CDATA[<b>]]></title><id>/1</id>\
         <link href='/e/1'/><author><name>Ada</name></author><author><name>Bo</name></author></entry></feed>",
    );
    let entries = page.items_xpath::<Entry>("/a:feed/a:entry").unwrap();
    let url = |path: &str| Url::parse("http://h.test/").unwrap().join(path).unwrap();
    let authors = vec!["Ada".to_owned(), "Bo".to_owned()];
    let entry = Entry { title: "A <b>".to_owned(), link: url("/e/1"), id: url("/1"), authors };
    assert_eq!(entries, [entry]);
    assert_eq!(page.item::<Feed>().unwrap().entries, entries);
    let told = page.nodes("//*[local-name() = 'entry']").unwrap()[0].item::<Quote>().unwrap_err().to_string();
    assert!(told.contains("small"), "the selectors of HTML find nothing: {told}");
}

#[derive(Item, Debug)]
struct Answer {
    #[item(css = "b")]
    _text: Option<String>,
    #[item(css = "div")]
    answers: Vec<Answer>,
}

#[derive(Item, Debug)]
struct Absolute {
    #[item(xpath = "//div")]
    _all: Vec<Absolute>,
}

#[test]
fn answers_to_answers_end_where_the_page_ends() {
    let page = html("<main><div><b>1</b></div><div><b>2</b></div></main>");
    let answer: Answer = page.select("main").unwrap()[0].item().unwrap();
    assert_eq!(answer.answers.len(), 2);
    assert!(answer.answers.iter().all(|answer| answer.answers.is_empty()));
}

#[test]
fn items_that_contain_themselves_cannot_hang_or_fill_the_process() {
    // Each division contains all further ones, which contain each other: 2^300 items.
    let told = error_of::<Answer>(&"<div>".repeat(300));
    assert!(told.contains("nested more than 64 deep") || told.contains("visits of nodes"), "{told}");
    let told = error_of::<Absolute>("<div><div>");
    assert!(told.contains("begins with .// and not with //"), "{told}");
}

#[derive(Item, Debug)]
struct Texts {
    #[item(css = "div")]
    _texts: Vec<String>,
}

#[test]
fn texts_of_nested_elements_do_not_fill_the_memory() {
    let told = error_of::<Texts>(&format!("{}{}", "<div>".repeat(400), "word ".repeat(200_000)));
    assert!(told.contains("Texts._texts: value") && told.contains("more than 64 MiB"), "{told}");
}

/// A value with an implementation by hand.
#[derive(Debug, PartialEq)]
struct Stars(usize);

impl ItemValue for Stars {
    fn from_found(found: &FoundValue<'_>) -> Result<Option<Self>> {
        let text = found.text()?;
        Ok(text.map(|text| text.matches('*').count()).filter(|stars| *stars > 0).map(Self))
    }
}

/// An item with an implementation by hand.
#[derive(Debug, PartialEq)]
struct Length(usize);

impl Item for Length {
    fn from_part(part: &PagePart<'_>) -> Result<Self> {
        Ok(Self(part.xpath("string(.)")?.get_or("").len() + part.css("::attr(data-more)")?.get_all().len()))
    }
}

#[derive(Item, Debug, PartialEq)]
struct ByHand {
    #[item(css = "b")]
    stars: Stars,
    #[item(css = "i")]
    lengths: Vec<Length>,
}

#[test]
fn values_and_items_can_be_implemented_by_hand() {
    let item: ByHand = html("<b>none</b><b>**</b><i>abc</i><i data-more=x>d</i>").item().unwrap();
    assert_eq!(item, ByHand { stars: Stars(2), lengths: vec![Length(3), Length(2)] });
}

#[tokio::test(start_paused = true)]
async fn a_row_that_cannot_be_read_is_a_line_of_the_report_and_costs_no_other_row() {
    let web = ScriptedDownloader::pages([("http://a.test/", QUOTES)]);
    let spider = spider_fn(["http://a.test/"], |page: &Page, out: &mut Output<String>| {
        for quote in page.try_items::<Quote>("div.quote")? {
            out.try_item(quote.map(|quote| quote.author));
        }
        Ok(())
    });
    let report = CrawlerBuilder::new(spider).downloader(web).run().await.unwrap();
    assert_eq!((report.stat("item_scraped_count"), report.stat("items/unread")), (2, 1));
    let loss = &report.losses[0];
    assert_eq!((loss.kind, loss.count), (LossKind::ItemsUnread, 1));
    assert!(loss.to_string().starts_with("1 item could not be read, first: item 2 of 3"), "{loss}");
    assert_eq!(report.failure(), None);
}

#[derive(Item, Debug, PartialEq)]
struct Ware {
    #[item(json = "$.id")]
    id: u32,
    #[item(json = "$.name.en")]
    name: String,
    #[item(json = "$.price", default)]
    price: f64,
    #[item(json = "$.sold")]
    sold: Option<bool>,
    #[item(json = "$.tags[*]")]
    tags: Vec<String>,
    #[item(json = "$.sizes[?@.left > 0]")]
    sizes: Vec<Size>,
    #[item(json = "$.link")]
    link: Option<Url>,
    #[item(json = "$.more")]
    more: Option<Value>,
    #[item(json = "$.tags[*]", join = "+", default)]
    joined: String,
    #[item(json = "$.code", re = "[0-9]+")]
    code: Option<u8>,
}

#[derive(Item, Debug, PartialEq)]
struct Size {
    #[item(json = "$.name")]
    name: String,
}

fn json_page(body: &Value) -> Page {
    let url = Url::parse("http://h.test/api/wares").unwrap();
    let mut response = Response::html(url.clone(), body.to_string());
    response.headers.insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    Page::new(Request::get(url), response)
}

#[test]
fn values_of_json_become_items() {
    let sizes = json!([{"name": "S", "left": 0}, {"name": "M", "left": 2}]);
    let mill = json!({"id": 7, "name": {"en": " Mill  stone "}, "price": 9.5, "sold": false, "tags": ["a", "b"], "sizes": sizes,
        "link": "../mill", "more": {"x": [1, null]}, "code": "no. 12"});
    let page =
        json_page(&json!({"wares": [mill, {"id": 8, "name": {"en": "Dam"}, "price": null, "tags": []}]}));
    let wares: Vec<Ware> = page.items_json("$.wares[*]").unwrap();
    let first = Ware {
        id: 7,
        name: "Mill stone".into(),
        price: 9.5,
        sold: Some(false),
        tags: vec!["a".into(), "b".into()],
        sizes: vec![Size { name: "M".into() }],
        link: Some(Url::parse("http://h.test/mill").unwrap()),
        more: Some(json!({"x": [1, null]})),
        joined: "a+b".into(),
        code: Some(12),
    };
    assert_eq!(wares[0], first);
    let second = Ware {
        id: 8,
        name: "Dam".into(),
        price: 0.0,
        sold: None,
        tags: vec![],
        sizes: vec![],
        link: None,
        more: None,
        joined: String::new(),
        code: None,
    };
    assert_eq!(wares[1], second);
    assert_eq!(json_page(&json!({"name": "whole"})).item::<Size>().unwrap().name, "whole");
}

#[test]
fn errors_of_items_in_json_name_field_value_and_path() {
    let page = json_page(&json!({"wares": [{"id": "seven", "name": {}}, {"id": 1, "name": {}}]}));
    let told: Vec<String> = page
        .try_items_json::<Ware>("$.wares[*]")
        .unwrap()
        .into_iter()
        .map(|ware| ware.unwrap_err().to_string())
        .collect();
    assert!(
        told[0].contains("item 1 of 2") && told[0].contains("Ware.id: \"seven\" is not a number"),
        "{}",
        told[0]
    );
    assert!(told[1].contains("Ware.name: nothing matches json \"$.name.en\""), "{}", told[1]);
    assert!(html("<p>x").item::<Size>().unwrap_err().to_string().contains("as JSON"));
    #[derive(Item, Debug)]
    struct Mixed {
        #[item(css = "p")]
        _text: String,
    }
    let told = page.try_items_json::<Mixed>("$.wares[0]").unwrap().remove(0).unwrap_err().to_string();
    assert!(told.contains("this is JSON: use json"), "{told}");
}

#[derive(Item, Debug)]
struct Nested {
    #[item(json = "$..inner")]
    _inner: Vec<Nested>,
}

#[test]
fn items_of_json_that_contain_themselves_cannot_hang_or_fill_the_process() {
    let mut value = json!({});
    for _ in 0..60 {
        value = json!({"inner": value, "list": [1, 2, 3]});
    }
    let told = json_page(&value).item::<Nested>().unwrap_err().to_string();
    assert!(told.contains("visits of nodes") || told.contains("steps that are allowed"), "{told}");
}

#[test]
fn a_loader_reads_fields_that_are_named_at_run_time() {
    let page = html(BOOK);
    let number = Processor::compose([
        Processor::regex(r"[0-9.]+").unwrap(),
        Processor::map_text(|text| Ok(text.parse::<f64>()?.into())),
    ]);
    let mut loader = page.loader().default_output(Processor::take_first()).input("price", number.clone());
    loader = loader
        .input("stock", number)
        .output("crumbs", Processor::join(" > "))
        .output("images", Processor::identity());
    for (field, css) in [
        ("title", "h1"),
        ("price", ".price"),
        ("stock", ".stock"),
        ("crumbs", ".crumbs li"),
        ("images", "img::attr(src)"),
    ] {
        loader.add_css(field, css).unwrap();
    }
    loader
        .add_xpath("pages", "//dt[. = 'Pages']/following-sibling::dd[1]")
        .unwrap()
        .add_css("none", ".subtitle")
        .unwrap();
    loader.add_value("images", json!(["cover.png", null])).unwrap();
    assert_eq!(loader.values("images"), ["../m/1.png", "/m/2.png", "cover.png"]);
    let item = Value::from(loader.load().unwrap());
    let expected = json!({
        "title": "The Book", "price": 10.99, "stock": 7.0, "crumbs": "Home > Old books",
        "images": ["../m/1.png", "/m/2.png", "cover.png"], "pages": "321"
    });
    assert_eq!(item, expected, "texts are as those of derived items, and what is null is left out");
}

#[test]
fn a_loader_reads_elements_json_and_types() {
    #[derive(Debug, PartialEq, serde::Deserialize)]
    struct Offer {
        seller: String,
        ids: Vec<u32>,
    }
    let page = html("<div data-o='{\"ids\": [1, 2]}'><b>Ann</b></div><div><b>Bob</b></div>");
    let div = page.select("div").unwrap()[0];
    let mut loader = div.loader().output("seller", Processor::take_first());
    loader = loader.input("ids", Processor::select_json("$.ids[*]").unwrap());
    loader.add_css("seller", "b").unwrap().add_css("ids", "::attr(data-o)").unwrap();
    assert_eq!(loader.load_as::<Offer>().unwrap(), Offer { seller: "Ann".to_owned(), ids: vec![1, 2] });

    let url = Url::parse("http://h.test/api").unwrap();
    let mut response = Response::html(url.clone(), r#"{"things": [{"id": 1}, {"id": null}]}"#.to_owned());
    response.headers.insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    let page = Page::new(Request::get(url), response);
    let mut loader = page.loader();
    loader.add_json("ids", "$.things[*].id").unwrap();
    assert_eq!(Value::from(loader.load().unwrap()), json!({ "ids": [1] }));
}

#[test]
fn an_error_of_a_loader_names_page_field_and_value() {
    let page = html("<p>ten</p>");
    let price = Processor::map_text(|text| Ok(text.parse::<f64>()?.into()));
    let mut loader = page.loader().input("price", price);
    let error = loader.add_css("price", "p").unwrap_err().to_string();
    for part in ["http://h.test/a/b", "price", "\"ten\" cannot be converted"] {
        assert!(error.contains(part), "{part}: {error}");
    }
    assert!(loader.add_css("price", "p[").unwrap_err().to_string().contains("price"));
    assert!(loader.values("price").is_empty() && Processor::select_json("$[").is_err());
    let mut limited = html(&"<p>x</p>".repeat(2_000));
    limited = Page::new(limited.request().clone(), limited.response().clone());
    let mut loader = limited.loader();
    let path = "//p[count(//p[count(//p) > 0]) > 0]";
    assert!(loader.add_xpath("x", path).unwrap_err().to_string().contains("item of"), "reading is bounded");
}

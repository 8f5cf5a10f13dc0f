//! `huntsman crawl spider.toml`: a spider without code, run by the real command.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use huntsman_testkit::{Answer, RunningSite, Site};
use serde_json::Value;

use crate::common::{field, huntsman, lines, report, run};

/// Pages of quotes, each with a link to the next one and to the authors.
const PAGES: usize = 120;

fn quotes(page: usize) -> String {
    let quote = |n: usize| {
        format!(
            "<div class=quote><span class=text>\u{201c}Saying {page}.{n}\u{201d}</span><span>by <small class=author>Author {n}</small>\
             <a href='/author/{n}/'>(about)</a></span><div><a class=tag href='/tag/x'>x</a><a class=tag href='/tag/y'>y</a></div></div>"
        )
    };
    let next = if page < PAGES {
        format!("<li class=next><a href='/page/{}/'>Next</a></li>", page + 1)
    } else {
        String::new()
    };
    format!("<html><body>{}{}<ul>{next}</ul><a href='/login'>Login</a></body></html>", quote(1), quote(2))
}

fn site() -> RunningSite {
    let mut builder = Site::builder().page("/", quotes(1));
    for page in 2..=PAGES {
        builder = builder.page(&format!("/page/{page}/"), quotes(page));
    }
    builder
        .page("/author/1/", "<h3 class=author-title>Author 1</h3><span class=author-born-date>1900</span><a href='/page/2/'>2</a>")
        .page("/author/2/", "<p>Nothing is known of this author.")
        .route("/*", |_| Answer::status(404))
        .start_blocking()
}

/// The example, made for the local site.
fn example(site: &RunningSite) -> String {
    let text =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/spider.toml"))
            .unwrap();
    text.replace("https://quotes.toscrape.com/", site.url("/").as_str())
        .replace("\"quotes.toscrape.com\"", "\"127.0.0.1\"")
        .replace("download_delay = 0.5", "download_delay = 0")
}

/// The command for a spider file with this text.
fn crawl_file(directory: &Path, site: &RunningSite, text: &str) -> Command {
    std::fs::write(directory.join("spider.toml"), text).unwrap();
    let mut command = huntsman(directory);
    command.args(["crawl", "spider.toml", "--profile", "test"]);
    command.args(["--allow-address", &format!("127.0.0.1:{}", site.port()), "--set", "log_level=error"]);
    command
}

fn assert_items(items: &[Value]) {
    let quotes: Vec<&Value> = items.iter().filter(|item| item["item"] == "quote").collect();
    let texts: BTreeSet<&str> = quotes.iter().map(|quote| quote["text"].as_str().unwrap()).collect();
    assert_eq!((quotes.len(), texts.len()), (2 * PAGES, 2 * PAGES));
    assert!(texts.contains("Saying 7.2"));
    let authors: Vec<&Value> = items.iter().filter(|item| item["item"] == "author").collect();
    assert_eq!(authors.len(), 1);
    let expected = r#"{"item":"author","name":"Author 1","born":"1900","place":"unknown"}"#;
    assert_eq!(authors[0].to_string(), expected);
}

#[test]
fn the_example_gives_its_items_without_being_compiled() {
    let (dir, site) = (tempfile::tempdir().unwrap(), site());
    let said = run(crawl_file(dir.path(), &site, &example(&site)).args(["--store", "redb"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    let out = dir.path().join("quotes-crawl");
    let items = lines(out.join("items.jsonl"));
    assert_items(&items);
    let first = &items[0];
    assert_eq!((&first["author"], &first["tags"]), (&"Author 1".into(), &serde_json::json!(["x", "y"])));
    assert_eq!(first["about"], site.url("/author/1/").as_str());
    assert_eq!(
        lines(out.join("pages.jsonl")).len(),
        PAGES + 2,
        "every page has its record as in every crawl"
    );
    assert_eq!(site.count("/login") + site.count("/tag/x"), 0, "no rule takes these links");
    let message = "item \"author\" of";
    assert!(
        said.stderr.contains(message) && said.stderr.contains("field \"name\": it is required"),
        "{}",
        said.stderr
    );
    assert_eq!(report(&out)["stats"]["item_error_count"], 1);
}

#[test]
fn a_crawl_of_a_spider_file_that_is_killed_goes_on_without_loss_or_repetition() {
    let (dir, site) = (tempfile::tempdir().unwrap(), site());
    let command = || {
        let mut command = crawl_file(dir.path(), &site, &example(&site));
        command.args(["--store", "redb", "--out", "out", "--set", "job_commit_interval=0.1"]);
        command.args(["--requests-per-second", "200"]);
        command.args(["--set", "feeds=[\"items.jsonl\", \"%(name)s.csv\"]"]);
        command.stderr(Stdio::piped());
        command
    };
    for _ in 0..2 {
        let before = site.requests().len();
        let mut child = command().spawn().unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        while site.requests().len() < before + 35 && child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < deadline, "{} requests came", site.requests().len());
            std::thread::sleep(Duration::from_millis(3));
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let said = run(&mut command());
    assert_eq!(said.code, Some(0), "{said:?}");
    let items = lines(dir.path().join("out/items.jsonl"));
    assert_items(&items);
    let rows = std::fs::read_to_string(dir.path().join("out/quotes.csv")).unwrap();
    assert_eq!(rows.lines().count(), items.len() + 1, "the other feed of the settings goes on as well");
    let pages = field(&lines(dir.path().join("out/pages.jsonl")), "url");
    assert_eq!(pages.iter().collect::<BTreeSet<_>>().len(), pages.len());
    assert!(run(&mut command()).stderr.contains("finished crawl"));
}

#[test]
fn items_go_to_the_file_or_the_output_that_is_named() {
    let (dir, site) = (tempfile::tempdir().unwrap(), site());
    let text = example(&site);
    let limited = |more: &[&str]| {
        let mut command = crawl_file(dir.path(), &site, &text);
        command.args(["--max-pages", "1", "--fresh", "--out", "out"]).args(more);
        run(&mut command)
    };
    assert_eq!(limited(&["--store", "redb", "-o", "quotes.csv"]).code, Some(0));
    let csv = std::fs::read_to_string(dir.path().join("quotes.csv")).unwrap();
    assert_eq!(csv.lines().next(), Some("item,text,author,about,tags,page"));
    assert_eq!(limited(&["--store", "memory", "--items", "quotes.json"]).code, Some(0));
    let json: Value =
        serde_json::from_slice(&std::fs::read(dir.path().join("quotes.json")).unwrap()).unwrap();
    assert_eq!(json.as_array().unwrap().len(), 2);
    let again = limited(&["--store", "memory", "-o", "quotes.json"]);
    assert!(again.code == Some(1) && again.stderr.contains("overwrite it"), "{again:?}");
    assert_eq!(limited(&["--store", "memory", "-O", "quotes.json"]).code, Some(0));
    let refused = limited(&["--store", "redb", "-o", "quotes.xml"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("--store memory"), "{}", refused.stderr);
    let said = run(crawl_file(dir.path(), &site, &text).args(["--max-pages", "1", "--out", "-"]));
    let item: Value = serde_json::from_str(said.stdout.lines().next().unwrap()).unwrap();
    assert_eq!(item["text"], "Saying 1.1");
}

#[test]
fn sitemaps_and_files_of_urls_are_starts_too() {
    let dir = tempfile::tempdir().unwrap();
    let list = "<urlset><url><loc>/a</loc></url><url><loc>/b</loc></url></urlset>";
    let list = Answer::status(200).header("Content-Type", "application/xml").body(list);
    let site = Site::builder()
        .answer("/list.xml", list)
        .page("/a", "<title>A</title><a href=/other>o</a>")
        .page("/b", "<title>B</title>")
        .start_blocking();
    let item = "[items.page.fields]\ntitle = { source = \"title\" }\n";
    let text = format!("name = \"mine\"\nsitemaps = \"{}\"\n{item}", site.url("/list.xml"));
    let said = run(crawl_file(dir.path(), &site, &text).args(["--out", "a"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(field(&lines(dir.path().join("a/items.jsonl")), "title"), ["A", "B"]);
    std::fs::write(dir.path().join("urls.txt"), format!("# one\n{}\n", site.url("/b"))).unwrap();
    let text = format!("start_file = \"urls.txt\"\n{item}");
    let said = run(crawl_file(dir.path(), &site, &text).args(["--out", "b"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(field(&lines(dir.path().join("b/items.jsonl")), "title"), ["B"]);
    assert_eq!(site.count("/other"), 0, "without rules no link is followed");
}

#[test]
fn settings_of_the_command_win_over_those_of_the_file() {
    let (dir, site) = (tempfile::tempdir().unwrap(), site());
    let text = example(&site).replace("download_delay = 0", "download_delay = 0\nclosespider_pagecount = 3");
    assert_eq!(run(crawl_file(dir.path(), &site, &text).args(["--out", "a"])).code, Some(0));
    assert_eq!(lines(dir.path().join("a/pages.jsonl")).len(), 3);
    let more = ["--out", "b", "--set", "closespider_pagecount=5"];
    assert_eq!(run(crawl_file(dir.path(), &site, &text).args(more)).code, Some(0));
    assert_eq!(lines(dir.path().join("b/pages.jsonl")).len(), 5);
}

#[test]
fn a_broken_file_is_told_with_its_line_before_anything_is_done() {
    let (dir, site) = (tempfile::tempdir().unwrap(), site());
    let text = example(&site).replace("restrict_css", "restrict_cs");
    let said = run(crawl_file(dir.path(), &site, &text).args(["--out", "out"]));
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(
        said.stderr.contains("spider.toml, line 11: unknown key \"restrict_cs\"; did you mean"),
        "{}",
        said.stderr
    );
    let said = run(crawl_file(dir.path(), &site, &example(&site)).arg("http://other.example/"));
    assert!(said.stderr.contains("has its own start URLs"), "{}", said.stderr);
    let mut command = huntsman(dir.path());
    let said = run(command.args(["crawl", "http://127.0.0.1:1/", "-o", "x.csv"]));
    assert!(said.code == Some(2) && said.stderr.contains("only a spider file has items"), "{}", said.stderr);
    assert!(!dir.path().join("out").exists());
    assert_eq!(site.requests().len(), 0);
}

#[test]
fn images_of_a_spider_file_survive_kills() {
    const IMAGES: usize = 300;
    let picture = |n: usize| [b"\x89PNG\r\n\x1a\n", n.to_string().as_bytes()].concat();
    let mut builder = Site::builder();
    for n in 0..IMAGES {
        let next = format!("<img src='../i/{n}'><img src='/i/all'><a href='/p/{}'>next</a>", n + 1);
        let path = if n == 0 { "/".to_owned() } else { format!("/p/{n}") };
        builder = builder.page(&path, next);
        builder = builder.answer(&format!("/i/{n}"), Answer::status(200).body(picture(n)));
    }
    let site = builder
        .answer("/i/all", Answer::status(200).header("Content-Type", "image/png").body(picture(0)))
        .route("/*", |_| Answer::status(404))
        .start_blocking();
    let text = format!(
        "name = 'shop'\nstart = ['{}']\nallowed_domains = ['127.0.0.1']\n[settings]\nimages_store = 'images'\njob_commit_interval = 0.1\n\
         [[rules]]\nrestrict_css = 'a'\n[items.product.fields]\nimage_urls = {{ css = 'img::attr(src)', type = 'list' }}\n",
        site.url("/")
    );
    let dir = tempfile::tempdir().unwrap();
    let command = || {
        let mut command = crawl_file(dir.path(), &site, &text);
        command.args(["--store", "redb"]);
        command
    };
    for kill in 1..=3 {
        let mut child = command().stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        let before = site.requests().len();
        while site.requests().len() < before + 40 * kill && child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < deadline, "the crawl goes on");
            std::thread::sleep(Duration::from_millis(3));
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let said = run(&mut command());
    assert_eq!(said.code, Some(0), "{said:?}");
    let items = lines(dir.path().join("shop-crawl/items.jsonl"));
    assert_eq!(items.len(), IMAGES, "each page has its item once");
    for item in &items {
        let images = item["images"].as_array().unwrap();
        assert_eq!(images.len(), 2);
        for image in images {
            assert_ne!(image["status"], "failed", "{item}");
            let n = image["url"].as_str().unwrap().rsplit('/').next().unwrap().parse().unwrap_or(0);
            let file = dir.path().join("images").join(image["path"].as_str().unwrap());
            assert_eq!(std::fs::read(file).unwrap(), picture(n));
        }
    }
    let twice: usize = (0..IMAGES).map(|n| site.count(&format!("/i/{n}")) - 1).sum();
    assert!(twice <= 3 * 8, "{twice} images were fetched again after three kills");
    assert_eq!(site.count("/i/all"), 1, "this one was there before the first kill");
}

#[test]
fn items_are_checked_and_a_rule_that_fails_gives_exit_code_10() {
    let dir = tempfile::tempdir().unwrap();
    let shop = "<div class=book><h2>Mills</h2><i>3</i></div><div class=book><h2>Dams</h2></div><div class=book><i>1</i></div>";
    let site = Site::builder().page("/", shop).start_blocking();
    std::fs::write(
        dir.path().join("book.json"),
        r#"{"required": ["title"], "properties": {"title": {"type": "string"}}}"#,
    )
    .unwrap();
    let text = format!(
        "name = \"books\"\nstart = [\"{}\"]\n[settings]\nitem_schema = \"book.json\"\nquality_rules = [\"coverage.price >= 0.9\", \"items >= 3\"]\n\
         [items.book]\neach = \"div.book\"\n[items.book.fields]\ntitle = \"h2::text\"\nprice = \"i::text\"\n",
        site.url("/")
    );
    let said = run(crawl_file(dir.path(), &site, &text).args(["--out", "out", "--html"]));
    assert_eq!(said.code, Some(10), "{said:?}");
    for part in [
        "but 2 quality rules failed",
        "coverage.price >= 0.9: coverage/price is 0.5",
        "items >= 3: items is 2",
    ] {
        assert!(said.stderr.contains(part), "{part}: {said:?}");
    }
    assert_eq!(lines(dir.path().join("out/items.jsonl")).len(), 2);
    let report = report(&dir.path().join("out"));
    assert_eq!(report["failed_rules"][1]["why"], "items is 2");
    assert_eq!(
        (&report["coverage"]["items"], &report["stats"]["item_dropped_count"]),
        (&2.into(), &1.into())
    );
    let price = serde_json::json!({"field": "price", "filled": 1, "share": 0.5});
    assert_eq!(report["coverage"]["fields"][0], price);
    let html = std::fs::read_to_string(dir.path().join("out/report.html")).unwrap();
    assert!(html.contains("Quality rules that failed") && html.contains("Fields of the items"), "{html}");

    // A rule that is mistyped and a schema that is wrong are told before anything is written.
    std::fs::write(dir.path().join("wrong.json"), r#"{"required": "title"}"#).unwrap();
    for (setting, part) in [
        ("quality_rules=coverage.price > > 1", "rule 1"),
        ("item_schema=wrong.json", "at #/required"),
        ("webhook_url=SECRET", "webhook_url"),
    ] {
        let said = run(crawl_file(dir.path(), &site, &text).args(["--out", "new", "--set", setting]));
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.stderr.contains(part) && !said.stderr.contains("SECRET"), "{said:?}");
        assert!(!dir.path().join("new").exists());
    }
}

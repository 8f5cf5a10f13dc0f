//! The whole way of a spider that runs every night: it logs in, follows rules, fetches images, writes three feeds, is scheduled twice by the
//! daemon and watched in a browser, and is killed on the way. The program is `examples/members.rs`.

use std::collections::BTreeMap;

use huntsman_testkit::SiteRequest;
use huntsman_testkit::browser::Browser;

use super::*;

const PRODUCTS: usize = 12;
/// The page that is held back until the crawl was killed.
const HELD: usize = 7;
const PATIENCE: Duration = Duration::from_secs(120);

/// A shop for members only: two categories with six products each, and one photo per product.
fn shop(gate: &Gate) -> RunningSite {
    let gate = gate.clone();
    let is_member =
        |request: &SiteRequest| request.header("cookie").is_some_and(|it| it.contains("member=ann"));
    let inside = move |request: &SiteRequest, html: String| match is_member(request) {
        true => Answer::html(html),
        false => Answer::redirect(302, "/login"),
    };
    let number = |request: &SiteRequest| request.path().rsplit('/').next().unwrap().parse::<usize>().unwrap();
    Site::builder()
        .page(
            "/login",
            "<form id=login method=post action=/in><input type=hidden name=token value=t7><input name=user>\
             <input name=password type=password><button>In</button></form>",
        )
        .route("/in", |request| {
            let body = String::from_utf8_lossy(&request.body).into_owned();
            let is_right = ["token=t7", "user=ann", "password=mill"].iter().all(|part| body.contains(part));
            let set = if is_right { "member=ann; Path=/" } else { "member=; Path=/" };
            Answer::redirect(302, "/home").header("Set-Cookie", set)
        })
        .route("/home", move |request| {
            let links =
                "<a class=logout href=/out>Out</a> <a href=/category/0>A</a> <a href=/category/1>B</a>";
            inside(request, links.to_owned())
        })
        .route("/category/*", move |request| {
            let first = number(request) * PRODUCTS / 2;
            let link = |n: usize| format!("<a href=/product/{n}>{n}</a> ");
            inside(request, (first..first + PRODUCTS / 2).map(link).collect())
        })
        .route("/product/*", move |request| {
            let n = number(request);
            let html = format!(
                "<h1>Mill {n}, \"old\"</h1><p class=price>{n}.50</p><img class=photo src=/photo/{n}>"
            );
            let answer = inside(request, html);
            if n == HELD { answer.behind(&gate) } else { answer }
        })
        .route("/photo/*", move |request| {
            let body = [b"\x89PNG\r\n\x1a\n", request.path().as_bytes()].concat();
            match is_member(request) {
                true => Answer::status(200).header("Content-Type", "image/png").body(body),
                false => Answer::status(403),
            }
        })
        .start_blocking()
}

struct Shop {
    dir: tempfile::TempDir,
    login: String,
}

impl Shop {
    fn new(site: &RunningSite) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let settings = format!(
            "allow_addresses = [\"127.0.0.1:{}\"]\ndownload_delay = 0\nconcurrent_requests_per_domain = 4\nrobotstxt_obey = false\n\
             log_level = \"warn\"\nfeeds = [\"items.jsonl\", \"%(name)s-%(time)s.csv\", \"items.sqlite\"]\n",
            site.port()
        );
        fs::write(dir.path().join("huntsman.toml"), settings).unwrap();
        Self { dir, login: format!("login={}", site.url("/login")) }
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = example("members", self.dir.path());
        command.args(words).env("SHOP_PASSWORD", "mill");
        command
    }

    fn said(&self, words: &[&str]) -> Said {
        run(&mut self.command(words))
    }

    fn until(&self, words: &[&str], is_wanted: &dyn Fn(&Said) -> bool) -> Said {
        let begun = Instant::now();
        loop {
            let said = self.said(words);
            if is_wanted(&said) {
                return said;
            }
            assert!(begun.elapsed() < PATIENCE, "{said:?}");
        }
    }

    fn schedule(&self) -> String {
        let said = self.said(&["jobs", "schedule", "shop", "members", "-a", &self.login]);
        assert_eq!(said.code, Some(0), "{said:?}");
        said.stdout.trim().to_owned()
    }

    fn job(&self, id: &str, is_wanted: impl Fn(&Value) -> bool) -> Value {
        let job = |said: &Said| serde_json::from_str::<Value>(&said.stdout).unwrap_or_default();
        job(&self.until(&["jobs", "show", id, "--json"], &|said| is_wanted(&job(said))))
    }

    /// The names in the three files of a job, each read by a reader that is not ours, with the status of their images.
    fn feeds(&self, id: &str) -> [Vec<(String, String)>; 3] {
        let folder = self.dir.path().join("jobs/jobs").join(id).join("crawl");
        let status = |images: &str| {
            let images: Value = serde_json::from_str(images).unwrap();
            // A list of one object is a cell with that object.
            let image = if images.is_array() { &images[0] } else { &images };
            image["status"].as_str().unwrap_or_else(|| panic!("{images}")).to_owned()
        };
        let lines = read(&folder, "items.jsonl");
        let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let lines = lines
            .map(|item| (item["name"].as_str().unwrap().to_owned(), status(&item["images"].to_string())));
        let files = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
        let files: Vec<PathBuf> =
            files.filter(|file| file.extension().is_some_and(|it| it == "csv")).collect();
        let [rows] = &files[..] else { panic!("the name of a job's file stays the same: {files:?}") };
        let mut rows = csv::Reader::from_path(rows).unwrap();
        let rows = rows.deserialize().map(|row| row.unwrap());
        let rows = rows.map(|row: BTreeMap<String, String>| (row["name"].clone(), status(&row["images"])));
        let table = rusqlite::Connection::open(folder.join("items.sqlite")).unwrap();
        let mut query = table.prepare("SELECT name, images FROM items").unwrap();
        let query = query.query_map([], |row| Ok((row.get(0)?, row.get::<_, String>(1)?))).unwrap();
        let query = query.map(|row| row.unwrap()).map(|(name, images): (String, _)| (name, status(&images)));
        [lines.collect(), rows.collect(), query.collect()].map(|mut items: Vec<_>| {
            items.sort();
            items
        })
    }
}

/// All products with this status of their image.
fn all(status: &str) -> Vec<(String, String)> {
    let mut all: Vec<_> = (0..PRODUCTS).map(|n| (format!("Mill {n}, \"old\""), status.to_owned())).collect();
    all.sort();
    all
}

#[test]
fn a_spider_behind_a_login_is_scheduled_watched_killed_and_brings_each_item_once() {
    let gate = Gate::default();
    let site = shop(&gate);
    let shop = Shop::new(&site);
    let daemon = shop.command(&["serve", "jobs", "-L", "error"]).stderr(Stdio::null()).spawn().unwrap();
    let mut daemon = Killed(daemon);
    shop.until(&["jobs", "status"], &|said| said.code == Some(0));

    let first = shop.schedule();
    let second = shop.schedule();
    wait_for(&site, &format!("/product/{HELD}"));
    let running = shop.job(&first, |job| job["items"].as_u64() >= Some(5));
    assert_eq!(shop.job(&second, |_| true)["state"], "pending", "one job of a spider at a time");

    // In the browser: what runs, what waits, and the page of the crawl.
    let browser = Browser::start();
    browser.open(shop.said(&["jobs", "open"]).stdout.trim());
    browser.wait_for("#running-jobs tbody button:enabled");
    assert!(browser.text("#running-jobs").contains("members"), "{}", browser.text("#running-jobs"));
    browser.click("#running-jobs tbody button:enabled");
    browser.wait_for("#hosts tbody tr");
    assert!(browser.text("#hosts").contains("127.0.0.1"), "{}", browser.text("#hosts"));

    // Nothing can tidy up after this.
    run(Command::new("kill").args(["-KILL", &running["pid"].to_string()]));
    shop.job(&first, |job| job["deaths"] == 1);
    gate.open();
    for (id, deaths, status) in [(&first, 1, "downloaded"), (&second, 0, "uptodate")] {
        let job = shop.job(id, |job| job["state"] == "finished");
        assert_eq!(
            (&job["exit_code"], &job["deaths"], &job["items"]),
            (&0.into(), &deaths.into(), &PRODUCTS.into()),
            "{job}: {}",
            shop.said(&["jobs", "log", id]).stdout
        );
        let names =
            |items: &[(String, String)]| items.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        for items in shop.feeds(id) {
            assert_eq!(names(&items), names(&all(status)), "each item once");
            // An image that was there when its page was processed again is not fetched again.
            assert!(deaths == 1 || items == all(status), "{items:?}");
        }
    }
    for n in 0..PRODUCTS {
        assert_eq!(site.count(&format!("/photo/{n}")), 1, "photo {n}");
    }
    browser.open(shop.said(&["jobs", "open"]).stdout.trim());
    browser.wait_for("#finished-jobs .finished");
    run(Command::new("kill").args(["-TERM", &daemon.0.id().to_string()]));
    assert_eq!(daemon.0.wait().unwrap().code(), Some(130));
}

#[test]
fn pages_behind_a_login_become_fixtures_without_its_secrets() {
    let gate = Gate::default();
    gate.open();
    let site = shop(&gate);
    let shop = Shop::new(&site);
    let crawl = ["crawl", "members", "-a", &shop.login, "--out", "run", "--record", "fixtures/members"];
    let refused = run(shop.command(&["crawl", "members", "-a", &shop.login]).env("SHOP_PASSWORD", "mil"));
    assert!(refused.stderr.contains("the login was refused"), "{refused:?}");
    let said = shop.said(&crawl);
    assert_eq!(said.code, Some(0), "{said:?}");
    let check = |more: &[&str]| shop.said(&[&["check", "members", "-a", &shop.login], more].concat());
    assert_eq!(check(&["--accept"]).code, Some(0));
    let said = check(&[]);
    assert!(said.code == Some(0) && said.stdout.contains(" 0 wrong"), "{said:?}");
    let fixtures = fs::read_dir(shop.dir.path().join("fixtures/members")).unwrap();
    for file in fixtures.map(|entry| entry.unwrap().path()) {
        let text = String::from_utf8_lossy(&fs::read(&file).unwrap()).into_owned();
        assert!(!text.contains("password=mill") && !text.contains("member=ann"), "{}", file.display());
    }
}

#[test]
fn settings_name_the_feeds_and_flags_replace_them() {
    let (dir, site) = (tempfile::tempdir().unwrap(), books().start_blocking());
    let crawl = |more: &[&str]| run(on(dir.path(), &site, &["crawl", "books"]).args(more));
    let names = |folder: &str, part: &str| {
        let names = fs::read_dir(dir.path().join(folder)).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| name.contains(part)).collect();
        names.sort();
        names
    };
    let settings = dir.path().join("huntsman.toml");
    fs::write(&settings, "[spiders.books]\nfeeds = [\"all.jsonl\", \"%(name)s-%(most)s.csv\"]\n").unwrap();
    for _ in 0..2 {
        let said = crawl(&["-a", "most=1"]);
        assert_eq!((said.code, said.stdout.as_str()), (Some(0), ""), "{said:?}");
    }
    assert_eq!(titles(&read(dir.path(), "all.jsonl")), ["Mills", "Mills"], "they are added to");
    assert_eq!(read(dir.path(), "books-1.csv"), "title,price\nMills,10.5\nMills,10.5\n");
    assert_eq!(crawl(&["-a", "most=1", "-o", "one.jsonl"]).code, Some(0));
    assert_eq!(read(dir.path(), "all.jsonl").lines().count(), 2, "a flag names another file");

    // In a directory the files are those of the crawl.
    fs::write(&settings, "feeds = [\"all.jsonl\", \"%(name)s-%(time)s.csv\"]\n").unwrap();
    assert_eq!(crawl(&["--out", "run"]).code, Some(0));
    let rows = names("run", "books-");
    assert_eq!((names("run", "items"), rows.len()), (Vec::<String>::new(), 1));
    assert_eq!(titles(&read(dir.path(), "run/all.jsonl")), ["Dams", "Mills"]);
    assert_eq!(read(dir.path(), &format!("run/{}", rows[0])).lines().count(), 3);
    assert_eq!(crawl(&["--out", "run", "--fresh"]).code, Some(0));
    assert_eq!(titles(&read(dir.path(), "run/all.jsonl")), ["Dams", "Mills"]);

    for (feeds, more, part) in [
        ("a.txt", &[][..], "setting feeds: a.txt: the name has to end with"),
        ("a.json", &["--out", "new"], "a crawl that can be continued writes"),
        ("%(batch_id)d.csv", &["--out", "new"], "a job goes on with one file"),
        ("%(shelf)s.csv", &["--out", "new"], "no parameter shelf"),
        ("a.csv", &["cheap"], "several spiders cannot share it"),
    ] {
        fs::write(&settings, format!("feeds = [\"{feeds}\"]\n")).unwrap();
        let said = crawl(more);
        assert!(said.code == Some(2) && said.stderr.contains(part), "{feeds}: {said:?}");
        assert!(!dir.path().join("new").exists(), "{feeds}");
    }
}

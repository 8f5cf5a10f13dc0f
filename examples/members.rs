//! A project as it runs every night: a spider that logs in, follows rules and fetches images, and writes the
//! feeds that its settings name.
//!
//! With arguments it is that program: `cargo run --features project,sqlite --example members -- list`. Without arguments it starts a site of
//! its own and crawls it.

use std::process::ExitCode;

use huntsman::meta;
use huntsman::prelude::*;
use huntsman::project::command::exit::Exit;
use huntsman_testkit::{Answer, Site};

#[derive(Debug, Item, Serialize)]
struct Product {
    #[item(css = "h1")]
    name: String,
    #[item(css = ".price", re = "[0-9.]+")]
    price: f64,
    #[item(css = "img.photo::attr(src)")]
    photos: Vec<Url>,
    /// The files of the photos, which the pipeline of images fills in.
    #[item(skip)]
    images: Vec<StoredFile>,
}

impl MediaItem for Product {
    fn media_urls(&self, _: &str) -> Vec<String> {
        self.photos.iter().map(Url::to_string).collect()
    }

    fn set_media(&mut self, _: &str, stored: Vec<StoredFile>) {
        self.images = stored;
    }
}

/// Logs in; the rules lead to categories and products.
struct Members {
    login: Url,
}

impl Members {
    /// The spider for `-a login=URL`. The password is no argument, because the list of jobs shows those.
    fn new(arguments: &Arguments) -> Result<Rules<Self>> {
        Ok(Rules::new(Self { login: arguments.require("login")? })
            .rule(LinkExtractor::new().allow("/category/")?)
            .rule(Rule::new(LinkExtractor::new().allow("/product/")?).callback("product")))
    }
}

impl Spider for Members {
    type Item = Product;

    fn start(&self) -> Start {
        Start::urls([self.login.clone()])
    }

    fn callbacks(&self) -> &[&str] {
        &["inside", "product"]
    }

    fn parse(&self, page: &Page, out: &mut Output<Product>) -> Result<()> {
        match page.callback() {
            "product" => out.item(page.item()?),
            "inside" if page.select("a.logout")?.is_empty() => {
                return Err(Error::msg("the login was refused"));
            }
            // The rules follow the links of this page.
            "inside" => {}
            _ => {
                let password = std::env::var("SHOP_PASSWORD").unwrap_or_default();
                let form = Form::of(page, "form#login")?.set("user", "ann")?.set("password", &password)?;
                out.request(form.request()?.callback("inside").with_meta(meta::FOLLOW_RULES, true));
            }
        }
        Ok(())
    }
}

fn main() -> ExitCode {
    let project = Project::new("shop").version(env!("CARGO_PKG_VERSION")).crawler("members", |arguments| {
        Ok(huntsman::crawl(Members::new(arguments)?).concurrent_pipeline(Media::images("images")))
    });
    match std::env::args_os().len() {
        0 | 1 => shown(&project),
        _ => project.main(),
    }
}

/// Crawls a site on this machine.
fn shown(project: &Project) -> ExitCode {
    let site = Site::builder()
        .page(
            "/login",
            "<form id=login method=post action=/in><input name=user><input name=password type=password></form>",
        )
        .answer("/in", Answer::redirect(302, "/home"))
        .page("/home", "<a class=logout href=/out>Log out</a> <a href=/category/1>Mills</a>")
        .page("/category/1", "<a href=/product/1>1</a> <a href=/product/2>2</a>")
        .page("/product/1", "<h1>Windmill</h1><p class=price>10.50</p>")
        .page("/product/2", "<h1>Watermill</h1><p class=price>25.00</p>")
        .start_blocking();
    let folder = std::env::temp_dir().join(format!("huntsman-members-{}", std::process::id()));
    let feeds = "feeds=[\"items.jsonl\", \"items.csv\"]";
    let (address, login) = (format!("127.0.0.1:{}", site.port()), format!("login={}", site.url("/login")));
    let out = folder.to_string_lossy();
    let local = ["--profile", "test", "--allow-address", &address, "-a", &login, "-s", "log_level=warn"];
    let words = [&["shop", "crawl", "--out", &out, "-s", feeds][..], &local].concat();
    assert_eq!(project.run(words), Exit::Done);
    let rows = std::fs::read_to_string(folder.join("items.csv")).unwrap_or_default();
    println!("\n$ cat items.csv\n{rows}");
    assert_eq!(rows.lines().count(), 3);
    let _ = std::fs::remove_dir_all(&folder);
    ExitCode::SUCCESS
}

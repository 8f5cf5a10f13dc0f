//! A program of one's own spiders: with arguments it is that program, `cargo run --features project --example project -- list`.
//!
//! Without arguments it starts a site of its own and runs its commands against it: `cargo run --features project --example project`.

use std::process::ExitCode;

use huntsman::prelude::*;
use huntsman::project::command::exit::Exit;
use huntsman_testkit::Site;

#[derive(Item, Serialize)]
struct Book {
    #[item(css = "h1")]
    title: String,
    #[item(css = ".price", re = "[0-9.]+")]
    price: f64,
}

/// What a page is for.
#[derive(Serialize, Deserialize)]
enum To {
    #[serde(rename = "parse")]
    Shelf,
    Book,
}

/// Reads the books of a shelf.
struct Books {
    start: Url,
    most: usize,
}

impl Books {
    /// The spider for `-a start=URL -a most=NUMBER`.
    fn new(arguments: &Arguments) -> Result<Self> {
        Ok(Self { start: arguments.require("start")?, most: arguments.parse_or("most", usize::MAX)? })
    }
}

impl Spider for Books {
    type Item = Book;

    fn start(&self) -> Start {
        Start::urls([self.start.clone()])
    }

    fn parse(&self, page: &Page, out: &mut Output<Book>) -> Result<()> {
        match page.route()? {
            To::Shelf => {
                for book in page.select("a.book")?.into_iter().take(self.most) {
                    out.go(book.href()?, To::Book)?;
                }
            }
            To::Book => out.item(page.item()?),
        }
        Ok(())
    }
}

/// Drops what costs too much.
struct Cheap;

impl Pipeline<Book> for Cheap {
    async fn process_item(&mut self, book: Book, _: &Context) -> Result<OnItem<Book>> {
        Ok(if book.price < 20.0 { OnItem::Keep(book) } else { OnItem::Drop("expensive".into()) })
    }
}

fn main() -> ExitCode {
    let project = Project::new("bookshop")
        .version(env!("CARGO_PKG_VERSION"))
        .spider("books", Books::new)
        // With a pipeline of its own, and a setting that `huntsman.toml` and `-s` may change.
        .crawler("cheap", |arguments| {
            Ok(huntsman::crawl(Books::new(arguments)?).pipeline(Cheap).set("depth_limit", 3))
        });
    match std::env::args_os().len() {
        0 | 1 => shown(&project),
        _ => project.main(),
    }
}

/// Runs the commands against a site on this machine.
fn shown(project: &Project) -> ExitCode {
    let site = Site::builder()
        .page(
            "/",
            "<a class=book href=/1>Mills</a> <a class=book href=/2>Dams</a> <a class=book href=/3>Locks</a>",
        )
        .page("/1", "<h1>Mills</h1><p class=price>£10.50</p>")
        .page("/2", "<h1>Dams</h1><p class=price>£25.00</p>")
        .page("/3", "<h1>Locks</h1><p class=price>£7.25</p>")
        .start_blocking();
    let folder = std::env::temp_dir().join(format!("huntsman-project-{}", std::process::id()));
    let items = folder.with_extension("csv");
    let (address, start) = (format!("127.0.0.1:{}", site.port()), format!("start={}", site.url("/")));
    let (book, items) = (site.url("/2").to_string(), items.to_string_lossy().into_owned());
    // A local site needs no pause between requests, and its address must be allowed explicitly.
    let local = ["--profile", "test", "--allow-address", &address, "-a", &start, "-s", "log_level=warn"];
    let commands = [
        vec!["list"],
        [&["crawl", "books"][..], &local].concat(),
        [&["crawl", "cheap", "-a", "most=2", "-O", &items][..], &local].concat(),
        [&["parse", &book, "--spider", "books", "--callback", "Book"][..], &local].concat(),
        vec!["settings", "cheap", "--get", "depth_limit", "--explain", "-a", &start],
    ];
    for command in commands {
        println!("\n$ bookshop {}", command.join(" "));
        let exit = project.run(["bookshop"].into_iter().chain(command));
        assert_eq!(exit, Exit::Done);
    }
    let written = std::fs::read_to_string(&items).unwrap_or_default();
    println!("\n$ cat items.csv\n{written}");
    assert_eq!(written, "title,price\nMills,10.5\n");
    let _ = std::fs::remove_file(&items);
    ExitCode::SUCCESS
}

//! Pages that need JavaScript: a list that a script loads, a button that brings more of it, and a picture of the page.
//!
//! Starts its own site, and needs Chromium: `cargo run --example render --features render`.

use huntsman::browser::{Action, Ready, Shot};
use huntsman::prelude::*;
use huntsman_testkit::{Answer, RunningSite, Site};

/// A shop whose page is empty until its script has asked for the goods.
async fn shop() -> RunningSite {
    let script = "
        let next = 0;
        async function more() {
            const goods = await (await fetch('/goods?from=' + next)).json();
            next += goods.length;
            for (const name of goods) document.querySelector('ul').insertAdjacentHTML('beforeend', '<li>' + name);
        }
        more();
        document.querySelector('button').onclick = more;";
    Site::builder()
        .page("/", "<title>Mills</title><ul></ul><button>More</button><script src=/shop.js></script>")
        .answer("/shop.js", Answer::text(script).header("Content-Type", "text/javascript"))
        .route("/goods", |asked| {
            let goods = if asked.target.ends_with("=0") {
                r#"["A mill", "A small mill"]"#
            } else {
                r#"["A large mill"]"#
            };
            Answer::text(goods).header("Content-Type", "application/json")
        })
        .start()
        .await
}

/// Takes the names of the goods from the page as it is at the end.
struct Goods {
    shop: Url,
}

impl Spider for Goods {
    type Item = String;

    fn start(&self) -> Start {
        // What is done on the page. It is data: a job keeps it with the request.
        let rendering = Rendering {
            steps: vec![
                Action::Click("button".to_owned()).into(),
                Action::WaitFor(Ready::Selector("li:nth-child(3)".to_owned())).into(),
                Action::Screenshot { is_full: true }.into(),
            ],
            ..Rendering::default()
        };
        Start::requests([Request::get(self.shop.clone()).render(rendering)])
    }

    fn parse(&self, page: &Page, out: &mut Output<String>) -> Result<()> {
        for name in page.css("li::text")?.get_all().to_vec() {
            println!("{name}");
            out.item(name);
        }
        if let Some(rendered) = page.rendered() {
            println!("the page made {} requests", rendered.requests.len());
            for shot in &rendered.shots {
                if let Shot::Png(picture) = shot {
                    println!("a picture of it has {} bytes", picture.len());
                }
            }
        }
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let site = shop().await;
    let report = huntsman::crawl(Goods { shop: site.url("/") })
        // The site is on this machine, and its scripts are those above. Pages of others belong into the sandbox of the browser.
        .set("allow_addresses", vec![format!("127.0.0.1:{}", site.port())])
        .set("render_sandbox", "off")
        .set("download_delay", 0.0)
        .run()
        .await?;
    println!("{report}");
    assert_eq!(report.stat("item_scraped_count"), 3);
    Ok(())
}

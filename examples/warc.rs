//! An archive of a site: every exchange in WARC files, and the second crawl refers to the first.
//!
//! Starts its own site: `cargo run --example warc`.

use huntsman::prelude::*;
use huntsman::warc::WarcReader;
use huntsman_testkit::Site;

#[tokio::main]
async fn main() -> Result<()> {
    let site = Site::builder()
        .page("/", "<a href=/mill>A mill</a> <a href=/barn>A barn</a>")
        .page("/mill", "<h1>Mill</h1>")
        .page("/barn", "<h1>Barn</h1>")
        .start()
        .await;
    let folder = std::env::temp_dir().join(format!("archive-{}", std::process::id()));
    for expected in [(3, 0), (0, 3)] {
        let spider = spider_fn([site.url("/").to_string()], |page: &Page, out: &mut Output<()>| {
            out.follow_links(page);
            Ok(())
        });
        let report = huntsman::crawl(spider)
            .profile(Profile::Test)
            .set("allow_addresses", vec![format!("127.0.0.1:{}", site.port())])
            .warc(Warc::to(&folder))
            .run()
            .await?;
        // A page that has not changed is a revisit: a record without a body, which names the earlier one.
        assert_eq!((report.stat("warc/responses"), report.stat("warc/revisits")), expected);
    }

    for entry in std::fs::read_dir(&folder)? {
        let mut reader = WarcReader::new(std::fs::File::open(entry?.path())?);
        while let Some(head) = reader.next_head()? {
            println!("{:<8} {}", head.kind(), head.target().unwrap_or_default());
        }
    }
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}

//! The command `bench`: crawls a generated site on this machine with the middlewares of a usual crawl, and measures it.

use huntsman_crawler::{CrawlerBuilder, HttpDownloader, Layer, Layers, Output, Page, Profile, spider_fn};
use huntsman_middleware::Defaults;

use crate::command::bench::{self, BenchArgs, BenchCrawl};
use crate::command::exit::{Exit, Outcome};
use crate::command::logging;
use crate::command::progress::Screen;

pub(crate) async fn run(args: BenchArgs) -> Outcome {
    bench::run(&args, async |port| {
        let spider = spider_fn([bench::start_url(port)], |page: &Page, out: &mut Output<()>| {
            out.follow_links(page);
            Ok(())
        });
        let builder = CrawlerBuilder::new(spider).plugin(Defaults).downloader_with(HttpDownloader::new);
        // Neither the settings file nor the environment of the project, so that figures of two programs can be compared.
        let mut layers = Layers::default();
        layers.set_profile(Profile::Test);
        layers.set(Layer::CommandLine, "log_level", "warn");
        for (name, value) in args.settings(port) {
            layers.set(Layer::CommandLine, name, value);
        }
        logging::start(&layers.resolve(builder.settings_table())?, &Screen::plain())?;
        let report = builder.layers(layers).run().await?;
        Ok(BenchCrawl {
            pages: report.pages,
            wire_bytes: report.wire_bytes,
            elapsed_s: report.elapsed_s,
            exit: if report.has_failed() { Exit::Crawl } else { Exit::Done },
            finish_reason: report.finish_reason,
        })
    })
    .await
}

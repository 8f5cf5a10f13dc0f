//! Crawls whose items name files and images.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use huntsman::middleware::sinks::JsonLines;
use huntsman::middleware::{FileStatus, Media, StoredFile};
use huntsman::{
    Backend, Context, CrawlReport, Job, OnItem, Output, Page, Pipeline, Result, Spider, spider_fn,
};
use huntsman_testkit::{Answer, Reply, ScriptedDownloader, Site};
use serde_json::{Value, json};

use super::support::{on_site, quick};

/// Keeps items.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<Value>>>);

impl Kept {
    /// The files of all items.
    fn files(&self, field: &str) -> Vec<StoredFile> {
        let of = |item: &Value| serde_json::from_value::<Vec<StoredFile>>(item[field].clone()).unwrap();
        self.0.lock().unwrap().iter().flat_map(of).collect()
    }
}

impl Pipeline<Value> for Kept {
    async fn process_item(&mut self, item: Value, _: &Context) -> Result<OnItem<Value>> {
        self.0.lock().unwrap().push(item.clone());
        Ok(OnItem::Keep(item))
    }
}

/// A spider of one page that gives these items.
fn giving(page: &str, items: Vec<Value>) -> impl Spider<Item = Value> + use<> {
    spider_fn([page.to_owned()], move |_: &Page, out: &mut Output<Value>| {
        out.items(items.iter().cloned());
        Ok(())
    })
}

fn names(dir: &Path) -> Vec<String> {
    let names =
        std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort_unstable();
    names
}

fn statuses(files: &[StoredFile]) -> Vec<FileStatus> {
    files.iter().map(|file| file.status).collect()
}

#[tokio::test]
async fn a_hundred_items_that_name_one_file_send_one_request_and_a_later_run_none() {
    let pdf = Answer::status(200).header("Content-Type", "application/pdf").body("the report");
    let site = Site::builder().page("/", "x").answer("/report?id=7", pdf).start().await;
    let folder = tempfile::tempdir().unwrap();
    let url = site.url("/report?id=7").to_string();
    for expected in [FileStatus::Downloaded, FileStatus::Uptodate] {
        let items = (0..100).map(|n| json!({"n": n, "file_urls": [url, format!("{url}#page=3")]})).collect();
        let kept = Kept::default();
        let crawl = on_site(giving(site.url("/").as_str(), items), &site);
        let crawl =
            crawl.concurrent_pipeline(Media::files(folder.path().join("files"))).pipeline(kept.clone());
        let report = crawl.run().await.unwrap();
        assert_eq!(site.count("/report?id=7"), 1);
        let files = kept.files("files");
        assert_eq!((files.len(), report.stat("item_scraped_count")), (200, 100));
        let first = &files[0];
        assert_eq!((first.status, first.url.as_str(), first.bytes), (expected, url.as_str(), Some(10)));
        let path = first.path.as_deref().unwrap();
        assert!(path.starts_with("full/") && path.ends_with(".pdf") && path.len() == 5 + 40 + 4, "{path}");
        assert_eq!(std::fs::read_to_string(folder.path().join("files").join(path)).unwrap(), "the report");
        // printf 'the report' | sha256sum
        let sum = "14e4cce86788499d03144f70ab24ca83d1abe97d55153c71ee1df55c5296c1f9";
        assert_eq!(first.checksum.as_deref(), Some(sum));
        assert!(files.iter().all(|file| file.checksum == first.checksum && file.path == first.path));
        assert_eq!(report.stat("file_count"), 1);
    }
    assert_eq!(names(&folder.path().join("files/full")).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_file_that_is_too_old_is_fetched_again_and_keeps_one_name() {
    let web = ScriptedDownloader::pages([("http://a.test/", "x")])
        .respond("http://a.test/i", Reply::status(200).header("content-type", "image/png").body("one"))
        .then(Reply::status(200).header("content-type", "image/gif").body("two"));
    let folder = tempfile::tempdir().unwrap();
    let mut ends = Vec::new();
    for expires in [90.0, 90.0, 0.0] {
        let kept = Kept::default();
        let items = vec![json!({"file_urls": "http://a.test/i"})];
        let crawl = quick(giving("http://a.test/", items), &web).set("files_expires", expires);
        crawl.concurrent_pipeline(Media::files(folder.path())).pipeline(kept.clone()).run().await.unwrap();
        ends.push((kept.files("files")[0].status, kept.files("files")[0].path.clone().unwrap()));
    }
    assert_eq!(ends[0].0, FileStatus::Downloaded);
    assert_eq!(ends[1], (FileStatus::Uptodate, ends[0].1.clone()));
    assert_eq!(ends[2].0, FileStatus::Downloaded);
    assert_eq!(names(&folder.path().join("full")), [ends[2].1.strip_prefix("full/").unwrap()]);
    assert_eq!(web.count("http://a.test/i"), 2);
}

#[tokio::test]
async fn whatever_a_server_does_is_listed_in_the_item_in_the_order_of_the_urls() {
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    std::io::Write::write_all(&mut packed, &vec![0; 4 << 20]).unwrap();
    let binary = |body: Vec<u8>| Answer::status(200).header("Content-Type", "application/zip").body(body);
    let site = Site::builder()
        .page("/", "x")
        .robots("User-agent: *\nDisallow: /private")
        .answer("/good.zip", binary(b"good".to_vec()))
        .answer("/large", binary(vec![1; 300_000]))
        .answer("/endless", binary(vec![1; 300_000]).chunked(1_000).until_close())
        .answer("/bomb", binary(packed.finish().unwrap()).header("Content-Encoding", "gzip"))
        .answer("/empty", binary(Vec::new()))
        .answer("/moved", Answer::redirect(302, "/good.zip"))
        .answer("/private", binary(b"secret".to_vec()))
        .route("/*", |_| Answer::status(404))
        .start()
        .await;
    let paths = [
        "/good.zip",
        "/large",
        "/endless",
        "/bomb",
        "/empty",
        "/moved",
        "/private",
        "/../../etc/passwd",
        "/gone",
    ];
    let mut urls: Vec<String> =
        paths.iter().map(|path| format!("http://127.0.0.1:{}{path}", site.port())).collect();
    urls.extend(["file:///etc/passwd", "mailto:a@b.test", "no url", "http://10.0.0.1/x"].map(str::to_owned));
    let folder = tempfile::tempdir().unwrap();
    let kept = Kept::default();
    let items = vec![json!({"file_urls": urls}), json!({"other": 1}), json!({"file_urls": [7, null]})];
    let report = on_site(giving(site.url("/").as_str(), items), &site)
        .set("media_max_size", 100_000)
        .set("retry_times", 0)
        .concurrent_pipeline(Media::files(folder.path().join("files")))
        .pipeline(kept.clone())
        .run()
        .await
        .unwrap();
    assert_eq!(report.stat("item_scraped_count"), 3);
    let files: Vec<StoredFile> = serde_json::from_value(kept.0.lock().unwrap()[0]["files"].clone()).unwrap();
    assert!(files.iter().map(|file| &file.url).eq(&urls), "{files:#?}");
    let (good, bad): (Vec<_>, Vec<_>) = files.iter().partition(|file| file.status != FileStatus::Failed);
    assert_eq!(
        good.iter().map(|file| file.url.rsplit('/').next().unwrap()).collect::<Vec<_>>(),
        ["good.zip", "moved"]
    );
    assert!(bad.iter().all(|file| file.error.is_some() && file.path.is_none()), "{bad:#?}");
    for (url, why) in [
        ("/large", "100000"),
        ("/endless", "100000"),
        ("/bomb", "100000"),
        ("/empty", "empty"),
        ("/gone", "404"),
    ] {
        let file = bad.iter().find(|file| file.url.ends_with(url)).unwrap();
        assert!(file.error.as_deref().unwrap().contains(why), "{file:?}");
    }
    assert_eq!(site.count("/private"), 0, "robots.txt holds for files");
    assert_eq!(report.stat("file_status_count/failed"), i64::try_from(bad.len()).unwrap());
    assert_eq!(report.stat("file_status_count/downloaded"), 2);
    assert_eq!(names(folder.path()), ["files"]);
    assert_eq!(names(&folder.path().join("files/full")).len(), 2);
}

/// 20 items, each with a file of its own on a host that is asked once a second.
async fn twenty_files(folder: &Path, web: &ScriptedDownloader, stop_after: Option<Duration>) -> CrawlReport {
    let items =
        (0..20).map(|n| json!({"n": n, "file_urls": [format!("http://files.test/{n}.bin")]})).collect();
    let (feed, position) = JsonLines::of_job(folder.join("items.jsonl")).unwrap();
    let crawler = quick(giving("http://a.test/", items), web)
        .set("download_delay", 1.0)
        .set("download_delay_jitter", 0.0)
        .set("drain_timeout", 0.0)
        .concurrent_pipeline(Media::files(folder.join("files")))
        .pipeline(feed)
        .persist(position)
        .job(Job::open(folder.join("job"), Backend::Redb).unwrap())
        .build()
        .unwrap();
    let handle = crawler.handle();
    let running = tokio::spawn(crawler.run());
    if let Some(time) = stop_after {
        tokio::time::sleep(time).await;
        handle.stop("enough");
    }
    running.await.unwrap().unwrap()
}

#[tokio::test(start_paused = true)]
async fn items_whose_files_are_under_way_at_a_stop_are_processed_by_the_next_run_once() {
    let web = ScriptedDownloader::pages([("http://a.test/", "x")])
        .otherwise(|_, _| Reply::status(200).header("content-type", "application/zip").body("z"));
    let folder = tempfile::tempdir().unwrap();
    let first = twenty_files(folder.path(), &web, Some(Duration::from_millis(8_500))).await;
    assert_eq!(first.finish_reason, "enough");
    let before = names(&folder.path().join("files/full")).len();
    assert!((3..=12).contains(&before), "{before} files in 8.5 s");
    let second = twenty_files(folder.path(), &web, None).await;
    assert_eq!(second.finish_reason, "finished");
    let text = std::fs::read_to_string(folder.path().join("items.jsonl")).unwrap();
    let items: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let numbers: Vec<u64> = items.iter().map(|item| item["n"].as_u64().unwrap()).collect();
    assert!(numbers.into_iter().eq(0..20), "each item once and in order: {text}");
    assert!(items.iter().all(|item| item["files"][0]["status"] != "failed"), "{text}");
    for n in 0..20 {
        assert_eq!(web.count(&format!("http://files.test/{n}.bin")), 1, "file {n}");
    }
}

#[cfg(unix)]
#[tokio::test(start_paused = true)]
async fn a_planted_link_is_not_followed() {
    use std::os::unix::fs::symlink;
    let web = ScriptedDownloader::pages([("http://a.test/", "x")])
        .otherwise(|_, _| Reply::status(200).header("content-type", "image/png").body("new"));
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let run = async |to: &str| {
        let items = vec![json!({"file_urls": ["http://a.test/i.png"]})];
        let crawl = quick(giving("http://a.test/", items), &web).set("files_expires", 0.0);
        crawl.concurrent_pipeline(Media::files(at(to))).run().await
    };
    // The folder of the files.
    std::fs::create_dir_all(at("elsewhere")).unwrap();
    std::fs::create_dir_all(at("one")).unwrap();
    symlink(at("elsewhere"), at("one/full")).unwrap();
    let error = run("one").await.unwrap_err().to_string();
    assert!(error.contains("symbolic link"), "{error}");
    // The name of a file.
    run("two").await.unwrap();
    let name = names(&at("two/full")).remove(0);
    std::fs::remove_file(at("two/full").join(&name)).unwrap();
    std::fs::write(at("precious"), "precious").unwrap();
    symlink(at("precious"), at("two/full").join(&name)).unwrap();
    let error = run("two").await.unwrap_err().to_string();
    assert!(error.contains("symbolic link"), "{error}");
    assert_eq!(std::fs::read_to_string(at("precious")).unwrap(), "precious");
    assert_eq!(names(&at("elsewhere")), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn images_are_known_by_their_first_bytes() {
    let png = b"\x89PNG\r\n\x1a\nand so on".to_vec();
    let web = ScriptedDownloader::pages([("http://a.test/", "x")])
        .respond("http://a.test/i", Reply::status(200).header("content-type", "text/plain").body(png))
        .respond(
            "http://a.test/no.png",
            Reply::status(200).header("content-type", "image/png").body("<html>"),
        );
    let folder = tempfile::tempdir().unwrap();
    let kept = Kept::default();
    let items = vec![json!({"image_urls": ["http://a.test/i", "http://a.test/no.png"]})];
    let crawl = quick(giving("http://a.test/", items), &web);
    crawl.concurrent_pipeline(Media::images(folder.path())).pipeline(kept.clone()).run().await.unwrap();
    let images = kept.files("images");
    assert_eq!(statuses(&images), [FileStatus::Downloaded, FileStatus::Failed]);
    assert!(images[0].path.as_deref().unwrap().ends_with(".png"));
    assert!(images[1].error.as_deref().unwrap().contains("no image"), "{images:?}");
}

/// A PNG of 4 x 3 pixels, and one of a single pixel.
#[cfg(feature = "thumbnails")]
const PNG: &[u8] = b"\x89PNG\x0D\x0A\x1A\x0A\x00\x00\x00\x0DIHDR\x00\x00\x00\x04\x00\x00\x00\x03\x08\x02\x00\
          \x00\x00;\x969\x91\x00\x00\x00\x10IDATx\xDAc\xF8/\xA0\x00G\x0C89\x00\x1F\xA0\x0E5f;\x84\
          \xB3\x00\x00\x00\x00IEND\xAEB`\x82";
#[cfg(feature = "thumbnails")]
const DOT: &[u8] = b"\x89PNG\x0D\x0A\x1A\x0A\x00\x00\x00\x0DIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x02\x00\
          \x00\x00\x90wS\xDE\x00\x00\x00\x0CIDATx\xDAc\xF8/\xA0\x00\x00\x03A\x010\xA9&\x95\xAB\x00\
          \x00\x00\x00IEND\xAEB`\x82";

#[cfg(feature = "thumbnails")]
#[tokio::test(start_paused = true)]
async fn images_are_stored_in_the_format_and_of_the_size_that_is_wanted() {
    let image = |body: &[u8]| Reply::status(200).header("content-type", "image/png").body(body.to_vec());
    let web = ScriptedDownloader::pages([("http://a.test/", "x")])
        .respond("http://a.test/mill.png", image(PNG))
        .respond("http://a.test/dot.png", image(DOT))
        .respond("http://a.test/broken.png", image(&PNG[..40]));
    let folder = tempfile::tempdir().unwrap();
    let urls = ["mill", "dot", "broken"].map(|name| format!("http://a.test/{name}.png"));
    let run = async |settings: &[(&str, Value)]| {
        let kept = Kept::default();
        let mut crawl = quick(giving("http://a.test/", vec![json!({"image_urls": urls})]), &web);
        for (name, value) in settings {
            crawl = crawl.set(name, value.clone());
        }
        let images = Media::images(folder.path());
        let report = crawl.concurrent_pipeline(images).pipeline(kept.clone()).run().await.unwrap();
        (kept.files("images"), report)
    };
    let small = ("images_thumbs", json!({"small": [2, 2]}));
    let size = ("images_min_width", json!(2));
    let (images, report) = run(&[("images_convert", json!("jpeg")), size.clone(), small.clone()]).await;
    assert_eq!(statuses(&images), [FileStatus::Downloaded, FileStatus::Skipped, FileStatus::Failed]);
    assert!(images[1].error.as_deref().unwrap().contains("1 x 1 pixels, less than"), "{images:?}");
    assert!(images[2].error.as_deref().unwrap().contains("cannot be read"), "{images:?}");
    let lost = report.losses.iter().map(|loss| loss.count).sum::<u64>();
    assert_eq!((report.stat("file_status_count/skipped"), lost), (1, 1), "what is too small is no loss");
    let body = |path: &str| std::fs::read(folder.path().join(path)).unwrap();
    let path = images[0].path.as_deref().unwrap();
    assert!(path.ends_with(".jpg") && body(path).starts_with(&[0xFF, 0xD8, 0xFF]), "{path}");
    assert!(body(&images[0].thumbs["small"]).starts_with(&[0xFF, 0xD8, 0xFF]));
    assert_eq!(names(&folder.path().join("full")).len(), 1, "what is refused is not stored");

    // The image that is there has another format than the next run wants.
    let (images, _) = run(&[size, small]).await;
    assert_eq!(images[0].status, FileStatus::Uptodate, "any format is good");
    let (images, _) = run(&[("images_convert", json!("png"))]).await;
    assert_eq!(statuses(&images), [FileStatus::Downloaded, FileStatus::Downloaded, FileStatus::Downloaded]);
    assert_eq!(body(images[0].path.as_deref().unwrap()), PNG, "it is not encoded a second time");
    assert_eq!(names(&folder.path().join("full")).len(), 3, "one format of each is there");
}

//! `warc pack`: archives as a WACZ file.

use huntsman::Timestamp;
use huntsman::files::Replacement;
use huntsman::html::{Scan, ScanOptions, content_charset, decode_body};
use huntsman::warc::{PackedPage, PageText, WaczOptions, pack_wacz};

use super::args::WarcPackArgs;
use super::{exit_of, files_of, shown};
use crate::exit::{Failure, Outcome};
use crate::render::{counted, escape, say, warn};

pub(super) fn pack(args: &WarcPackArgs) -> Outcome {
    let files = files_of(&args.files)?;
    let new = Replacement::new(&args.wacz)
        .map_err(|error| Failure::usage(format!("--wacz {}: {error}", shown(&args.wacz))))?;
    let created = Timestamp::wall().to_rfc3339();
    // Whole seconds, which all readers of the format know.
    let created = format!("{}Z", created.split('.').next().unwrap_or_default());
    let options = WaczOptions {
        software: concat!("huntsman/", env!("CARGO_PKG_VERSION")).to_owned(),
        created,
        title: args.title.clone(),
        description: args.description.clone(),
    };
    let mut scan = Scan::new();
    let text_of = |page: &PackedPage<'_>| text_of(&mut scan, page, args.text);
    let told = |file: &str, damage: &huntsman::warc::ReadError| warn(&format!("{}: {damage}", escape(file)));
    let (packed, new) = pack_wacz(&files, new, &options, text_of, told)
        .map_err(|error| Failure::crawl(escape(&error.to_string()).into_owned()))?;
    new.finish().map_err(|error| Failure::crawl(format!("writing {}: {error}", shown(&args.wacz))))?;
    say(&format!(
        "{}: {}, {}, {}",
        shown(&args.wacz),
        counted(packed.files, "file"),
        counted(packed.captures, "capture"),
        counted(packed.pages + packed.extra_pages, "page")
    ));
    Ok(exit_of(packed.damaged))
}

fn text_of(scan: &mut Scan, page: &PackedPage<'_>, has_text: bool) -> PageText {
    let html = decode_body(page.body, content_charset(page.content_type), None).text;
    scan.run(&html, &ScanOptions { links: false, text: has_text, ..ScanOptions::default() });
    let text = PageText {
        title: scan.title(&html).filter(|title| !title.is_empty()).map(str::to_owned),
        text: has_text.then(|| scan.text().to_owned()),
    };
    scan.shrink_to(4 << 20);
    text
}

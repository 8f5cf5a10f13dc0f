//! Images.

use crate::code::Code;
use crate::code::PageClass::Any;
use crate::code::Severity::Error;
use crate::finding::{Finding, Findings};
use crate::measure::{MIN_ALT, Measure, Measured};
use crate::page::{AuditedPage, width};
use crate::record::{EdgeKind, Kind};
use crate::rule::Rule;
use crate::site::{Fault, Site};

const fn code(name: &'static str) -> Code {
    Code::new("images", name)
}

const CODES: &[Code] = &[
    code("img-alt-missing")
        .headline("Images without alternative text")
        .text(
            "An img has no alt, and nothing else names it or says that it needs no name.",
            "Screen readers read the address of the file.",
            "Describe the image; alt=\"\" if it only decorates.",
        )
        .source("WCAG 1.1.1")
        .example("<img src=moth.jpg>", "<img src=moth.jpg alt=\"A hawk moth at dusk\">"),
    code("img-alt-long")
        .headline("Alternative texts that are too long")
        .text(
            "The alt of an image has more characters than [alt_max].",
            "It is tedious to hear.",
            "Shorten it, and put the rest into a caption.",
        )
        .source("WCAG 1.1.1")
        .example("alt=\"(200 characters)\"", "alt=\"(60 characters)\""),
    code("img-heavy")
        .headline("Heavy images")
        .of_site()
        .judges(Any)
        .text(
            "An image has more bytes on the wire than [img_bytes_max].",
            "It is slow to load.",
            "Scale it down, or use a newer format.",
        )
        .source("Lighthouse: image sizes")
        .example("2 MB", "120 kB"),
    code("img-no-size")
        .headline("Images without a size")
        .text(
            "An img has neither width and height nor an aspect ratio, in attributes or in its style.",
            "The page jumps when it is loaded.",
            "State both.",
        )
        .source("Lighthouse: layout shift")
        .example("<img src=a.png alt=A>", "<img src=a.png alt=A width=80 height=40>"),
    code("img-broken")
        .headline("Broken images")
        .severity(Error)
        .of_site()
        .judges(Any)
        .text(
            "An image of the site answers 4xx or 5xx, or cannot be had.",
            "There is a hole in the page.",
            "Correct the address, or put the file there.",
        )
        .source("HTML: the img element")
        .example("<img src=/gone.png>  (404)", "<img src=/moth.png>  (200)"),
    code("picture-without-img")
        .headline("Picture elements without an image")
        .text("A picture element has no img in it.", "Browsers show nothing.", "Add an img.")
        .source("HTML: the picture element")
        .example(
            "<picture><source srcset=a.webp></picture>",
            "<picture><source srcset=a.webp><img src=a.png alt=A></picture>",
        ),
];

pub(super) struct Images;

impl Rule for Images {
    fn codes(&self) -> &[Code] {
        CODES
    }

    fn page(&self, page: &AuditedPage<'_>, findings: &mut Findings) {
        for image in &page.facts().images {
            let place = || page.place(image.offset);
            if image.alt.is_none() && !image.is_named_otherwise && !image.is_pixel {
                findings.add(Finding::of("img-alt-missing").at(place()));
            }
            let length = image.alt.as_deref().map_or(0, width);
            if length >= MIN_ALT {
                findings.measure(Measure::new(Measured::Alt, length as u64).at(Some(place())));
            }
            if !image.has_size {
                findings.add(Finding::of("img-no-size").at(place()));
            }
        }
        for offset in &page.facts().empty_pictures {
            findings.add(Finding::of("picture-without-img").at(page.place(*offset)));
        }
    }

    fn site(&self, site: &Site, findings: &mut Findings) {
        for target in site.targets(|kind| kind == EdgeKind::Image) {
            let images = || target.references().filter(|found| found.kind() == EdgeKind::Image);
            let told = |code: &str| site.told(Finding::of(code).url(&target.url()), images());
            let Some(answered) = target.requested().filter(|found| found.kind() != Some(Kind::Sitemap))
            else {
                continue;
            };
            match answered.fault() {
                Some(Fault::Client(_) | Fault::Server(_) | Fault::Connection | Fault::Timeout) => {
                    let said: serde_json::Value = match answered.status() {
                        Some(status) => status.into(),
                        None => answered.answer().and_then(|answer| answer.detail.clone()).into(),
                    };
                    findings.add(told("img-broken").value(said));
                }
                Some(_) => {}
                None => {
                    let max = site.limits().audit_img_bytes_max;
                    let bytes = answered.answer().map_or(0, |answer| answer.wire_bytes);
                    if answered.redirect().is_none() && bytes > max {
                        findings.add(told("img-heavy").value(bytes).limit(max));
                    }
                }
            }
        }
    }
}

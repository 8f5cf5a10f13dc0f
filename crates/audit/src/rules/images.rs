//! Images.

use std::collections::HashSet;

use huntsman_html::{LinkFact, LinkTag};

use crate::code::Code;
use crate::code::PageClass::Any;
use crate::code::Severity::{Error, Notice};
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
            "An image that a page shows, or that an image button has, answers 4xx (other than 429; of another site also other than 401, 403, 406, 407, 451) or 5xx, or cannot be had.",
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
    code("img-alt-filename")
        .headline("Alternative texts that are names of files")
        .severity(Notice)
        .text(
            "The alt of an image is the name of a file, with its ending or as a camera gives it.",
            "It says nothing of what the image shows.",
            "Describe the image.",
        )
        .source("WCAG 1.1.1, failure F30")
        .example("alt=\"DSC_0012.JPG\"", "alt=\"A hawk moth at dusk\""),
    code("area-alt")
        .headline("Areas of image maps without a name")
        .text(
            "An area with a link has no alt, aria-label, aria-labelledby or title, and no other area of the page with the same target has one.",
            "Screen readers cannot name the link.",
            "Give it an alt.",
        )
        .source("WCAG 1.1.1, 2.4.4")
        .example("<area href=/north>", "<area href=/north alt=\"The north\">"),
    code("input-image-alt")
        .headline("Image buttons without a name")
        .text(
            "An input with type=image has no alt, aria-label, aria-labelledby or title.",
            "Screen readers cannot say what it does.",
            "Say in its alt what it does.",
        )
        .source("WCAG 1.1.1, 4.1.2")
        .example("<input type=image src=go.png>", "<input type=image src=go.png alt=Search>"),
    code("svg-name-missing")
        .headline("Drawings without a name")
        .severity(Notice)
        .text(
            "An svg with role=img has no title with a text in it, and no aria-label, aria-labelledby or title of its own.",
            "Screen readers say that there is an image, and not of what.",
            "Add a title, or hide it by aria-hidden if it only decorates.",
        )
        .source("WCAG 1.1.1")
        .example("<svg role=img><path/></svg>", "<svg role=img><title>A moth</title><path/></svg>"),
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
            if image.alt.as_deref().is_some_and(is_file_name) {
                findings.add(Finding::of("img-alt-filename").value(image.alt.clone()).at(place()));
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
        areas(page, findings);
        let facts = &page.facts().semantics;
        for (code, offsets) in [
            ("input-image-alt", &facts.nameless_image_buttons),
            ("svg-name-missing", &facts.nameless_drawings),
        ] {
            for offset in offsets {
                findings.add(Finding::of(code).at(page.place(*offset)));
            }
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
                // A test of the browser refuses robots, and lets readers in; 429 is about this audit.
                Some(Fault::Unverified)
                    if answered.is_own()
                        && matches!(answered.status(), Some(401 | 403 | 406 | 407 | 451))
                        && answered.answer().is_some_and(|answer| !answer.is_challenge) =>
                {
                    findings.add(told("img-broken").value(answered.status()));
                }
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

/// Tells the links of image maps that nobody can name.
fn areas(page: &AuditedPage<'_>, findings: &mut Findings) {
    let links = page.page().anchors().zip(&page.facts().links);
    let areas: Vec<_> = links.filter(|(link, _)| link.tag == LinkTag::Area && !link.in_noscript).collect();
    let is_named = |fact: &LinkFact| fact.is_hidden || fact.is_named_otherwise || !fact.name.is_empty();
    let named: HashSet<&str> =
        areas.iter().filter(|(_, fact)| is_named(fact)).map(|(link, _)| link.href).collect();
    for (link, _) in areas.iter().filter(|(link, fact)| !is_named(fact) && !named.contains(link.href)) {
        findings.add(Finding::of("area-alt").target(link.href).at(page.place(link.offset)));
    }
}

/// Whether an alternative text is the name of a file: one word with the ending of an image, or the number that a camera gives.
fn is_file_name(alt: &str) -> bool {
    const ENDINGS: [&str; 10] =
        [".jpg", ".jpeg", ".png", ".gif", ".webp", ".avif", ".svg", ".bmp", ".tif", ".tiff"];
    const CAMERAS: [&str; 6] = ["img", "dsc", "dscn", "dscf", "pxl", "screenshot"];
    let alt = alt.trim().to_ascii_lowercase();
    let has_ending = ENDINGS.iter().any(|ending| alt.len() > ending.len() && alt.ends_with(ending));
    let of_camera = CAMERAS.iter().any(|camera| {
        let number = alt.strip_prefix(camera).map(|rest| rest.trim_start_matches(['-', '_']));
        number.is_some_and(|number| number.len() >= 4 && number.bytes().all(|byte| byte.is_ascii_digit()))
    });
    !alt.contains(char::is_whitespace) && (has_ending || of_camera)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_told_from_texts() {
        for alt in ["moth.png", "DSC_0012.JPG", "IMG_1234", "my-photo.webp", " dscn1234 "] {
            assert!(is_file_name(alt), "{alt}");
        }
        for alt in
            ["", "Moth", "How to write a .png", "jquery.js", "IMG", "IMG_A", "Photo 1234", ".svg", "img-12"]
        {
            assert!(!is_file_name(alt), "{alt}");
        }
    }
}

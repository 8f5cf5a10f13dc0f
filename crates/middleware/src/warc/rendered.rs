//! What a browser made of a page, as records beside its response, with the names that Browsertrix gave them.

use huntsman_browser::{Action, Rendering, Shot};
use huntsman_crawler::{Page, Request};
use huntsman_warc::{Options, Record, RecordKind, record_id};

use super::exchange::{Archived, without_user};
use crate::Rendered;
use crate::render::RENDER;

impl Archived {
    /// The tree of the page, its pictures and its prints.
    pub(super) fn rendered(&self, page: &Page, rendered: &Rendered, options: Options) -> Vec<u8> {
        let url = without_user(page.url());
        let mut members =
            self.resource("dom", &url, 0, ("text/html; charset=utf-8", &page.response().body), options);
        let mut pictures = pictures_of(page.request()).into_iter();
        for (index, shot) in rendered.shots.iter().enumerate() {
            let (name, content) = match shot {
                Shot::Png(picture) => (pictures.next().unwrap_or("view"), ("image/png", &picture[..])),
                Shot::Pdf(print) => ("pdf", ("application/pdf", &print[..])),
            };
            members.extend(self.resource(name, &url, index, content, options));
        }
        members
    }

    fn resource(
        &self,
        name: &str,
        url: &str,
        index: usize,
        (content_type, content): (&str, &[u8]),
        options: Options,
    ) -> Vec<u8> {
        Record::new(RecordKind::Resource, self.date())
            .id(record_id(&[name.as_bytes(), self.id().as_bytes(), &index.to_le_bytes()]))
            .field("WARC-Target-URI", &format!("urn:{name}:{url}"))
            .field("WARC-Concurrent-To", self.id())
            .block(content_type, content)
            .packed(content_type == "image/png")
            .to_member(options)
    }
}

/// What the pictures of a page show, in their order: all of the page, or what is in view.
fn pictures_of(request: &Request) -> Vec<&'static str> {
    let rendering = request.meta_value(RENDER).and_then(|own| serde_json::from_value::<Rendering>(own).ok());
    let steps = rendering.map(|rendering| rendering.steps).unwrap_or_default();
    let pictures = steps.into_iter().filter_map(|step| match step.action {
        Action::Screenshot { is_full: true } => Some("fullPage"),
        Action::Screenshot { is_full: false } => Some("view"),
        _ => None,
    });
    pictures.collect()
}

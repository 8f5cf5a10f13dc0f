//! Which bodies are read: those of pages and texts, and what the settings or the request add.

use http::{HeaderMap, header};
use huntsman_html::{PageKind, kind_from_headers};

use crate::meta;
use crate::request::Request;
use crate::settings::Settings;

/// Which bodies are read: those of pages and texts, and what the settings or the request add.
#[derive(Clone, Debug)]
pub struct WantedBodies {
    all: bool,
    types: Vec<String>,
}

impl WantedBodies {
    /// As the settings `download_binary` and `download_types` say.
    pub fn of(settings: &Settings) -> Self {
        let types = settings.download_types.iter().map(|kind| kind.trim().to_ascii_lowercase());
        Self { all: settings.download_binary, types: types.collect() }
    }

    /// Whether the body of an answer with these headers is read. One whose headers do not tell its kind is.
    pub fn reads(&self, request: &Request, headers: &HeaderMap) -> bool {
        if self.all || request.meta_flag(meta::DOWNLOAD_BINARY) {
            return true;
        }
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let content_type = text(header::CONTENT_TYPE);
        let kind = kind_from_headers(content_type, text(header::CONTENT_DISPOSITION), request.url.path());
        kind != Some(PageKind::Binary) || content_type.is_some_and(|value| self.has_type(value))
    }

    fn has_type(&self, content_type: &str) -> bool {
        let media_type = content_type.split(';').next().unwrap_or_default().trim();
        self.types.iter().any(|wanted| wanted.eq_ignore_ascii_case(media_type))
    }
}

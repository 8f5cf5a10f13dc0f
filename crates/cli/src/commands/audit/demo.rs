//! `huntsman audit --demo`: a shop on loopback with the faults of real ones, so that there is a report to look at.

use huntsman_testkit::sites::Chandlery;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::commands::SiteArgs;
use crate::commands::demo::temporary_directory;
use crate::exit::Outcome;
use crate::server::{Limits, serve_pages};

/// The shop, which is served until this is dropped.
pub(super) struct Demo {
    host: String,
    _server: JoinSet<()>,
}

impl Demo {
    /// Serves the shop, and makes it the site of these arguments.
    pub(super) async fn start(site: &mut SiteArgs) -> Outcome<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let host = format!("127.0.0.1:{}", listener.local_addr()?.port());
        let shop = Chandlery::new(format!("http://{host}"));
        let mut server = JoinSet::new();
        server.spawn(serve_pages(listener, Limits::default(), move |uri| shop.answer(uri)));
        site.urls = vec![format!("http://{host}/")];
        site.settings.profile.get_or_insert_with(|| "test".to_owned());
        if site.output.out.is_none() {
            site.output.out = Some(temporary_directory()?);
        }
        Ok(Self { host, _server: server })
    }

    /// The shop fails on purpose, and the report says where.
    pub(super) fn quiet() -> (&'static str, Value) {
        ("log_level", json!("off"))
    }

    /// The settings that admit the shop.
    pub(super) fn settings(&self) -> Vec<(&'static str, Value)> {
        vec![("allow_addresses", json!([self.host])), ("allow_hosts", json!([self.host]))]
    }
}

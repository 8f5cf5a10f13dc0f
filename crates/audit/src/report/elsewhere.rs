//! Where the links of a site lead besides its pages: redirects, and other sites by their hosts.

use std::collections::{BTreeMap, HashMap};

use huntsman_crawler::Result;
use serde_json::{Value, json};

use super::blocks::{Blocks, Located, Rows};
use super::collect::text;
use super::urls::Urls;
use crate::reading::Landing;
use crate::record::Record;
use crate::site::{Fault, authority};

/// Redirects, URLs of other sites and their hosts that a report shows.
const MAX_REDIRECTS: usize = 50_000;
const MAX_EXTERNAL: usize = 100_000;
const MAX_HOSTS: usize = 20_000;

/// A URL of another site.
#[derive(Debug)]
struct External {
    number: u32,
    host: String,
    status: Option<u16>,
    error: Option<String>,
    redirect: Option<u32>,
    state: &'static str,
}

/// Another site.
#[derive(Debug, Default)]
struct Host {
    urls: usize,
    links: usize,
    well: usize,
    moved: usize,
    broken: usize,
}

/// Where the tables are.
pub(super) struct Tables {
    pub(super) redirects: Located,
    pub(super) external: Located,
    pub(super) hosts: Located,
    /// Numbers of redirects and of URLs of other sites, also of those that are not in the tables.
    pub(super) all_redirects: usize,
    pub(super) all_external: usize,
}

/// What links lead to.
#[derive(Debug, Default)]
pub(super) struct Elsewhere {
    redirects: Vec<Value>,
    external: Vec<External>,
    all_redirects: usize,
    all_external: usize,
    links: HashMap<u32, usize>,
}

impl Elsewhere {
    pub(super) fn add_redirect(
        &mut self,
        record: &Record,
        landing: &Landing,
        urls: &mut Urls,
        blocks: &mut Blocks,
    ) -> Result<()> {
        self.all_redirects += 1;
        if self.redirects.len() >= MAX_REDIRECTS {
            return Ok(());
        }
        let mut number = |url: Option<&String>| match url {
            Some(url) => urls.any(url, blocks),
            None => Ok(None),
        };
        let [from, to, end] =
            [number(Some(&record.url))?, number(record.redirect.as_ref())?, number(landing.url.as_ref())?];
        // How it ends: well, badly, or not at all.
        let end_state = match landing {
            Landing { url: None, .. } => "loop",
            Landing { is_well: true, .. } => "well",
            Landing { status: None, .. } => "unknown",
            _ => "broken",
        };
        self.redirects.push(json!([from, record.status, to, landing.hops, end, landing.status, end_state]));
        Ok(())
    }

    pub(super) fn add_external(
        &mut self,
        record: &Record,
        fault: Option<Fault>,
        urls: &mut Urls,
        blocks: &mut Blocks,
    ) -> Result<()> {
        self.all_external += 1;
        if self.external.len() >= MAX_EXTERNAL {
            return Ok(());
        }
        let Some(number) = urls.any(&record.url, blocks)? else { return Ok(()) };
        let redirect = match &record.redirect {
            Some(url) => urls.any(url, blocks)?,
            None => None,
        };
        self.external.push(External {
            number,
            host: authority(&record.url).to_owned(),
            status: record.status,
            error: record.error.clone(),
            redirect,
            state: state_of(record, fault),
        });
        Ok(())
    }

    /// Counts a link that leads to no page.
    pub(super) fn link(&mut self, to: &str, urls: &Urls) {
        if let Some(number) = urls.known(to) {
            *self.links.entry(number).or_default() += 1;
        }
    }

    pub(super) fn finish(self, blocks: &mut Blocks) -> Result<Tables> {
        let mut redirects = Rows::new("redirects");
        for row in &self.redirects {
            redirects.add(row, blocks)?;
        }
        let mut hosts: BTreeMap<&str, Host> = BTreeMap::new();
        let mut external = Rows::new("external");
        for found in &self.external {
            let links = self.links.get(&found.number).copied().unwrap_or(0);
            let state = found.state;
            if hosts.len() < MAX_HOSTS || hosts.contains_key(found.host.as_str()) {
                let host = hosts.entry(&found.host).or_default();
                host.urls += 1;
                host.links += links;
                host.well += usize::from(state == "well");
                host.moved += usize::from(state == "moved");
                host.broken += usize::from(state == "broken");
            }
            let error = found.error.as_deref().map(text);
            external.add(&(found.number, found.status, error, found.redirect, links, state), blocks)?;
        }
        let mut rows = Rows::new("hosts");
        for (name, host) in hosts {
            let unclear = host.urls - host.well - host.moved - host.broken;
            rows.add(&(name, host.urls, host.links, host.well, host.moved, host.broken, unclear), blocks)?;
        }
        Ok(Tables {
            redirects: redirects.finish(blocks)?,
            external: external.finish(blocks)?,
            hosts: rows.finish(blocks)?,
            all_redirects: self.all_redirects,
            all_external: self.all_external,
        })
    }
}

/// How a URL of another site answered. What servers refuse to programs says nothing about the page.
fn state_of(record: &Record, fault: Option<Fault>) -> &'static str {
    match fault {
        Some(Fault::Unverified | Fault::Timeout) => "unclear",
        Some(_) => "broken",
        None if record.redirect.is_some() => "moved",
        None => "well",
    }
}

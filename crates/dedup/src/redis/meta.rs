//! The stored description of a language: the layout of its keys, and the features of its fingerprints.

use std::collections::BTreeMap;

use super::client::{Batch, Client};
use super::server::Server;
use huntsman_detect::near::{Identity, IndexError, IndexErrorKind, Language};

/// The version of the layouts that this program writes, and the only one that it reads.
const VERSION: &str = "1";

/// A layout, with the set that names its languages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scheme {
    pub(super) layout: &'static str,
    pub(super) registry: &'static [u8],
}

#[derive(Debug)]
pub(super) struct Meta(BTreeMap<String, String>);

impl Meta {
    /// Reads the description under a key; `None` if there is none.
    pub(super) fn read(server: &Server, client: &mut Client, key: &[u8]) -> Result<Option<Self>, IndexError> {
        let wrong = || server.damaged(key, "no description of an index");
        let values = client.call(&[b"HGETALL", key])?.into_values().ok_or_else(wrong)?;
        let texts: Option<Vec<String>> =
            values.into_iter().map(|value| String::from_utf8(value?).ok()).collect();
        let texts = texts.ok_or_else(wrong)?;
        let fields = texts.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone()));
        let fields: BTreeMap<String, String> = fields.collect();
        // If a writer stopped while it wrote the description, it had written nothing else; the next writer completes it.
        Ok(fields.contains_key("version").then_some(Self(fields)))
    }

    pub(super) fn number(&self, field: &str) -> Option<u64> {
        self.0.get(field)?.parse().ok()
    }

    /// Checks that the version, the layout, the features and the tag are the requested ones.
    pub(super) fn check(
        &self,
        layout: &str,
        server: &Server,
        identity: &Identity,
        key: &[u8],
    ) -> Result<(), IndexError> {
        let address = server.settings().address();
        let field = |name: &str| self.0.get(name).map_or("", String::as_str);
        let key = String::from_utf8_lossy(key);
        if field("version") != VERSION || field("layout") != layout {
            let message = format!(
                "{key} is of the layout {:?} in version {:?}, and this program knows {layout} in version {VERSION}: take a newer one",
                field("layout"),
                field("version"),
            );
            return Err(IndexError::new(IndexErrorKind::Format, message).at(address));
        }
        let features = field("features").parse().map_err(|_| {
            let what = format!("the features {:?}", field("features"));
            server.damaged(key.as_bytes(), &what)
        })?;
        // k is the reader's choice, because the stored data serves all k.
        Identity::new(identity.k(), features)
            .and_then(|made| made.check(identity))
            .map_err(|error| error.at(&address))?;
        let tag = server.settings().tag;
        if field("tag") != tag.name() {
            let message = format!(
                "{key} says that keys go by {}, and {tag} is asked for: set the tag to what it is, or use another database",
                field("tag")
            );
            return Err(IndexError::new(IndexErrorKind::Identity, message).at(address));
        }
        Ok(())
    }
}

/// Adds a language to the registry of a scheme, before its description is written.
pub(super) fn register(client: &mut Client, scheme: Scheme, language: Language) -> Result<(), IndexError> {
    client.call(&[b"SADD", scheme.registry, language.as_str().as_bytes()]).map(drop)
}

/// Writes the description. If another process does so at the same time, that one's description stays.
pub(super) fn create(
    server: &Server,
    client: &mut Client,
    layout: &str,
    key: &[u8],
    identity: &Identity,
    own: &[(&str, &str)],
) -> Result<(), IndexError> {
    let tag = server.settings().tag.name();
    let common = [("layout", layout), ("features", identity.features().name()), ("tag", tag)];
    let mut batch = Batch::new();
    // The version is written last: a description without it does not count.
    for (field, value) in common.iter().chain(own).chain(&[("version", VERSION)]) {
        batch.push(&[b"HSETNX", key, field.as_bytes(), value.as_bytes()]);
    }
    client.run(&batch).map(drop)
}

/// The languages in a registry.
pub(super) fn languages(
    server: &Server,
    client: &mut Client,
    registry: &[u8],
) -> Result<Vec<Language>, IndexError> {
    let wrong = || server.damaged(registry, "something else than names of languages");
    let names = client.call(&[b"SMEMBERS", registry])?.into_values().ok_or_else(wrong)?;
    let language = |name: Option<Vec<u8>>| Language::parse(std::str::from_utf8(&name?).ok()?).ok();
    names.into_iter().map(language).collect::<Option<Vec<_>>>().ok_or_else(wrong)
}

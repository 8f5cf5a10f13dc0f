//! The index that `--index` and `--layout` name.

use std::path::PathBuf;

use huntsman::dedup::redis::RedisSettings;
use huntsman::dedup::{IdentityOptions, IndexLocation};
use huntsman::detect::near::IndexError;

use super::args::IndexArgs;
use crate::exit::{Failure, Outcome};
use crate::render::escape;

/// The location of the index that the flags name.
pub(crate) fn place(args: &IndexArgs) -> Outcome<IndexLocation> {
    let name = &args.index;
    if name.starts_with("redis://") || name.starts_with("rediss://") {
        let mut settings: RedisSettings =
            name.parse().map_err(|error: IndexError| Failure::usage(format!("--index: {error}")))?;
        if let Some(layout) = args.layout {
            settings = settings.layout(layout);
        }
        if let Ok(password) = std::env::var("HUNTSMAN_REDIS_PASSWORD") {
            settings = settings.password(password);
        }
        return Ok(IndexLocation::Redis(Box::new(settings)));
    }
    if let Some((scheme, _)) = name.split_once("://") {
        let scheme = escape(scheme);
        return Err(Failure::usage(format!(
            "--index {scheme}://...: use a directory, redis:// or rediss://"
        )));
    }
    if args.layout.is_some() {
        return Err(Failure::usage("--layout is for an index in Redis; a directory has one layout only"));
    }
    if name.is_empty() {
        return Err(Failure::usage("--index: name a directory or a Redis server"));
    }
    Ok(IndexLocation::Directory(PathBuf::from(name)))
}

impl IndexArgs {
    /// The properties of the index that the flags ask for.
    pub(crate) fn wanted(&self) -> IdentityOptions {
        IdentityOptions { k: self.k, features: self.features }
    }
}

//! Tables of fingerprints as a source: Parquet files and exported folders.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use huntsman_bulk::{Columns, Fingerprints, Input};
use huntsman_detect::near::Language;

use crate::error::Error;
use crate::input::{Each, SourceError};
use crate::record::{Body, Position, RawDocument};

/// Finds the files of these names, and checks them.
pub(crate) fn find(
    paths: Vec<PathBuf>,
    columns: &Columns,
    lang: Option<Language>,
) -> Result<Fingerprints, Error> {
    Ok(Input { paths, columns: columns.clone(), lang, features: None }.open()?)
}

/// Reads the rows as documents.
pub(crate) fn read(table: &Fingerprints, each: Each<'_>) -> ControlFlow<()> {
    let (mut flow, mut name): (_, Arc<str>) = (ControlFlow::Continue(()), "".into());
    let read = table.read(&mut |path, number, document| {
        if Path::new(&*name) != path {
            name = path.to_string_lossy().into();
        }
        let body = match document {
            Ok(Some(document)) => Body::Fingerprint(document),
            Ok(None) => Body::LeftOut("without_fingerprint"),
            Err(message) => Body::Unreadable(message),
        };
        let position = Position { source: Arc::clone(&name), line: Some(number) };
        flow = each(Ok(RawDocument { position, body }));
        flow
    });
    match read {
        Ok(()) => flow,
        Err(broken) => each(Err(SourceError::new(broken.to_string()))),
    }
}

impl From<huntsman_bulk::Error> for Error {
    fn from(error: huntsman_bulk::Error) -> Self {
        match error {
            huntsman_bulk::Error::Input { name, message } => Self::Input { name, message },
            huntsman_bulk::Error::Unavailable { name, message } => Self::Unavailable { name, message },
            huntsman_bulk::Error::File { path, source, .. } => {
                Self::Input { name: path.to_string_lossy().into_owned(), message: source.to_string() }
            }
            other => Self::Input { name: "tables".to_owned(), message: other.to_string() },
        }
    }
}

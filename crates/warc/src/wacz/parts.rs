//! What a WACZ file has for a reader: its archives and their index.

use std::io;
use std::sync::Arc;

use super::unzip;
use crate::archive::Archive;
use crate::named::{is_index_name, is_warc_name};

/// The indexes and the archives of a WACZ file, which are read where they are.
pub(crate) fn parts(wacz: Archive) -> io::Result<(Vec<Archive>, Vec<Archive>)> {
    let wacz = Arc::new(wacz);
    let (mut indexes, mut archives) = (Vec::new(), Vec::new());
    for entry in unzip::directory(&wacz)? {
        let is_index = entry.name.starts_with("indexes/") && is_index_name(&entry.name);
        let is_archive = entry.name.starts_with("archive/") && is_warc_name(&entry.name);
        if !is_index && !is_archive {
            continue;
        }
        if is_archive && entry.is_deflated {
            let what = format!(
                "{} is compressed in it, so that no record can be read by itself: unpack it",
                entry.name
            );
            return Err(io::Error::other(what));
        }
        let content = unzip::content(&wacz, &entry)?;
        let part = Archive::part(&wacz, &entry.name, content, entry.is_deflated);
        if is_index { &mut indexes } else { &mut archives }.push(part);
    }
    if archives.is_empty() {
        return Err(io::Error::other("it has no WARC file in its folder archive"));
    }
    Ok((indexes, archives))
}

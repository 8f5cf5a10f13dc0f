//! WACZ 1.1.1: archives, their index and the list of their pages in one file, for players in browsers.

mod pages;
pub(crate) mod parts;
mod unzip;
mod zip;

use std::collections::HashSet;
use std::io::{Seek, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use crate::archive::Archive;
use crate::captures::ArchiveError;
use crate::cdxj::CdxjIndex;
use crate::error::ReadError;
use crate::reader::WarcReader;

use pages::Pages;
use zip::ZipWriter;

pub use pages::{PackedPage, PageText};

/// What a WACZ file says of itself.
#[derive(Clone, Debug, Default)]
pub struct WaczOptions {
    /// The program that makes it, such as `huntsman/0.1.0`.
    pub software: String,
    /// When it is made, as `2026-01-31T12:00:00Z`.
    pub created: String,
    /// A title for people.
    pub title: Option<String>,
    /// A description for people.
    pub description: Option<String>,
}

/// What was packed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packed {
    /// Number of WARC files.
    pub files: u64,
    /// Number of lines of the index.
    pub captures: u64,
    /// Number of pages at which a crawl began, or of all pages if the archives do not tell.
    pub pages: u64,
    /// Number of other pages.
    pub extra_pages: u64,
    /// Number of places at which the files are damaged; what is damaged is packed as it is, and not in the index.
    pub damaged: u64,
}

/// Packs WARC files into a WACZ file: the files as they are, `indexes/index.cdx.gz`, `pages/pages.jsonl` and `pages/extraPages.jsonl`, and
/// `datapackage.json` with the digests of all of them. A page is an HTML response with status 200, the last one of each URL; `text_of` is called with
/// each and gives its title, and its text if that is to be searchable. `told` is called with the damage that is found.
///
/// # Errors
/// A file cannot be read, is of another format, or is one gzip stream; two files have the same name; `out` fails.
pub fn pack_wacz<W: Write + Seek>(
    files: &[Archive],
    out: W,
    options: &WaczOptions,
    mut text_of: impl FnMut(&PackedPage<'_>) -> PageText,
    mut told: impl FnMut(&str, &ReadError),
) -> Result<(Packed, W), ArchiveError> {
    let mut packed = Packed { files: files.len() as u64, ..Packed::default() };
    let names = names(files)?;
    let (mut index, mut pages) = (CdxjIndex::default(), Pages::default());
    for (file, name) in files.iter().zip(&names) {
        let open = || file.open().map_err(|cause| ArchiveError::io(file, cause));
        let damaged = index
            .add(&mut WarcReader::new(open()?), name)
            .map_err(|cause| ArchiveError::read(file, cause))?;
        damaged.iter().for_each(|damage| told(file.name(), damage));
        packed.damaged += damaged.len() as u64;
        pages.read(file, WarcReader::new(open()?))?;
    }
    let mut zip = ZipWriter::new(out);
    let failed = |cause| ArchiveError::text("the WACZ file", format!("writing: {cause}"));
    for (file, name) in files.iter().zip(&names) {
        let mut content = file.open().map_err(|cause| ArchiveError::io(file, cause))?;
        zip.add(&format!("archive/{name}"), &mut content).map_err(failed)?;
    }
    let entry = zip.entry("indexes/index.cdx.gz").map_err(failed)?;
    let mut lines = GzEncoder::new(entry, Compression::default());
    for line in index.lines().map_err(failed)? {
        writeln!(lines, "{}", line.map_err(failed)?).map_err(failed)?;
        packed.captures += 1;
    }
    lines.finish().and_then(|entry| entry.finish()).map_err(failed)?;
    let (seeds, others) = pages.split();
    (packed.pages, packed.extra_pages) = (seeds.len() as u64, others.len() as u64);
    for (name, list) in [("pages", &seeds), ("extraPages", &others)] {
        if name == "pages" || !list.is_empty() {
            let mut entry = zip.entry(&format!("pages/{name}.jsonl")).map_err(failed)?;
            writeln!(entry, "{}", pages::header(name)).map_err(failed)?;
            for page in list {
                let line = pages.line(page, &mut text_of)?;
                writeln!(entry, "{line}").map_err(failed)?;
            }
            entry.finish().map_err(failed)?;
        }
    }
    let package = serde_json::to_vec_pretty(&package(&zip, options)).expect("texts are JSON");
    zip.add("datapackage.json", &mut &package[..]).map_err(failed)?;
    let digest = zip.entries().last().map(|entry| entry.digest.clone()).unwrap_or_default();
    let digest = json!({"path": "datapackage.json", "hash": format!("sha256:{digest}")});
    zip.add("datapackage-digest.json", &mut digest.to_string().as_bytes()).map_err(failed)?;
    Ok((packed, zip.finish().map_err(failed)?))
}

/// The names of files within the folder `archive`, in which there are no other folders.
fn names(files: &[Archive]) -> Result<Vec<String>, ArchiveError> {
    let mut seen = HashSet::new();
    let mut names = Vec::new();
    for file in files {
        let name = file.file_name().to_owned();
        if !seen.insert(name.clone()) {
            return Err(ArchiveError::text(
                file.name(),
                "an earlier file has the same name; rename one of them",
            ));
        }
        names.push(name);
    }
    Ok(names)
}

fn package<W>(zip: &ZipWriter<W>, options: &WaczOptions) -> Value
where
    W: Write + Seek,
{
    let resources: Vec<Value> = zip
        .entries()
        .iter()
        .map(|entry| {
            let name = entry.name.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
            // The names of resources have few signs, unlike their paths.
            let name: String =
                name.chars().map(|c| if c.is_ascii_alphanumeric() || "-._".contains(c) { c } else { '-' }).collect();
            json!({"name": name, "path": entry.name, "hash": format!("sha256:{}", entry.digest), "bytes": entry.bytes})
        })
        .collect();
    let mut package = json!({
        "profile": "data-package",
        "wacz_version": "1.1.1",
        "created": options.created,
        "software": options.software,
        "resources": resources,
    });
    for (name, value) in [("title", &options.title), ("description", &options.description)] {
        if let Some(value) = value {
            package[name] = value.clone().into();
        }
    }
    package
}

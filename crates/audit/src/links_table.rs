//! `inlinks.csv`: every reference of the site with its place.
//!
//! Of a large site this is by far the largest table, so its rows are written without going through values of JSON, and above some millions of rows
//! it is compressed.

use std::io::Write;
use std::path::Path;
use std::sync::mpsc::{SyncSender, sync_channel};

use huntsman_crawler::{Error, Result};
use huntsman_files::Output;
use huntsman_middleware::sinks::csv_text;

use crate::audit::Audit;
use crate::edges::{EdgeParts, EdgeReader};

/// Rows of a table that is not compressed: about a gigabyte.
const MAX_PLAIN: u64 = 5_000_000;
/// Bytes of rows that are written at once.
const WRITTEN_AT_ONCE: usize = 1 << 20;
/// Pieces that wait for the thread that writes them.
const WAITING: usize = 4;
/// The level of compression. Higher ones take longer than all the rest.
const LEVEL: i32 = 1;
const HEAD: &[u8] = b"to,from,kind,fragment,nofollow,line,column,region,link\n";

impl Audit {
    /// Writes the table into a folder: `inlinks.csv`, or `inlinks.csv.zst` if it has more than five million rows.
    pub(crate) fn write_links(&self, folder: &Path) -> Result<()> {
        let is_large = self.site.number_of_references() > MAX_PLAIN;
        let path = folder.join(if is_large { "inlinks.csv.zst" } else { "inlinks.csv" });
        let context = |error: Error| error.context(format!("writing {}", path.display()));
        let output = Output::new(&path).map_err(|error| context(error.into()))?;
        let done = match is_large {
            false => self.links_to(output).and_then(|output| Ok(output.finish()?)),
            true => {
                let encoder = zstd::stream::write::Encoder::new(output, LEVEL);
                encoder.map_err(Error::from).and_then(|encoder| {
                    let encoder = self.links_to(encoder)?;
                    Ok(encoder.finish()?.finish()?)
                })
            }
        };
        done.map_err(context)
    }

    /// Writes the rows, by a thread of its own: making them takes as long as writing them.
    fn links_to<W: Write + Send>(&self, to: W) -> Result<W> {
        let (send, receive) = sync_channel::<Vec<u8>>(WAITING);
        std::thread::scope(|scope| {
            let writer = scope.spawn(move || {
                let mut to = to;
                receive.into_iter().try_for_each(|rows| to.write_all(&rows))?;
                Ok(to)
            });
            let made = self.make_rows(&send);
            drop(send);
            let written: std::io::Result<W> =
                writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            let written = written?;
            made.map(|()| written)
        })
    }

    fn make_rows(&self, send: &SyncSender<Vec<u8>>) -> Result<()> {
        let mut rows = HEAD.to_vec();
        // If the other thread receives no more, writing has failed, and that thread returns the error.
        let give = |rows: &mut Vec<u8>| {
            let given = std::mem::replace(rows, Vec::with_capacity(WRITTEN_AT_ONCE + WRITTEN_AT_ONCE / 8));
            send.send(given).map_err(|_| Error::msg("the table cannot be written"))
        };
        let mut from = Vec::new();
        self.site.each_source(&mut |source, edges| {
            from.clear();
            csv_text(&source.url(), &mut from);
            put_rows(&from, edges, &mut rows)?;
            if rows.len() < WRITTEN_AT_ONCE { Ok(()) } else { give(&mut rows) }
        })?;
        give(&mut rows)
    }
}

fn put_rows(from: &[u8], edges: &mut EdgeReader<'_>, rows: &mut Vec<u8>) -> Result<()> {
    while let Some(edge) = edges.next()? {
        csv_text(edges.to(), rows);
        rows.push(b',');
        rows.extend_from_slice(from);
        put_row(&edge, rows)?;
    }
    Ok(())
}

fn put_row(edge: &EdgeParts<'_>, rows: &mut Vec<u8>) -> Result<()> {
    write!(rows, ",{},", edge.kind.name())?;
    csv_text(edge.fragment.unwrap_or_default(), rows);
    write!(rows, ",{},{},{},{},", edge.nofollow, edge.line, edge.column, edge.region().unwrap_or_default())?;
    csv_text(edge.link.unwrap_or_default(), rows);
    rows.push(b'\n');
    Ok(())
}

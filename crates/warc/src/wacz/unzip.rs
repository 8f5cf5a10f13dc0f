//! The directory of a ZIP file: where its entries are.

use std::io;
use std::ops::Range;

use crate::archive::Archive;

/// Length of the record at the end of a file, without its comment, and greatest length of that.
const END: usize = 22;
const MAX_COMMENT: u64 = 65_535;
/// Length of the record that says where the end for 64 bits is.
const LOCATOR: usize = 20;
/// Length of the header of an entry, without its name and its extra field.
const HEADER: u64 = 30;

/// An entry of the directory.
#[derive(Debug)]
pub(super) struct Listed {
    pub(super) name: String,
    pub(super) is_deflated: bool,
    /// Where its header begins.
    offset: u64,
    /// Its length in the file.
    length: u64,
}

/// Reads the directory.
pub(super) fn directory(zip: &Archive) -> io::Result<Vec<Listed>> {
    let length = zip.length()?;
    let start = length.saturating_sub(END as u64 + MAX_COMMENT + LOCATOR as u64);
    let tail = zip.bytes(start..length)?;
    let at = (0..=tail.len().saturating_sub(END)).rev().find(|at| {
        let comment = u16_at(&tail, at + 20).map_or(0, usize::from);
        tail[*at..].starts_with(b"PK\x05\x06") && at + END + comment == tail.len()
    });
    let at = at.ok_or_else(|| damaged("it has no directory at its end, or is cut"))?;
    let entry = |of: Option<u64>| of.ok_or_else(|| damaged("its directory is damaged"));
    let (mut size, mut from) = (entry(u32_at(&tail, at + 12))?, entry(u32_at(&tail, at + 16))?);
    if let Some(locator) = at.checked_sub(LOCATOR).filter(|at| tail[*at..].starts_with(b"PK\x06\x07")) {
        let end = entry(u64_at(&tail, locator + 8))?;
        let long = zip.bytes(end..end.saturating_add(56)).map_err(|_| damaged("its directory is damaged"))?;
        (size, from) = (entry(u64_at(&long, 40))?, entry(u64_at(&long, 48))?);
    }
    if from.checked_add(size).is_none_or(|end| end > length) {
        return Err(damaged("its directory is damaged"));
    }
    let lines = zip.bytes(from..from + size)?;
    let (mut entries, mut rest) = (Vec::new(), &lines[..]);
    while rest.starts_with(b"PK\x01\x02") {
        let (listed, length) = listed(rest).ok_or_else(|| damaged("its directory is damaged"))?;
        entries.push(listed);
        rest = &rest[length..];
    }
    Ok(entries)
}

/// The first line of a directory, and its length.
fn listed(line: &[u8]) -> Option<(Listed, usize)> {
    let [name, extra, comment] = [28, 30, 32].map(|at| u16_at(line, at).map(usize::from));
    let (name, extra) = (46..46 + name?, 46 + name?..46 + name? + extra?);
    let length = extra.end + comment?;
    let (mut packed, unpacked, mut offset) = (u32_at(line, 20)?, u32_at(line, 24)?, u32_at(line, 42)?);
    let is_elsewhere = |number: u64| number == u64::from(u32::MAX);
    let mut fields = line.get(extra)?;
    while let (Some(kind), Some(size)) = (u16_at(fields, 0), u16_at(fields, 2)) {
        let end = 4 + usize::from(size);
        let mut numbers = fields.get(4..end)?.chunks_exact(8);
        let mut next = || Some(u64::from_le_bytes(*numbers.next()?.first_chunk()?));
        // The numbers that did not fit, in this order.
        if kind == 1 {
            if is_elsewhere(unpacked) {
                next()?;
            }
            if is_elsewhere(packed) {
                packed = next()?;
            }
            if is_elsewhere(offset) {
                offset = next()?;
            }
        }
        fields = &fields[end..];
    }
    let name = String::from_utf8_lossy(line.get(name)?).into_owned();
    line.get(..length)?;
    Some((Listed { name, is_deflated: u16_at(line, 10)? != 0, offset, length: packed }, length))
}

/// Where the content of an entry is.
pub(super) fn content(zip: &Archive, entry: &Listed) -> io::Result<Range<u64>> {
    let header = zip.bytes(entry.offset..entry.offset.saturating_add(HEADER))?;
    let lengths = u16_at(&header, 26).zip(u16_at(&header, 28));
    let (Some((name, extra)), true) = (lengths, header.starts_with(b"PK\x03\x04")) else {
        return Err(damaged("no entry begins where its directory says"));
    };
    let start = entry.offset + HEADER + u64::from(name) + u64::from(extra);
    match start.checked_add(entry.length) {
        Some(end) if end <= zip.length()? => Ok(start..end),
        _ => Err(damaged("an entry is cut")),
    }
}

fn damaged(what: &str) -> io::Error {
    io::Error::other(what)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?).into())
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

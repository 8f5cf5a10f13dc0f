//! Access to the private log format for the fuzz targets. Not for any other use.

use super::frame::{self, FrameHeader, SegmentHeader};

/// The bytes of a segment with this number: its header, and each payload in a frame with a valid checksum.
pub fn segment(number: u64, is_base: bool, payloads: &[&[u8]]) -> Vec<u8> {
    let mut bytes = SegmentHeader { version: frame::VERSION, is_base }.to_bytes(number).to_vec();
    for payload in payloads {
        let at = bytes.len() as u64;
        bytes.extend(FrameHeader::of(payload, at).to_bytes(number));
        bytes.extend(*payload);
    }
    bytes
}

/// The number of records in a payload; `None` if it is malformed.
pub fn records(payload: &[u8]) -> Option<usize> {
    let mut count = 0;
    for group in frame::groups(payload) {
        count += group.ok()?.records().count();
    }
    Some(count)
}

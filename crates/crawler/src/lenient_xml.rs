//! Parts of reading XML piece by piece, however it is written: a tolerant parser, and the place where reading goes on behind damage.

use quick_xml::Reader;

/// A reader that tolerates text that is not well-formed.
pub(crate) fn reader(text: &str) -> Reader<&[u8]> {
    let mut reader = Reader::from_str(text);
    let config = reader.config_mut();
    config.allow_dangling_amp = true;
    config.allow_unmatched_ends = true;
    config.check_end_names = false;
    reader
}

/// The place of the next tag behind a damaged place, or the end of the text.
pub(crate) fn behind_damage(text: &str, damaged: usize) -> usize {
    let behind = text[damaged..].char_indices().nth(1).map_or(text.len(), |(at, _)| damaged + at);
    memchr::memchr(b'<', &text.as_bytes()[behind..]).map_or(text.len(), |at| behind + at)
}

#[cfg(test)]
mod tests {
    use super::behind_damage;

    #[test]
    fn reading_goes_on_at_the_next_tag_and_never_at_the_damage_itself() {
        assert_eq!(behind_damage("<!x> text <a>", 0), 10);
        assert_eq!(behind_damage("é<<b>", 0), 2);
        assert_eq!(behind_damage("a<b", 1), 3);
        assert_eq!(behind_damage("<", 0), 1);
    }
}

use std::io::Write;

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::*;

const ALL: [Coding; 4] = [Coding::Gzip, Coding::Deflate, Coding::Brotli, Coding::Zstd];

fn limits(max_size: u64) -> DecodeLimits {
    DecodeLimits { max_size, max_codings: 3, truncate: false, fail_on_loss: true }
}

fn encode(coding: Coding, plain: &[u8]) -> Vec<u8> {
    let best = flate2::Compression::best();
    match coding {
        Coding::Gzip => {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), best);
            encoder.write_all(plain).unwrap();
            encoder.finish().unwrap()
        }
        Coding::Deflate => {
            let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), best);
            encoder.write_all(plain).unwrap();
            encoder.finish().unwrap()
        }
        Coding::Brotli => {
            let mut coded = Vec::new();
            let mut encoder = ::brotli::CompressorWriter::new(&mut coded, 4096, 2, 22);
            encoder.write_all(plain).unwrap();
            drop(encoder);
            coded
        }
        Coding::Zstd => ::zstd::encode_all(plain, 3).unwrap(),
    }
}

fn bare_deflate(plain: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

fn decode_in(
    codings: &[Coding],
    coded: &[u8],
    step: usize,
    limits: DecodeLimits,
) -> Result<Decoded, FetchError> {
    let mut decoder = Decoder::new(codings, limits);
    for piece in coded.chunks(step.max(1)) {
        if decoder.push(piece)? == Flow::Full {
            break;
        }
    }
    decoder.finish(false)
}

fn text(rng: &mut Xoshiro256PlusPlus, length: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(length);
    while bytes.len() < length {
        match rng.random_range(0..3) {
            0 => bytes.push(rng.random()),
            1 => bytes.extend_from_slice(b"<p>the same words again and again</p>"),
            _ => bytes.extend(std::iter::repeat_n(b' ', rng.random_range(0..300))),
        }
    }
    bytes.truncate(length);
    bytes
}

#[test]
fn every_stack_gives_back_what_was_coded_however_it_is_cut() {
    let seed = rand::random::<u64>();
    println!("seed {seed}");
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    for round in 0..120 {
        let length = [0, 1, 2, 100, 40_000, 300_000][rng.random_range(0..6)];
        let plain = text(&mut rng, length);
        let depth = rng.random_range(1..=3);
        let applied: Vec<Coding> = (0..depth).map(|_| ALL[rng.random_range(0..4)]).collect();
        let coded = applied.iter().fold(plain.clone(), |bytes, coding| encode(*coding, &bytes));
        let undo: Vec<Coding> = applied.iter().rev().copied().collect();
        let step = [1, 7, 1_000, usize::MAX][rng.random_range(0..4)];
        let step = if coded.len() > 20_000 { step.max(100) } else { step };
        let decoded =
            decode_in(&undo, &coded, step, limits(1 << 20)).unwrap_or_else(|e| panic!("{round}: {e}"));
        assert!(
            decoded.body == plain,
            "round {round}: {applied:?} of {} bytes in steps of {step}",
            plain.len()
        );
        assert!(!decoded.partial && !decoded.truncated);
    }
}

#[test]
fn deflate_is_taken_with_and_without_its_frame() {
    for plain in [&b""[..], b"a", &b"some text, some more text".repeat(100)] {
        for step in [1, 2, 3, usize::MAX] {
            for coded in [encode(Coding::Deflate, plain), bare_deflate(plain)] {
                let decoded = decode_in(&[Coding::Deflate], &coded, step, limits(0)).expect("deflate");
                assert_eq!(&decoded.body[..], plain);
                assert!(!decoded.partial);
            }
        }
    }
}

#[test]
fn gzip_members_follow_each_other_and_garbage_after_them_is_ignored() {
    let (one, two) = (encode(Coding::Gzip, b"one "), encode(Coding::Gzip, b"two"));
    for step in [1, 5, usize::MAX] {
        for rest in [&b""[..], b"\0\0\0\0\0\0\0\0", b"<!-- served in 3 ms -->", b"\x1f\x8c"] {
            let coded = [&one[..], &two[..], rest].concat();
            let decoded = decode_in(&[Coding::Gzip], &coded, step, limits(0)).expect("gzip");
            assert_eq!(&decoded.body[..], b"one two", "{rest:?}");
            assert!(!decoded.partial);
        }
        // A truncated member is incomplete, even if only one byte is missing.
        for keep in 1..two.len() {
            let coded = [&one[..], &two[..keep]].concat();
            let error = decode_in(&[Coding::Gzip], &coded, step, limits(0)).expect_err("half a member");
            assert_eq!(error.kind(), FetchErrorKind::Incomplete, "{keep}");
        }
    }
}

#[test]
fn what_follows_the_end_of_the_coded_data_is_ignored() {
    let plain = b"some text, some more text".repeat(40);
    for coding in ALL {
        for rest in [&b"a"[..], b"ab", b"abc", b"\0", b"\r\n", b"<!-- served in 3 ms -->"] {
            for step in [1, 3, usize::MAX] {
                let coded = [&encode(coding, &plain)[..], rest].concat();
                let decoded = decode_in(&[coding], &coded, step, limits(0))
                    .unwrap_or_else(|e| panic!("{coding:?} {rest:?} {step}: {e}"));
                assert!(decoded.body == plain && !decoded.partial, "{coding:?} {rest:?}");
            }
        }
    }
}

#[test]
fn gzip_headers_with_all_parts_are_skipped() {
    let plain = encode(Coding::Gzip, b"text");
    let mut coded = plain[..3].to_vec();
    coded.push(0x04 | 0x08 | 0x10 | 0x02);
    coded.extend_from_slice(&plain[4..10]);
    coded.extend_from_slice(&[3, 0, b'a', b'b', b'c']);
    coded.extend_from_slice(b"name.html\0a comment\0\x12\x34");
    coded.extend_from_slice(&plain[10..]);
    for step in [1, 4, usize::MAX] {
        let decoded = decode_in(&[Coding::Gzip], &coded, step, limits(0)).expect("gzip");
        assert_eq!(&decoded.body[..], b"text");
        assert!(!decoded.partial);
    }
}

#[test]
fn a_body_that_is_cut_at_any_byte_is_an_error_in_every_stack() {
    let plain = b"<p>half a page must not look like a page</p>".repeat(3);
    let bare = bare_deflate(&plain);
    for keep in 1..bare.len() {
        let error = decode_in(&[Coding::Deflate], &bare[..keep], 16, limits(0)).expect_err("it has no end");
        assert_eq!(error.kind(), FetchErrorKind::Decode, "{keep}: anything could be its beginning: {error}");
    }
    for outer in ALL {
        for inner in [None, Some(Coding::Gzip), Some(Coding::Brotli)] {
            let undo: Vec<Coding> = std::iter::once(outer).chain(inner).collect();
            let coded = undo.iter().rev().fold(plain.clone(), |bytes, coding| encode(*coding, &bytes));
            for keep in 1..coded.len() {
                let error = decode_in(&undo, &coded[..keep], 16, limits(0)).expect_err("it has no end");
                assert_eq!(error.kind(), FetchErrorKind::Incomplete, "{undo:?} {keep}: {error}");
            }
            assert_eq!(decode_in(&undo, &coded, 16, limits(0)).expect("whole").body, plain);
        }
    }
}

#[test]
fn an_early_end_is_an_error_unless_it_is_known_or_accepted() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let plain = text(&mut rng, 200_000);
    for coding in ALL {
        let coded = encode(coding, &plain);
        for keep in [1, 2, 5, 12, coded.len() / 2, coded.len() - 5, coded.len() - 1] {
            let mut decoder = Decoder::new(&[coding], limits(0));
            decoder.push(&coded[..keep]).unwrap_or_else(|e| panic!("{coding:?} {keep}: {e}"));
            let decoded = decoder.finish(true).expect("known to be cut");
            assert!(plain.starts_with(&decoded.body), "{coding:?} {keep}");
            assert!(decoded.partial, "{coding:?} cut at {keep} of {}", coded.len());
            let accepted = DecodeLimits { fail_on_loss: false, ..limits(0) };
            let partly = decode_in(&[coding], &coded[..keep], 4096, accepted).expect("as wished");
            assert!(partly.partial && plain.starts_with(&partly.body), "{coding:?} {keep}");
            let error = decode_in(&[coding], &coded[..keep], 4096, limits(0)).expect_err("half a page");
            assert_eq!(error.kind(), FetchErrorKind::Incomplete, "{coding:?} {keep}");
            assert!(error.is_transient() && error.was_sent());
        }
    }
}

#[test]
fn a_body_that_is_something_else_is_an_error() {
    for coding in ALL {
        for body in [&b"<!doctype html><title>plain</title>"[..], b"GIF89a......", b"{\"a\":1}", &[0xff; 400]]
        {
            let error = decode_in(&[coding], body, usize::MAX, limits(0)).expect_err("not coded");
            assert_eq!(error.kind(), FetchErrorKind::Decode, "{coding:?} {body:?}");
        }
    }
    // Damage in the middle: every checksum and every length must be checked.
    let mut coded = encode(Coding::Gzip, &b"text to be changed ".repeat(50));
    let end = coded.len();
    for at in [end - 1, end - 5] {
        coded[at] ^= 1;
        let error = decode_in(&[Coding::Gzip], &coded, usize::MAX, limits(0)).expect_err("wrong trailer");
        assert_eq!(error.kind(), FetchErrorKind::Decode);
        coded[at] ^= 1;
    }
    assert!(decode_in(&[Coding::Gzip], &coded, usize::MAX, limits(0)).is_ok());
}

#[test]
fn an_empty_body_is_empty_whatever_its_coding() {
    for coding in ALL {
        assert_eq!(Decoder::new(&[coding], limits(10)).finish(false).expect("empty"), Decoded::default());
    }
}

#[test]
fn bombs_stop_at_the_limit_after_little_input() {
    const LIMIT: u64 = 1 << 20;
    let zeros = vec![0; 24 << 20];
    for coding in ALL {
        let bomb = encode(coding, &zeros);
        for stack in [vec![coding], vec![Coding::Gzip, coding], vec![Coding::Zstd, Coding::Brotli, coding]] {
            let coded = stack[..stack.len() - 1].iter().rev().fold(bomb.clone(), |b, c| encode(*c, &b));
            let mut decoder = Decoder::new(&stack, limits(LIMIT));
            let error = coded.chunks(1_000).find_map(|piece| decoder.push(piece).err()).expect("a bomb");
            assert_eq!(error.kind(), FetchErrorKind::TooLarge, "{stack:?}");
            assert!(
                decoder.out.capacity() <= 2 * LIMIT as usize,
                "{stack:?} holds {}",
                decoder.out.capacity()
            );
            assert!(decoder.stages.iter().all(|link| link.passing.capacity() <= 2 * PASSING));

            let cut = DecodeLimits { truncate: true, ..limits(LIMIT) };
            let decoded = decode_in(&stack, &coded, 1_000, cut).expect("cut");
            assert!(decoded.truncated && !decoded.partial && decoded.body.len() == LIMIT as usize);
        }
    }
}

#[test]
fn a_coding_inside_a_coding_counts_against_the_limit_too() {
    // Sixteen MiB of empty gzip members: the result is empty, but all of them have to be unpacked.
    let empty = encode(Coding::Gzip, b"");
    let coded = encode(Coding::Zstd, &empty.repeat((16 << 20) / empty.len()));
    let error =
        decode_in(&[Coding::Zstd, Coding::Gzip], &coded, 1_000, limits(1 << 20)).expect_err("too much");
    assert_eq!(error.kind(), FetchErrorKind::TooLarge);
}

#[test]
fn a_body_of_exactly_the_limit_passes() {
    for coding in ALL {
        let plain = vec![b'x'; 100_000];
        let coded = encode(coding, &plain);
        let decoded = decode_in(&[coding], &coded, 777, limits(100_000)).expect("within the limit");
        assert!(decoded.body == plain && !decoded.truncated && !decoded.partial);
        let error = decode_in(&[coding], &coded, 777, limits(99_999)).expect_err("one too many");
        assert_eq!(error.kind(), FetchErrorKind::TooLarge);
        let cut = DecodeLimits { truncate: true, ..limits(100_000) };
        assert!(!decode_in(&[coding], &coded, 777, cut).expect("fits").truncated);
    }
}

#[test]
fn damaged_bodies_end_in_an_error_or_in_bounded_output() {
    let seed = rand::random::<u64>();
    println!("seed {seed}");
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let plain = text(&mut rng, 20_000);
    for round in 0..600 {
        let coding = ALL[round % 4];
        let mut coded = encode(coding, &plain[..rng.random_range(0..plain.len())]);
        for _ in 0..rng.random_range(1..5) {
            let at = rng.random_range(0..coded.len());
            coded[at] = rng.random();
        }
        if let Ok(decoded) = decode_in(&[coding], &coded, 300, limits(100_000)) {
            assert!(decoded.body.len() <= 100_000);
        }
    }
}

fn headers(values: &[&str]) -> HeaderMap {
    values.iter().map(|value| (header::CONTENT_ENCODING, value.parse().unwrap())).collect()
}

#[test]
fn the_header_is_read_by_the_book() {
    use Coding::{Brotli, Deflate, Gzip, Zstd};
    for (values, expected) in [
        (&[][..], Codings::None),
        (&[""], Codings::None),
        (&["identity"], Codings::None),
        (&["gzip"], Codings::Known(vec![Gzip])),
        (&["X-GZIP"], Codings::Known(vec![Gzip])),
        (&["gzip, br"], Codings::Known(vec![Brotli, Gzip])),
        (&["gzip", "br ,zstd"], Codings::Known(vec![Zstd, Brotli, Gzip])),
        (&[" identity,, deflate ,"], Codings::Known(vec![Deflate])),
        (&["gzip, rot13"], Codings::Unknown("rot13".into())),
        (&["utf-8"], Codings::Unknown("utf-8".into())),
    ] {
        assert_eq!(Codings::of(&headers(values), 3).expect("few"), expected, "{values:?}");
    }
    let error = Codings::of(&headers(&["gzip, gzip", "gzip, gzip"]), 3).expect_err("too many");
    assert_eq!(error.kind(), FetchErrorKind::Decode);
    assert!(Codings::of(&headers(&["identity, gzip, identity, gzip, gzip"]), 3).is_ok());
}

#[test]
fn whole_bodies_are_decoded_for_caches() {
    let plain = b"<p>cached".repeat(10);
    let coded = encode(Coding::Brotli, &plain);
    let decoded = decode_body(&headers(&["br"]), &coded, limits(0)).expect("br").expect("coded");
    assert_eq!(&decoded.body[..], &plain[..]);
    assert_eq!(decode_body(&headers(&[]), &coded, limits(0)).expect("plain"), None);
    let unknown =
        decode_body(&headers(&["rot13"]), b"uryyb", limits(0)).expect("left alone").expect("marked");
    assert!(unknown.unknown && &unknown.body[..] == b"uryyb");
    assert!(decode_body(&headers(&["gzip"]), b"hello", limits(0)).is_err());
    assert!(decode_body(&headers(&["gzip,gzip,gzip,gzip"]), b"", limits(0)).is_err());
}

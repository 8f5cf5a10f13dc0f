//! Damage costs the records that it hits, and no others.

use huntsman_warc::Options;
use rand::{Rng, RngExt, SeedableRng, rngs::StdRng};

use crate::{blocks, bodies, read, records};

fn members() -> Vec<Vec<u8>> {
    records(&bodies()).iter().map(|record| record.to_member(Options::default())).collect()
}

fn numbers(file: &[u8]) -> (Vec<String>, Vec<String>) {
    let (records, errors) = read(file);
    (records.into_iter().map(|(number, _)| number).collect(), errors)
}

#[test]
fn a_torn_member_costs_itself_and_is_told_with_its_offset() {
    let members = members();
    for torn in 0..members.len() {
        for cut in [1, 5, 9, 12, 100, members[torn].len() / 2, members[torn].len() - 1] {
            let kept = cut.min(members[torn].len() - 1);
            let mut file: Vec<u8> = members[..torn].concat();
            let offset = file.len();
            file.extend_from_slice(&members[torn][..kept]);
            file.extend(members[torn + 1..].concat());
            let (found, errors) = numbers(&file);
            let expected: Vec<String> =
                (0..members.len()).filter(|n| *n != torn).map(|n| n.to_string()).collect();
            assert_eq!(found, expected, "{torn} cut to {kept}: {errors:?}");
            assert!(errors[0].contains(&format!("byte {offset}:")), "{torn} cut to {kept}: {errors:?}");
        }
    }
}

#[test]
fn a_flipped_bit_costs_one_record() {
    let members = members();
    let whole: Vec<u8> = members.concat();
    let mut random = StdRng::seed_from_u64(7);
    for _ in 0..300 {
        let at = random.random_range(0..whole.len());
        let mut file = whole.clone();
        file[at] ^= 1 << random.random_range(0..8);
        let (found, errors) = numbers(&file);
        assert!(found.len() >= members.len() - 1, "{at}: {found:?} {errors:?}");
        assert!(found.len() == members.len() || !errors.is_empty(), "{at}: what is lost is told");
    }
}

#[test]
fn without_compression_reading_goes_on_at_the_next_version_line() {
    let bodies = bodies();
    let mut file: Vec<u8> = Vec::new();
    for record in records(&bodies) {
        file.extend(record.to_bytes(Default::default()));
    }
    let wrong = String::from_utf8_lossy(&file).find("Content-Length: 20\r\n").unwrap();
    file[wrong..wrong + 18].copy_from_slice(b"Content-Length: zz");
    let (found, errors) = read(&file);
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!(found.last(), blocks(&bodies).last());
    assert_eq!(found.len(), bodies.len() - 1);
}

#[test]
fn any_bytes_end_without_a_panic() {
    let members = members();
    let mut random = StdRng::seed_from_u64(11);
    for _ in 0..500 {
        let mut file: Vec<u8> = Vec::new();
        for _ in 0..random.random_range(1..6) {
            let mut part = match random.random_range(0..4) {
                0 => members[random.random_range(0..members.len())].clone(),
                1 => b"WARC/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n".to_vec(),
                2 => b"\x1f\x8b\x08\x1c\0\0\0\0\0\0\xff\xff".to_vec(),
                _ => {
                    let mut noise = vec![0; random.random_range(0..3000)];
                    random.fill_bytes(&mut noise);
                    noise
                }
            };
            part.truncate(random.random_range(0..=part.len().min(4000)));
            file.extend(part);
        }
        read(&file);
    }
}

#[test]
fn a_head_without_end_is_cut_off_within_bounded_memory() {
    let mut file = b"WARC/1.1\r\n".to_vec();
    file.extend(b"a: b\r\n".repeat(100_000));
    let (found, errors) = read(&file);
    assert!(found.is_empty());
    assert!(errors[0].contains("more than 65536 bytes"), "{errors:?}");
}

//! Damage costs the records that it hits, and no others.

use huntsman_warc::{Archives, CaptureKey, Captures, Options, Record, RecordKind};
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

/// Something that happens to files: a bit, a part that is lost, empty, noise, or there twice, or the end that is missing.
fn hurt(file: &mut Vec<u8>, random: &mut StdRng) {
    let at = random.random_range(0..file.len());
    let end = at + random.random_range(1..=600).min(file.len() - at);
    match random.random_range(0..6) {
        0 => file[at] ^= 1 << random.random_range(0..8),
        1 => drop(file.drain(at..end)),
        2 => file[at..end].fill(0),
        3 => {
            let mut noise = vec![0; end - at];
            random.fill_bytes(&mut noise);
            file.splice(at..at, noise);
        }
        4 => {
            let part = file[at..end].to_vec();
            let to = random.random_range(0..file.len());
            file.splice(to..to, part);
        }
        _ => file.truncate(at.max(1)),
    }
}

#[test]
fn whatever_happens_to_a_file_what_is_changed_or_lost_is_told() {
    let (members, bodies) = (members(), bodies());
    let expected = blocks(&bodies);
    let ends: Vec<usize> = members
        .iter()
        .scan(0, |end, member| {
            *end += member.len();
            Some(*end)
        })
        .collect();
    let mut lost = 0;
    for seed in 0..600 {
        let mut random = StdRng::seed_from_u64(seed);
        let mut file = members.concat();
        for _ in 0..random.random_range(1..4) {
            hurt(&mut file, &mut random);
        }
        // A file that is cut between two records is whole.
        if ends.contains(&file.len()) {
            continue;
        }
        let (found, errors) = read(&file);
        // A length that is hurt cuts a record; the rest of it is told as what follows.
        let is_changed = found.iter().any(|record| !expected.contains(record));
        assert!(!is_changed || !errors.is_empty(), "seed {seed}: a record is changed without a word");
        let missing = expected.iter().filter(|record| !found.contains(record)).count();
        assert!(missing == 0 || !errors.is_empty(), "seed {seed}: {missing} records are lost without a word");
        lost += missing;
    }
    assert!(lost > 300, "the damage is real: {lost}");
}

#[test]
fn whatever_happens_to_a_body_in_a_plain_file_the_check_tells_it() {
    let bodies = bodies();
    let records: Vec<Vec<u8>> =
        records(&bodies).iter().map(|record| record.to_bytes(Default::default())).collect();
    for seed in 0..300 {
        let mut random = StdRng::seed_from_u64(seed);
        let hit = loop {
            let hit = random.random_range(0..records.len());
            if !bodies[hit].is_empty() {
                break hit;
            }
        };
        let mut file: Vec<u8> = records[..hit].concat();
        // The body stands before the two line ends of its record.
        let body = file.len() + records[hit].len() - 4 - bodies[hit].len();
        file.extend(records[hit..].concat());
        let at = body + random.random_range(0..bodies[hit].len());
        file[at] ^= 1 << random.random_range(0..8);
        let mut check = huntsman_warc::Check::default();
        check.file("a.warc", &mut huntsman_warc::WarcReader::new(&file[..])).unwrap();
        assert!(check.findings.iter().any(|finding| finding.is_damage), "seed {seed}");
        let mut any = file.clone();
        for _ in 0..3 {
            hurt(&mut any, &mut random);
        }
        read(&any);
    }
}

#[test]
fn captures_of_hurt_archives_answer_rightly_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.warc.gz");
    let url = |n: usize| format!("http://site.example/{n}");
    let bodies = bodies();
    let members: Vec<Vec<u8>> = bodies
        .iter()
        .enumerate()
        .map(|(n, body)| {
            let record =
                Record::new(RecordKind::Response, "2026-01-01T00:00:00Z").field("WARC-Target-URI", &url(n));
            record.http(b"HTTP/1.1 200 OK\r\n\r\n", body).to_member(Options::default())
        })
        .collect();
    let ends: Vec<usize> = members
        .iter()
        .scan(0, |end, member| {
            *end += member.len();
            Some(*end)
        })
        .collect();
    for seed in 0..200 {
        let mut random = StdRng::seed_from_u64(seed);
        let mut file = members.concat();
        hurt(&mut file, &mut random);
        std::fs::write(&path, &file).unwrap();
        let mut told = 0;
        // A file that is no archive any more is refused.
        let Ok(captures) = Captures::read(&Archives::named(&[&path]).unwrap(), |_, _| told += 1) else {
            continue;
        };
        assert_eq!(told, captures.damaged(), "seed {seed}");
        for (n, body) in bodies.iter().enumerate() {
            let key = CaptureKey::of(&url(n)).unwrap();
            match captures.nearest(key, None).map(|capture| captures.answer(capture, u64::MAX)) {
                Some(Ok(answer)) => assert!(answer.payload.body() == body, "seed {seed}: {n}"),
                Some(Err(_)) => panic!("seed {seed}: {n} was found and cannot be read"),
                None => {
                    assert!(told > 0 || ends.contains(&file.len()), "seed {seed}: {n} is lost without a word")
                }
            }
        }
    }
}

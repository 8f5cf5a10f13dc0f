//! `pdf-text`, the process that reads PDF files: it must end with text or an error for any file.
#![cfg(feature = "pdf")]

use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use flate2::write::ZlibEncoder;
use flate2::{Compress, Compression, FlushCompress};
use huntsman::sweep::{PdfError, PdfFacts, PdfProcess, PdfText};
use huntsman_testkit::pdf::file;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

fn reader() -> PdfProcess {
    PdfProcess::new(env!("CARGO_BIN_EXE_huntsman"), ["pdf-text"])
}

fn stream(entries: &str, content: &[u8]) -> Vec<u8> {
    let mut out = format!("<< {entries} /Length {} >>\nstream\n", content.len()).into_bytes();
    out.extend(content);
    out.extend(b"\nendstream");
    out
}

fn packed(content: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

/// Two pages, one of them compressed, with fonts of three kinds, including one whose letters have custom names and
/// one with a table that maps its letters to text.
fn pages() -> Vec<Vec<u8>> {
    let unicode = "/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /X def 1 begincodespacerange <00> <FF> \
        endcodespacerange 2 beginbfchar <41> <0416> <42> <00660069> endbfchar 1 beginbfrange <43> <45> <0061> endbfrange endcmap end end";
    let plain = "BT /F1 9 Tf 1 0 0 1 40 800 Tm (The old mill stands on the) Tj T* [(ba) -250 (nk of the ri-)] TJ 0 -11 Td (ver \\(1780\\).) ' ET \
        q 1 0 0 1 0 0 cm BT /F2 12 Tf 50 500 Td <4142434445> Tj /F3 8 Tf (\\101\\102) Tj ET Q /X Do";
    vec![
        b"<< /Type /Catalog /Pages 2 0 R >>".to_vec(),
        b"<< /Type /Pages /Kids [3 0 R 4 0 R] /Count 2 /MediaBox [0 0 595 842] >>".to_vec(),
        b"<< /Type /Page /Parent 2 0 R /Contents 5 0 R /Resources << /Font << /F1 7 0 R /F2 8 0 R /F3 9 0 R >> /XObject << /X 11 0 R >> >> >>"
            .to_vec(),
        b"<< /Type /Page /Parent 2 0 R /Contents [6 0 R 5 0 R] /Resources << /Font << /F1 7 0 R /F2 8 0 R /F3 9 0 R >> >> /Rotate 90 >>"
            .to_vec(),
        stream("", plain.as_bytes()),
        stream("/Filter /FlateDecode", &packed(plain.as_bytes())),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".to_vec(),
        b"<< /Type /Font /Subtype /TrueType /BaseFont /AAAAAA+Odd /FirstChar 65 /LastChar 69 /Widths [500 500 500 500 500] /ToUnicode 10 0 R >>"
            .to_vec(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Times-Roman /FirstChar 65 /LastChar 66 /Widths [500 500] /Encoding << /Type /Encoding \
            /Differences [65 /eacute /fi] >> >>"
            .to_vec(),
        stream("", unicode.as_bytes()),
        stream("/Type /XObject /Subtype /Form /BBox [0 0 9 9]", b"BT (in a form) Tj ET"),
    ]
}

fn contains(text: &Result<String, PdfError>, words: &str) -> bool {
    text.as_ref().is_ok_and(|text| text.split_whitespace().collect::<Vec<_>>().join(" ").contains(words))
}

#[cfg(target_os = "linux")]
#[test]
fn the_reader_has_no_environment_files_sockets_or_programs() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("secret");
    std::fs::write(&file, "x").unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let names = format!(
        "{}\n{}\n/bin/true\n{}\n",
        file.display(),
        directory.path().display(),
        listener.local_addr().unwrap()
    );
    assert!(std::env::vars_os().count() > 1, "there is something that it could have");
    let attempts = PdfProcess::new(env!("CARGO_BIN_EXE_huntsman"), ["pdf-text", "--attempts"]);
    let told = attempts.text(names.as_bytes()).unwrap();
    let refused = ["read", "write", "list", "remove", "run", "connect", "bind", "thread"];
    let refused: String = refused.map(|what| format!("{what}: refused\n")).concat();
    assert_eq!(told, format!("environment: PATH\n{refused}"));
    assert!(file.exists());
}

#[test]
fn a_damaged_file_ends_with_text_or_an_error() {
    let seed: u64 = rand::random();
    println!("seed {seed}");
    let mut rng = StdRng::seed_from_u64(seed);
    let whole = file(&pages());
    assert!(contains(&reader().text(&whole), "The old mill stands on the"));
    let pieces: [&[u8]; 12] = [
        b"99999999999",
        b"-1",
        b"0",
        b"<<",
        b">>",
        b"[",
        b"]",
        b"(",
        b"3 0 R",
        b"2 0 R",
        b"/FlateDecode",
        b"null",
    ];
    let mutants: Vec<Vec<u8>> = (0..300)
        .map(|_| {
            let mut mutant = whole.clone();
            for _ in 0..rng.random_range(1..6) {
                let at = rng.random_range(0..mutant.len());
                let end = (at + rng.random_range(0..8)).min(mutant.len());
                match rng.random_range(0..5) {
                    0 => mutant[at] = rng.random(),
                    1 => mutant[at] ^= 1 << rng.random_range(0..8),
                    2 => drop(mutant.drain(at..end)),
                    3 => drop(
                        mutant.splice(at..end, pieces[rng.random_range(0..pieces.len())].iter().copied()),
                    ),
                    // Digits are lengths, counts, positions and object numbers.
                    _ => {
                        let digits: Vec<usize> =
                            (0..mutant.len()).filter(|at| mutant[*at].is_ascii_digit()).collect();
                        mutant[digits[rng.random_range(0..digits.len())]] = rng.random_range(b'0'..=b'9');
                    }
                }
            }
            if rng.random_bool(0.05) {
                mutant.truncate(rng.random_range(0..mutant.len()));
            }
            mutant
        })
        .collect();
    let (texts, errors, next) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(mutant) = mutants.get(next.fetch_add(1, Ordering::Relaxed)) {
                    match reader().max_text(1 << 20).text(mutant) {
                        Ok(text) => {
                            assert!(text.len() <= 3 << 20, "{}", text.len());
                            texts.fetch_add(1, Ordering::Relaxed);
                        }
                        Err(error) => {
                            assert!(!matches!(error, PdfError::NotStarted(_)), "{error}");
                            errors.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                }
            });
        }
    });
    let (texts, errors) = (texts.into_inner(), errors.into_inner());
    assert!(texts + errors == 300 && texts >= 10 && errors >= 10, "{texts} texts, {errors} errors");
}

#[test]
fn files_that_nest_loop_or_unpack_without_end_cost_themselves() {
    let with = |number: usize, object: Vec<u8>| {
        let mut objects = pages();
        objects[number - 1] = object;
        file(&objects)
    };
    let loops = [
        with(2, b"<< /Type /Pages /Kids [2 0 R 2 0 R] /Count 2 >>".to_vec()),
        with(3, b"<< /Type /Page /Parent 3 0 R /Contents 3 0 R >>".to_vec()),
        with(
            11,
            stream("/Type /XObject /Subtype /Form /Resources << /XObject << /X 11 0 R >> >>", b"/X Do /X Do"),
        ),
        with(5, b"5 0 R".to_vec()),
        with(
            1,
            [
                b"<< /Type /Catalog /Pages 2 0 R /Names ".to_vec(),
                b"[".repeat(200_000),
                b"]".repeat(200_000),
                b" >>".to_vec(),
            ]
            .concat(),
        ),
        with(5, stream("", &b"[".repeat(200_000))),
        with(5, stream("", &b"q ".repeat(500_000))),
    ];
    for pdf in loops {
        // The test is only that the process ends, with text or without.
        let _ = reader().text(&pdf);
    }
    // The zeros compress 4 GB into 4 MB.
    let mut piece = Vec::with_capacity(1 << 14);
    let mut packer = Compress::new(Compression::best(), false);
    packer.compress_vec(&vec![b' '; 1 << 20], &mut piece, FlushCompress::Full).unwrap();
    let bomb = [&[0x78, 0xda][..], &piece.repeat(4 << 10)].concat();
    assert!(bomb.len() < 8 << 20);
    let text = reader().text(&with(5, stream("/Filter /FlateDecode", &bomb)));
    assert!(text.is_err() || contains(&text, "The old mill"), "{text:?}");
}

#[test]
fn the_title_and_the_links_of_a_file_are_told_before_its_text() {
    let mut objects = pages();
    objects[2] = objects[2]
        .iter()
        .copied()
        .take(objects[2].len() - 2)
        .chain(*b"/Annots [12 0 R << /Subtype /Link /A << /S /URI /URI (https://b.example/) >> >>] >>")
        .collect();
    objects.push(b"<< /Type /Annot /Subtype /Link /A << /S /URI /URI (/prices) >> >>".to_vec());
    objects.push(b"<< /Title <FEFF0041007200740020006D006900740020000A00D6006C> >>".to_vec());
    let bytes = file(&objects);
    // The trailer stands behind the table of places, so it can grow.
    let at = bytes.windows(12).rposition(|part| part == b"/Root 1 0 R ").expect("it has a trailer");
    let with_info = [&bytes[..at], b"/Info 13 0 R ", &bytes[at..]].concat();
    let reader = PdfProcess::new(env!("CARGO_BIN_EXE_huntsman"), ["pdf-text", "--facts"]);
    let facts = PdfFacts::of(&reader.text(&with_info).unwrap());
    assert_eq!(facts.title.as_deref(), Some("Art mit  Öl"));
    assert_eq!(facts.links, ["/prices", "https://b.example/"]);
    assert!(contains(&Ok(facts.text), "The old mill stands on the"));
    let plain = PdfFacts::of(&reader.text(&file(&pages())).unwrap());
    assert!(plain.title.is_none() && plain.links.is_empty() && plain.text.contains("mill"));
    assert_eq!(reader.text(b"no PDF"), Err(PdfError::Failed));
}

//! What the compiler says of items that are not valid, and where. The compiler runs on one file with a stand-in for the crate `huntsman`, so
//! nothing is built for it.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

/// Each line that is to give errors ends in `//~` and pairs of `TEXT => MESSAGE`, between which stands `//~`, too: the error begins at TEXT.
const SOURCE: &str = include_str!("../data/bad_items.rs");

/// The derive macro as cargo built it beside this test: the newest, for other builds may have left theirs.
fn library() -> PathBuf {
    let program = env::current_exe().expect("the test knows its file");
    let folder = program.parent().expect("the file is in a folder");
    let is_it = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.contains("huntsman_derive")
            && path.extension().is_some_and(|end| end == env::consts::DLL_EXTENSION)
    };
    let made =
        |path: &PathBuf| path.metadata().and_then(|file| file.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
    let files = folder.read_dir().expect("the folder can be listed").flatten().map(|entry| entry.path());
    files.filter(|path| is_it(path)).max_by_key(made).expect("cargo built the macro before its tests")
}

/// The errors of the compiler: line, column and message.
fn errors() -> Vec<(usize, usize, String)> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/bad_items.rs");
    let output = Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
        .args([
            "--edition=2024",
            "--crate-type=lib",
            "--emit=metadata",
            "--error-format=short",
            "-o",
            "/dev/null",
        ])
        .arg("--extern")
        .arg(format!("huntsman_derive={}", library().display()))
        .arg(&source)
        .output()
        .expect("the compiler runs");
    assert!(!output.status.success(), "the file has errors");
    let told = String::from_utf8(output.stderr).expect("messages are UTF-8");
    let begin = format!("{}:", source.display());
    let error = |text: &str| {
        let (line, text) = text.split_once(':')?;
        let (column, text) = text.split_once(':')?;
        let message = text.split_once("error")?.1;
        Some((line.parse().ok()?, column.parse().ok()?, message.trim_start_matches(": ").to_owned()))
    };
    // A message with several lines goes on until the next place.
    told.split(&begin).skip(1).filter_map(error).collect()
}

#[test]
fn what_is_not_valid_does_not_compile_and_the_error_is_at_its_place() {
    let mut errors = errors();
    let mut wrong = Vec::new();
    let mut expected = 0;
    for (number, line) in (1..).zip(SOURCE.lines()) {
        let mut parts = line.split("//~");
        let code = parts.next().unwrap_or_default();
        for (at, message) in parts.filter_map(|part| part.split_once("=>")) {
            let (at, message) = (at.trim(), message.trim());
            let column = code.find(at).map_or(0, |at| code[..at].chars().count() + 1);
            let is_it = |error: &(usize, usize, String)| {
                error.0 == number && error.1 == column && error.2.contains(message)
            };
            expected += 1;
            match errors.iter().position(is_it) {
                Some(found) => drop(errors.remove(found)),
                None => wrong.push(format!("missing: {number}:{column}: {message}")),
            }
        }
    }
    assert!(expected > 25, "the file names what it expects");
    // What is left is not expected, but for the summary.
    wrong.extend(
        errors.iter().map(|(line, column, message)| format!("not expected: {line}:{column}: {message}")),
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

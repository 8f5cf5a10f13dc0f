//! The directory of a job: locking, distinct errors, and that an existing job is never silently replaced.
#![cfg(feature = "redb")]

use std::fs;
use std::path::Path;

use huntsman_store::{Backend, Batch, Durability, JobDirectory, StoreError, StoreErrorKind};

/// The backends on disk that this build has.
fn backends() -> impl Iterator<Item = Backend> {
    Backend::ALL.into_iter().filter(|b| b.is_compiled_in() && *b != Backend::Memory)
}

fn temporary() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

fn open(path: &Path, backend: Backend) -> JobDirectory {
    JobDirectory::open(path, backend).expect("it opens")
}

fn refused(path: &Path, backend: Backend) -> StoreError {
    JobDirectory::open(path, backend).expect_err("it does not open")
}

fn put(job: &JobDirectory, key: &str, value: &str) {
    let mut batch = Batch::new();
    batch.put(key, value);
    job.store().write(&batch, Durability::Process).expect("write");
}

/// Makes a job with an entry and closes it.
fn make(path: &Path, backend: Backend) {
    let job = open(path, backend);
    put(&job, "key", "value");
    job.close().expect("close");
}

#[test]
fn a_directory_is_new_until_something_is_written() {
    for backend in backends() {
        let parent = temporary();
        let path = parent.path().join("deep/job");
        for _ in 0..2 {
            let job = open(&path, backend);
            assert!(job.is_new(), "{backend}");
            assert_eq!((job.path(), job.backend()), (&*path, backend));
        }
        make(&path, backend);
        let job = open(&path, backend);
        assert!(!job.is_new(), "{backend}");
        assert_eq!(job.store().get(b"key").expect("get").as_deref(), Some(&b"value"[..]));
    }
}

#[test]
fn the_format_file_is_as_documented() {
    for backend in backends() {
        let parent = temporary();
        make(parent.path(), backend);
        let text = fs::read_to_string(parent.path().join("format.json")).expect("read");
        assert_eq!(text.trim(), format!(r#"{{"format":1,"store":"{backend}"}}"#));
    }
}

#[test]
fn a_second_open_is_refused_while_the_first_or_its_store_lives() {
    for backend in [Backend::Memory].into_iter().chain(backends()) {
        let parent = temporary();
        let first = open(parent.path(), backend);
        let error = refused(parent.path(), backend);
        assert_eq!(error.kind(), StoreErrorKind::Locked, "{error}");
        let id = std::process::id();
        assert!(error.to_string().contains(&format!("another process (number {id}) works")), "{error}");
        let store = first.store();
        first.close().expect("close");
        assert_eq!(refused(parent.path(), backend).kind(), StoreErrorKind::Locked);
        drop(store);
        open(parent.path(), backend);
    }
}

#[test]
fn a_lock_file_without_a_living_process_is_no_lock() {
    for backend in backends() {
        let parent = temporary();
        make(parent.path(), backend);
        fs::write(parent.path().join("lock"), "1\n").expect("write");
        assert!(!open(parent.path(), backend).is_new());
    }
}

#[test]
fn a_missing_or_empty_store_beside_its_format_file_is_damage() {
    let parent = temporary();
    make(parent.path(), Backend::Redb);
    let file = parent.path().join("store.redb");
    fs::remove_file(&file).expect("remove");
    for what in ["missing", "empty"] {
        let error = refused(parent.path(), Backend::Redb);
        assert_eq!(error.kind(), StoreErrorKind::Damaged, "{error}");
        let text = error.to_string();
        assert!(text.starts_with(&format!("{}: the file is {what}; start", file.display())), "{text}");
        fs::write(&file, "").expect("write");
    }
}

#[test]
fn a_truncated_store_is_damage_whatever_its_length() {
    let parent = temporary();
    let job = open(parent.path(), Backend::Redb);
    for number in 0..50 {
        put(&job, &format!("{number:04}"), &"x".repeat(2000));
    }
    job.close().expect("close");
    let file = parent.path().join("store.redb");
    let whole = fs::read(&file).expect("read");
    for length in [1, 100, 512, 4096, 5000, 8192, whole.len() / 2, whole.len() - 4096, whole.len() - 1] {
        fs::write(&file, &whole[..length]).expect("write");
        let error = refused(parent.path(), Backend::Redb);
        assert_eq!(error.kind(), StoreErrorKind::Damaged, "cut to {length}: {error}");
        assert!(error.to_string().contains("store.redb"), "{error}");
    }
}

#[test]
fn a_file_that_is_no_store_is_damage() {
    let parent = temporary();
    make(parent.path(), Backend::Redb);
    fs::write(parent.path().join("store.redb"), "something else\n".repeat(10_000)).expect("write");
    assert_eq!(refused(parent.path(), Backend::Redb).kind(), StoreErrorKind::Damaged);
}

#[test]
fn a_newer_format_is_refused_and_says_so() {
    let parent = temporary();
    make(parent.path(), Backend::Redb);
    for text in [r#"{"format":2}"#, r#"{"format":2,"store":7,"more":[]}"#, r#"{"format":1,"store":"rocks"}"#]
    {
        fs::write(parent.path().join("format.json"), text).expect("write");
        let error = refused(parent.path(), Backend::Redb);
        assert_eq!(error.kind(), StoreErrorKind::Format, "{text}: {error}");
        assert!(error.to_string().contains("made by a newer version"), "{error}");
    }
}

#[test]
fn a_damaged_format_file_is_damage() {
    let parent = temporary();
    make(parent.path(), Backend::Redb);
    for text in ["", "{", "[]", r#"{"store":"redb"}"#, r#"{"format":0,"store":"redb"}"#, "\0\u{ff}"] {
        fs::write(parent.path().join("format.json"), text).expect("write");
        let error = refused(parent.path(), Backend::Redb);
        assert_eq!(error.kind(), StoreErrorKind::Damaged, "{text}: {error}");
        assert!(error.to_string().contains("format.json"), "{error}");
    }
}

#[test]
fn a_store_whose_format_file_was_lost_is_not_started_anew() {
    for backend in backends() {
        let parent = temporary();
        make(parent.path(), backend);
        fs::remove_file(parent.path().join("format.json")).expect("remove");
        let error = refused(parent.path(), backend);
        assert_eq!(error.kind(), StoreErrorKind::Damaged, "{error}");
        assert!(error.to_string().contains("format.json"), "{error}");
    }
}

#[test]
fn a_directory_killed_while_it_was_made_is_new() {
    for backend in backends() {
        let name = format!("store.{backend}");
        // The creation is interrupted after the lock; with half a store; with a store and half a format file.
        for step in 0..3 {
            let parent = temporary();
            if step == 1 {
                fs::write(parent.path().join(format!("{name}.new")), "half").expect("write");
            }
            if step == 2 {
                drop(open(parent.path(), backend));
                fs::remove_file(parent.path().join("format.json")).expect("remove");
                fs::write(parent.path().join("format.json.new"), "{\"for").expect("write");
            }
            fs::write(parent.path().join("lock"), "1\n").expect("write");
            let job = open(parent.path(), backend);
            assert!(job.is_new(), "{backend}, step {step}");
            put(&job, "key", "value");
            drop(job);
            assert!(!open(parent.path(), backend).is_new());
            assert!(!parent.path().join(format!("{name}.new")).exists());
        }
    }
}

#[test]
fn memory_leaves_nothing_behind_and_does_not_hide_a_store() {
    let parent = temporary();
    for _ in 0..2 {
        let job = open(parent.path(), Backend::Memory);
        assert!(job.is_new());
        put(&job, "key", "value");
    }
    make(parent.path(), Backend::Redb);
    let error = refused(parent.path(), Backend::Memory);
    assert_eq!(error.kind(), StoreErrorKind::Format);
    assert!(error.to_string().contains("has the store redb, not memory; choose redb"), "{error}");
}

#[cfg(not(feature = "sled"))]
#[test]
fn a_backend_that_is_not_compiled_in_is_named() {
    let parent = temporary();
    let error = refused(&parent.path().join("job"), Backend::Sled);
    assert_eq!(error.kind(), StoreErrorKind::Format);
    assert!(error.to_string().contains("this build has no store named sled"), "{error}");
    assert!(!parent.path().join("job").exists(), "nothing is made");
}

fn read(path: &Path) -> Result<JobDirectory, StoreError> {
    JobDirectory::open_read_only(path, 1 << 20)
}

#[test]
fn readers_share_a_directory_and_keep_writers_away() {
    for backend in backends() {
        let parent = temporary();
        let path = parent.path().join("job");
        make(&path, backend);
        let first = read(&path).expect("it opens");
        assert_eq!((first.is_new(), first.backend()), (false, backend));
        assert_eq!(first.store().get(b"key").expect("get").as_deref(), Some(&b"value"[..]));
        if backend == Backend::Redb {
            let second = read(&path).expect("beside the first");
            assert_eq!(second.store().get(b"key").expect("get").as_deref(), Some(&b"value"[..]));
            let mut batch = Batch::new();
            batch.put("key", "other");
            assert!(second.store().write(&batch, Durability::Process).is_err());
            let error = refused(&path, backend);
            assert_eq!(error.kind(), StoreErrorKind::Locked);
            assert!(error.to_string().contains("reads this directory"), "{error}");
        }
        first.close().expect("close");
        let writer = open(&path, backend);
        assert_eq!(read(&path).expect_err("it is written").kind(), StoreErrorKind::Locked, "{backend}");
        drop(writer);
        read(&path).expect("again");
    }
}

#[test]
fn reading_makes_nothing() {
    let parent = temporary();
    let path = parent.path().join("none");
    assert!(read(&path).expect_err("nothing is there").to_string().contains("no stored state"));
    assert_eq!(JobDirectory::backend_of(&path).expect("nothing to misread"), None);
    assert!(!path.exists());
    make(&path, Backend::Redb);
    assert_eq!(JobDirectory::backend_of(&path).expect("a format file"), Some(Backend::Redb));
}

#[test]
fn what_a_killed_process_left_can_be_read() {
    let parent = temporary();
    let (path, copy) = (parent.path().join("job"), parent.path().join("copy"));
    make(&path, Backend::Redb);
    let living = open(&path, Backend::Redb);
    put(&living, "more", "of it");
    // A copy of the directory while its process uses it.
    fs::create_dir(&copy).expect("make");
    for name in ["format.json", "store.redb"] {
        fs::copy(path.join(name), copy.join(name)).expect("copy");
    }
    drop(living);
    let job = read(&copy).expect("it is brought back");
    assert_eq!(job.store().get(b"more").expect("get").as_deref(), Some(&b"of it"[..]));
}

#[cfg(unix)]
fn store_of(backend: Backend) -> &'static str {
    if backend == Backend::Redb { "store.redb" } else { "store.sled" }
}

#[cfg(unix)]
fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    path.symlink_metadata().expect("it is there").permissions().mode() & 0o777
}

#[cfg(unix)]
#[test]
fn what_is_stored_is_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    for backend in backends() {
        let parent = temporary();
        let path = parent.path().join("deep/job");
        make(&path, backend);
        let store = path.join(store_of(backend));
        let expected = |path: &Path| if path.is_dir() { 0o700 } else { 0o600 };
        for path in [
            parent.path().join("deep"),
            path.clone(),
            path.join("lock"),
            path.join("format.json"),
            store.clone(),
        ] {
            assert_eq!(mode(&path), expected(&path), "{}", path.display());
        }
        // With the modes that an early version used.
        let open_to_all = if store.is_dir() { 0o755 } else { 0o644 };
        fs::set_permissions(&store, fs::Permissions::from_mode(open_to_all)).expect("set");
        open(&path, backend);
        assert_eq!(mode(&store), expected(&store), "{backend}");
    }
}

#[cfg(unix)]
#[test]
fn planted_links_are_refused_and_not_written_through() {
    use std::os::unix::fs::symlink;
    for backend in backends() {
        let parent = temporary();
        let target = parent.path().join("precious");
        fs::write(&target, "precious").expect("write");
        let name = store_of(backend);
        for name in ["lock", "format.json", name] {
            let path = parent.path().join(format!("job-{backend}-{name}"));
            make(&path, backend);
            let elsewhere = parent.path().join(format!("elsewhere-{backend}-{name}"));
            fs::rename(path.join(name), &elsewhere).expect("rename");
            symlink(if name == "lock" { &target } else { &elsewhere }, path.join(name)).expect("link");
            // The format file is only read, so its content counts even if it is reached through a link.
            if name != "format.json" {
                let error = refused(&path, backend).to_string();
                assert!(error.contains("symbolic link") && error.contains(name), "{error}");
            }
            // A store that is to be made has no way out either.
            let new = parent.path().join(format!("new-{backend}-{name}"));
            fs::create_dir(&new).expect("make");
            symlink(&target, new.join(name)).expect("link");
            let opened = JobDirectory::open(&new, backend).map(drop);
            assert!(opened.is_err(), "{backend} {name}");
        }
        assert_eq!(fs::read_to_string(&target).expect("read"), "precious");
    }
}

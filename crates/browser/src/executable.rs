//! Finds the browser, and whether it can have its sandbox.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{Error, Settings};

/// Names of browsers. The shell comes first: a page of it takes half the memory and a third of the time.
const NAMES: [&str; 7] = [
    "chromium-headless-shell",
    "chrome-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome-stable",
    "google-chrome",
    "chrome",
];
/// Where Debian has the programs that its scripts of the same names start.
const DEBIAN: &str = "/usr/lib/chromium";

/// The program of a browser that can be started with these settings. Nothing is started.
pub(crate) fn find(settings: &Settings) -> Result<PathBuf, Error> {
    let found = match &settings.path {
        Some(path) => {
            in_path(&path.to_string_lossy()).ok_or_else(|| Error::NotFound { path: Some(path.clone()) })?
        }
        None => NAMES.iter().find_map(|name| in_path(name)).ok_or(Error::NotFound { path: None })?,
    };
    let program = behind(found);
    if settings.has_sandbox {
        sandbox(&program)?;
    }
    Ok(program)
}

fn in_path(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|path| path.is_file());
    }
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// The program behind a script of Debian, which would add flags, extensions and keys of the machine.
fn behind(found: PathBuf) -> PathBuf {
    let mut begin = [0; 2];
    let is_script =
        fs::File::open(&found).and_then(|mut file| file.read_exact(&mut begin)).is_ok() && begin == *b"#!";
    let program = found.file_name().map(|name| Path::new(DEBIAN).join(name));
    match program {
        Some(program) if is_script && found.parent() == Some(Path::new("/usr/bin")) && program.is_file() => {
            program
        }
        _ => found,
    }
}

/// Whether the browser can have its sandbox, as far as can be told without a start.
fn sandbox(program: &Path) -> Result<(), Error> {
    let refused = |reason: &str| Err(Error::Sandbox { reason: reason.to_owned() });
    if rustix::process::geteuid().is_root() {
        return refused("it is run by root");
    }
    // A helper that belongs to root makes namespaces for others.
    let helper = program.with_file_name("chrome-sandbox");
    if is_helper(&helper) {
        return Ok(());
    }
    let number = |path: &str| fs::read_to_string(path).ok().and_then(|text| text.trim().parse::<u64>().ok());
    if number("/proc/sys/user/max_user_namespaces") == Some(0)
        || number("/proc/sys/kernel/unprivileged_userns_clone") == Some(0)
    {
        return refused("this system has no user namespaces");
    }
    // Filters of containers are seen only by a try. Without this command it is the browser that tells.
    let tried = Command::new("unshare")
        .args(["--user", "true"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    match tried {
        Ok(status) if !status.success() => refused("user namespaces are not allowed here"),
        _ => Ok(()),
    }
}

fn is_helper(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    const SET_USER: u32 = 0o4000;
    fs::metadata(path).is_ok_and(|found| found.uid() == 0 && found.mode() & SET_USER != 0)
}

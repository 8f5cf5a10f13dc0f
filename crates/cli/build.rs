//! Packs the relocations of the program, where the loader of this system can read them: 2.5 MB less on disk, and in the memory of
//! every process, which reads all of them when it starts.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|found| found == value);
    let is_for_this_machine = std::env::var("HOST").is_ok_and(|host| is("TARGET", &host));
    if is_for_this_machine
        && is("CARGO_CFG_TARGET_OS", "linux")
        && is("CARGO_CFG_TARGET_ENV", "gnu")
        && reads_packed()
    {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// Whether the C library is glibc 2.36 or later, whose loader was the first to know the packed form.
fn reads_packed() -> bool {
    let told = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok();
    let told = told.and_then(|output| String::from_utf8(output.stdout).ok()).unwrap_or_default();
    let version = told.trim().strip_prefix("glibc ").and_then(|version| version.split_once('.'));
    let numbers = version.and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
    numbers.is_some_and(|numbers: (u32, u32)| numbers >= (2, 36))
}

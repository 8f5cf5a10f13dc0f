//! This process: settings that hold for all of it, what it uses, and the programs that it starts.

use std::ffi::OsStr;
use std::process::Command;

pub use huntsman_output::process::{begin, cpu_seconds, peak_rss, resident, thread_clock};

/// The build profile of this program, on which its times depend.
pub const BUILD: &str = if cfg!(debug_assertions) { "debug" } else { "release" };

/// Prepares the process. It must be called before everything else.
///
/// Files that libraries create by themselves become private. A limit on the size of files (`ulimit -f`) makes the
/// write fail that exceeds it, as a full disk does, instead of ending the process.
pub fn prepare() {
    #[cfg(unix)]
    {
        use rustix::fs::Mode;
        use rustix::process::{Signal, umask};
        use tokio::signal::unix::{SignalKind, signal};

        umask(Mode::RWXG | Mode::RWXO);
        // Once tokio has handled a signal, it no longer ends the process, even without a runtime.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
        if let Ok(runtime) = runtime {
            let _entered = runtime.enter();
            let _taken = signal(SignalKind::from_raw(Signal::XFSZ.as_raw()));
        }
    }
}

/// A program to start. It inherits only the environment variables that locate programs and temporary directories: no
/// tokens, no settings.
pub fn program(name: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(name);
    let kept = ["PATH", "TMPDIR", "TEMP", "TMP", "SystemRoot"].into_iter();
    command.env_clear().envs(kept.filter_map(|name| Some((name, std::env::var_os(name)?))));
    command
}

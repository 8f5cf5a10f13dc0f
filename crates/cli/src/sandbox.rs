//! What a process gives up before it reads what strangers wrote: files, sockets, other programs, new privileges.
//!
//! What the kernel does not have is left out, and the rest holds all the same: on Linux no file can be opened by Landlock, no system call is
//! made but some harmless ones by seccomp, and on every Unix there is no room for another file descriptor. It does not limit memory or
//! time.

/// What of a sandbox this kernel does not have, by name.
pub(crate) fn missing() -> Vec<&'static str> {
    platform::missing()
}

/// Gives up files, for this thread and those that it starts; what is open stays so.
pub(crate) fn give_up_files() {
    platform::give_up_files();
}

/// Gives up everything but the work on what is open, for all threads; no more can be started.
pub(crate) fn give_up_the_rest() {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, setrlimit};
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(0), maximum: Some(0) });
    }
    platform::give_up_calls();
}

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod platform {
    use std::path::Path;

    use landlock::{
        ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetError, Scope,
    };
    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter_all_threads};

    /// What reading a pipe, computing, and writing to a pipe need, and what ends a process.
    const CALLS: [i64; 30] = [
        libc::SYS_read,
        libc::SYS_pread64,
        libc::SYS_write,
        libc::SYS_writev,
        libc::SYS_lseek,
        libc::SYS_fstat,
        libc::SYS_close,
        libc::SYS_mmap,
        libc::SYS_munmap,
        libc::SYS_mremap,
        libc::SYS_mprotect,
        libc::SYS_madvise,
        libc::SYS_brk,
        libc::SYS_futex,
        libc::SYS_clock_gettime,
        libc::SYS_clock_nanosleep,
        libc::SYS_nanosleep,
        libc::SYS_sched_yield,
        libc::SYS_getrandom,
        libc::SYS_getcpu,
        libc::SYS_rt_sigaction,
        libc::SYS_rt_sigprocmask,
        libc::SYS_rt_sigreturn,
        libc::SYS_restart_syscall,
        libc::SYS_sigaltstack,
        libc::SYS_getpid,
        libc::SYS_gettid,
        libc::SYS_tgkill,
        libc::SYS_exit,
        libc::SYS_exit_group,
    ];

    pub(super) fn missing() -> Vec<&'static str> {
        let has_landlock = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_all(ABI::V1))
            .is_ok();
        let has_seccomp = Path::new("/proc/sys/kernel/seccomp/actions_avail").exists();
        let all = [(has_landlock, "Landlock"), (has_seccomp, "seccomp")];
        all.into_iter().filter(|(is_there, _)| !is_there).map(|(_, name)| name).collect()
    }

    pub(super) fn give_up_files() {
        // Rules that the kernel does not know are left out by the crate.
        let _ = restrict();
    }

    /// With no new privileges, and with no rule that would allow anything.
    fn restrict() -> Result<(), RulesetError> {
        Ruleset::default()
            .handle_access(AccessFs::from_all(ABI::V6))?
            .handle_access(AccessNet::from_all(ABI::V6))?
            .scope(Scope::from_all(ABI::V6))?
            .create()?
            .restrict_self()?;
        Ok(())
    }

    pub(super) fn give_up_calls() {
        // On another processor there is no filter.
        if let Some(filter) = filter() {
            let _ = apply_filter_all_threads(&filter);
        }
    }

    fn filter() -> Option<BpfProgram> {
        let rules = CALLS.into_iter().map(|call| (call, Vec::new())).collect();
        let refused = SeccompAction::Errno(libc::EPERM.unsigned_abs());
        let filter =
            SeccompFilter::new(rules, refused, SeccompAction::Allow, std::env::consts::ARCH.try_into().ok()?);
        filter.ok()?.try_into().ok()
    }
}

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
mod platform {
    pub(super) fn missing() -> Vec<&'static str> {
        vec!["Landlock", "seccomp"]
    }

    pub(super) fn give_up_files() {}

    pub(super) fn give_up_calls() {}
}

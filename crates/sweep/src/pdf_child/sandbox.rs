//! Privileges that a process gives up before it reads untrusted input: files, sockets, other programs, new
//! privileges.
//!
//! Parts that the kernel does not support are left out; the others still apply. On Linux, Landlock prevents opening
//! any file and seccomp allows only some harmless system calls; on every Unix there is no room for another file
//! descriptor. The sandbox does not limit memory or time.

/// The parts of the sandbox that this kernel does not support, by name.
pub(crate) fn missing() -> Vec<&'static str> {
    platform::missing()
}

/// Gives up access to files, for this thread and those that it starts; open files stay open.
pub(crate) fn give_up_files() {
    platform::give_up_files();
}

/// Gives up everything except work on open files, for all threads; no more threads can be started.
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

    /// System calls for reading a pipe, computing, writing to a pipe, and ending the process.
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
        // The crate leaves out rules that the kernel does not know.
        let _ = restrict();
    }

    /// Forbids new privileges, and sets rules that allow no access to files.
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
        // On other processors there is no filter.
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

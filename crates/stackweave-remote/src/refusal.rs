//! Why the stacks of a process can't be read.

use core::fmt;

use crate::self_report::NoReport;

/// One reason, which says what helps where something does.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CantRead {
    /// There is no process with this number.
    #[error("there is no process {0}")]
    NoProcess(u32),
    /// It has ended, and waits for its parent to notice.
    #[error("process {0} has ended, and waits for its parent to notice")]
    Ended(u32),
    /// A thread of the kernel.
    #[error("{0} is a thread of the kernel, which has no stack to show")]
    Kernel(u32),
    /// This process: it can't stop itself.
    #[error("process {0} is this command itself; inside a program, use stackweave.dump_threads()")]
    Own(u32),
    /// A program for 32-bit processors.
    #[error("process {0} is a 32-bit program, and only 64-bit ones can be read")]
    Narrow(u32),
    /// A debugger, or a tool such as strace, has it.
    #[error("process {process} is traced by process {by} already: end that debugger or strace first")]
    Traced {
        /// The process that was asked for.
        process: u32,
        /// The process that traces it.
        by: u32,
    },
    /// The system does not allow it.
    #[error("not allowed to look into process {process}: {by}")]
    NotAllowed {
        /// The process that was asked for.
        process: u32,
        /// Who forbids it.
        by: Guard,
    },
    /// The system does not allow it, and the process, which has Stackweave loaded, has not said it itself.
    #[error("process {process} may not be traced here, and does not tell its stacks itself: {why}")]
    NotReported {
        /// The process that was asked for.
        process: u32,
        /// Why it has not.
        #[source]
        why: NoReport,
    },
    /// Whatever else the system said.
    #[error("can't look into process {process}: {said}")]
    System {
        /// The process that was asked for.
        process: u32,
        /// In words.
        said: String,
    },
}

/// Who forbids to look into a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Guard {
    /// The process belongs to somebody else.
    Owner,
    /// Yama allows it for children only (1), for the administrator only (2), or for nobody (3).
    Yama(u8),
    /// The container that this runs in was not given the right.
    Container,
    /// The process belongs to another user namespace: it was started outside of this container.
    Namespace,
    /// The process has asked not to be read, or a security module forbids it.
    Other,
    /// The same, where this process is root's already.
    OtherForRoot,
}

impl CantRead {
    /// This refusal, for a process that was asked then, and why that was in vain.
    pub(crate) fn unreported(self, why: NoReport) -> Self {
        match self {
            Self::NotAllowed { process, .. } | Self::Traced { process, .. } if !why.is_of_others() => {
                Self::NotReported { process, why }
            }
            refusal => refusal,
        }
    }
}

impl fmt::Display for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Owner => "it runs as another user; use sudo",
            Self::Yama(1) => {
                "the system allows that for its parents only; use sudo, set kernel.yama.ptrace_scope to 0, or start it \
                 with stackweave loaded"
            }
            Self::Yama(2) => "the system allows that for root only; use sudo, or start it with stackweave loaded",
            Self::Yama(_) => {
                "kernel.yama.ptrace_scope forbids it to everybody until the next boot; start it with stackweave loaded"
            }
            Self::Container => {
                "this container may not trace processes; start it with --cap-add=SYS_PTRACE, or the process with \
                 stackweave loaded"
            }
            Self::Namespace => {
                "it belongs to another user namespace, outside of this container; run the command there, or start the \
                 process with stackweave loaded"
            }
            Self::Other => "it asked not to be read, or a security module forbids it; use sudo",
            Self::OtherForRoot => {
                "a security module, a seccomp filter or the sandbox that this runs in forbids it to root, too; run the \
                 command outside of it, or start the process with stackweave loaded"
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_is_one_sentence_with_a_remedy() {
        let guards = [Guard::Owner, Guard::Yama(1), Guard::Yama(2), Guard::Yama(3), Guard::Container, Guard::Other];
        for by in guards.into_iter().chain([Guard::Namespace, Guard::OtherForRoot]) {
            let text = CantRead::NotAllowed { process: 7, by }.to_string();
            assert!(text.starts_with("not allowed to look into process 7: "), "{text}");
            assert!(["sudo", "loaded", "cap-add"].iter().any(|remedy| text.contains(remedy)), "{text}");
            let is_for_root = matches!(by, Guard::Container | Guard::Namespace | Guard::OtherForRoot | Guard::Yama(3));
            assert_eq!(text.contains("sudo"), !is_for_root, "root can't use sudo for more: {text}");
            assert!(!text.ends_with('.') && !text.contains('\n') && !text.contains("  "), "{text}");
        }
    }
}

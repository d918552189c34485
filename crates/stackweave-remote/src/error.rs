//! The reason why the stacks of a process cannot be read.

use core::fmt;

use crate::self_report::ReportError;

/// The reason, with a remedy where there is one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InspectionError {
    /// There is no process with this number.
    #[error("there is no process {0}")]
    NoProcess(u32),
    /// It has ended, and waits for its parent.
    #[error("process {0} has ended, and waits for its parent to notice")]
    Ended(u32),
    /// A kernel thread.
    #[error("{0} is a thread of the kernel, which has no stack to show")]
    Kernel(u32),
    /// This process, which cannot stop itself.
    #[error("process {0} is this command itself; inside a program, use stackweave.dump_threads()")]
    Own(u32),
    /// A 32-bit program.
    #[error("process {0} is a 32-bit program, and only 64-bit ones can be read")]
    Program32Bit(u32),
    /// A debugger, or a tool such as strace, traces it.
    #[error("process {process} is traced by process {by} already: end that debugger or strace first")]
    Traced {
        /// The requested process.
        process: u32,
        /// The process that traces it.
        by: u32,
    },
    /// The system does not allow it.
    #[error("not allowed to look into process {process}: {by}")]
    NotAllowed {
        /// The requested process.
        process: u32,
        /// The restriction that forbids it.
        by: AccessRestriction,
    },
    /// The system does not allow it, and the process, which has Stackweave loaded, has not reported its stacks.
    #[error("process {process} may not be traced here, and does not report its stacks itself: {why}")]
    NotReported {
        /// The requested process.
        process: u32,
        /// The reason why it has not reported them.
        #[source]
        why: ReportError,
    },
    /// Any other error of the system.
    #[error("can't look into process {process}: {reason}")]
    System {
        /// The requested process.
        process: u32,
        /// A description of the error.
        reason: String,
    },
}

/// A restriction that forbids inspecting a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AccessRestriction {
    /// The process belongs to another user.
    Owner,
    /// Yama allows it for children only (1), for the administrator only (2), or for no user (3).
    Yama(u8),
    /// This container does not have the capability.
    Container,
    /// The process belongs to a different user namespace: it was started outside of this container.
    Namespace,
    /// The process has requested not to be read, or a security module forbids it.
    Other,
    /// The same, where the user is already root.
    OtherForRoot,
}

impl InspectionError {
    /// Returns the error for a process that was also queried for its stacks, in vain.
    pub(crate) fn unreported(self, why: ReportError) -> Self {
        match self {
            Self::NotAllowed { process, .. } | Self::Traced { process, .. } if !why.is_of_others() => {
                Self::NotReported { process, why }
            }
            error => error,
        }
    }
}

impl fmt::Display for AccessRestriction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Owner => "it runs as another user; use sudo",
            Self::Yama(1) => {
                "the system allows that for its parents only; use sudo, set kernel.yama.ptrace_scope to 0, or start it \
                 with stackweave loaded"
            }
            Self::Yama(2) => "the system allows that for root only; use sudo, or start it with stackweave loaded",
            Self::Yama(_) => {
                "kernel.yama.ptrace_scope forbids it to all users until the next boot; start it with stackweave loaded"
            }
            Self::Container => {
                "this container may not trace processes; start it with --cap-add=SYS_PTRACE, or the process with \
                 stackweave loaded"
            }
            Self::Namespace => {
                "it belongs to another user namespace, outside of this container; run the command there, or start the \
                 process with stackweave loaded"
            }
            Self::Other => "it requested not to be read, or a security module forbids it; use sudo",
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
        let restrictions = [
            AccessRestriction::Owner,
            AccessRestriction::Yama(1),
            AccessRestriction::Yama(2),
            AccessRestriction::Yama(3),
            AccessRestriction::Container,
            AccessRestriction::Other,
        ];
        for by in restrictions.into_iter().chain([AccessRestriction::Namespace, AccessRestriction::OtherForRoot]) {
            let text = InspectionError::NotAllowed { process: 7, by }.to_string();
            assert!(text.starts_with("not allowed to look into process 7: "), "{text}");
            assert!(["sudo", "loaded", "cap-add"].iter().any(|remedy| text.contains(remedy)), "{text}");
            let is_for_root = matches!(
                by,
                AccessRestriction::Container
                    | AccessRestriction::Namespace
                    | AccessRestriction::OtherForRoot
                    | AccessRestriction::Yama(3)
            );
            assert_eq!(text.contains("sudo"), !is_for_root, "root can't use sudo for more: {text}");
            assert!(!text.ends_with('.') && !text.contains('\n') && !text.contains("  "), "{text}");
        }
    }
}

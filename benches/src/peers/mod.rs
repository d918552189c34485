//! The unwinders, ours and the peers', behind one signature.
//!
//! A capture writes return addresses, innermost first, and returns how many. Some begin with frames
//! of the unwinder itself; the check allows for that.

mod backtrace_crate;
mod frame_pointer;
pub(crate) mod framehop;
mod glibc;
mod libgcc;
pub(crate) mod libunwind;
pub(crate) mod ours;
pub(crate) mod shared_library;
pub(crate) mod torch;
pub(crate) mod unwind_tables;

use std::ffi::c_void;
use std::fmt::Write;

pub(crate) use libgcc::capture as reference;

pub(crate) type CaptureFn = unsafe extern "C" fn(*mut *mut c_void, usize) -> usize;

/// One unwinder, or the reason why it is not available.
#[derive(Debug)]
pub(crate) struct Unwinder {
    pub(crate) name: &'static str,
    /// Describes what exactly is measured, for the header. It is a function because it may run other programs.
    pub(crate) version: fn() -> String,
    pub(crate) capture: Result<CaptureFn, String>,
    /// Whether it sees only code that is compiled with frame pointers.
    pub(crate) needs_frame_pointers: bool,
    /// Whether it keeps what it has learned about an address, so that the first visit costs more than the next.
    pub(crate) remembers_addresses: bool,
}

type Load = fn() -> Unwinder;

/// The unwinders, in the order of the report. Torch is the first that loads a library, so that
/// every measurement of a run sees the same modules.
const UNWINDERS: [(&str, Load); 8] = [
    (ours::NAME, ours::load),
    (torch::NAME, torch::load),
    (libunwind::NAME, libunwind::load),
    (framehop::NAME, framehop::load),
    (glibc::NAME, glibc::load),
    (libgcc::NAME, libgcc::load),
    (backtrace_crate::NAME, backtrace_crate::load),
    (frame_pointer::NAME, frame_pointer::load),
];

pub(crate) fn all() -> Vec<Unwinder> {
    UNWINDERS.iter().map(|(_, load)| load()).collect()
}

/// Loads one unwinder and none of the others.
pub(crate) fn one(name: &str) -> Option<Unwinder> {
    UNWINDERS.iter().find(|(known, _)| *known == name).map(|(_, load)| load())
}

pub(crate) fn describe(unwinders: &[Unwinder]) -> String {
    let mut text = String::from("Unwinders\n");
    for unwinder in unwinders {
        let state = unwinder.capture.as_ref().map_or_else(String::clone, |_| (unwinder.version)());
        let _ = writeln!(text, "  {:<16} {state}", unwinder.name);
    }
    text
}

/// Returns the version of a dependency from the workspace's lock file.
pub(crate) fn locked_version(package: &str) -> String {
    let lock = include_str!("../../../Cargo.lock");
    let entry = lock.split("[[package]]").find(|entry| entry.contains(&format!("\nname = \"{package}\"\n")));
    let version = entry.and_then(|entry| entry.split("\nversion = \"").nth(1)).and_then(|rest| rest.split('"').next());
    version.unwrap_or("unknown").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_to_their_unwinders() {
        for (name, _) in UNWINDERS {
            if name != torch::NAME {
                assert_eq!(one(name).map(|unwinder| unwinder.name), Some(name));
            }
        }
        assert!(one("missing").is_none());
    }

    #[test]
    fn versions_come_from_the_lock_file() {
        assert!(locked_version("framehop").starts_with("0.16."));
        assert_eq!(locked_version("no-such-package"), "unknown");
    }
}

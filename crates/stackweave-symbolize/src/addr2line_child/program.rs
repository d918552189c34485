//! Selects the addr2line program, and determines its kind.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::child_process::ChildProcess;
use super::error::ChildError;

/// The variables that name the program, in order of preference. The second one is `PyTorch`'s.
const VARIABLES: [&str; 2] = ["STACKWEAVE_ADDR2LINE", "TORCH_ADDR2LINE_BINARY"];
/// The maximum length of the output of `--version` that is read.
const MAX_VERSION: usize = 4096;

/// The kind of an addr2line program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProgramKind {
    /// GNU binutils.
    Gnu,
    /// `llvm-addr2line`.
    Llvm,
    /// `llvm-symbolizer`, which has the same output format if requested.
    LlvmSymbolizer,
    /// Another program, which must accept GNU's arguments.
    Other,
}

/// Returns the program to run: the requested one, otherwise the one that the environment names, otherwise
/// `addr2line`.
pub(crate) fn choose_program(requested: Option<&Path>) -> PathBuf {
    choose(requested, |variable| std::env::var_os(variable))
}

fn choose(requested: Option<&Path>, variable: impl Fn(&str) -> Option<OsString>) -> PathBuf {
    let named = || VARIABLES.into_iter().filter_map(variable).find(|value| !value.is_empty());
    requested.map(Path::to_owned).or_else(|| named().map(PathBuf::from)).unwrap_or_else(|| "addr2line".into())
}

impl ProgramKind {
    /// Queries the version of `program`, once for each program.
    pub(super) fn of(program: &Path, limit: Duration) -> Result<Self, ChildError> {
        static KNOWN: Mutex<Option<HashMap<PathBuf, ProgramKind>>> = Mutex::new(None);
        let lock = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&kind) = lock().as_ref().and_then(|known| known.get(program)) {
            return Ok(kind);
        }
        let mut child = ChildProcess::start(program, &[OsStr::new("--version")])?;
        let mut version = Vec::new();
        child.exchange(&[], limit, &mut |bytes| {
            version.extend_from_slice(bytes);
            Ok(version.len() >= MAX_VERSION)
        })?;
        let kind = Self::from_version(&String::from_utf8_lossy(&version));
        lock().get_or_insert_default().insert(program.to_owned(), kind);
        Ok(kind)
    }

    fn from_version(version: &str) -> Self {
        if version.contains("GNU addr2line") {
            Self::Gnu
        } else if !version.contains("LLVM") {
            Self::Other
        } else if version.lines().any(|line| line.contains("llvm-symbolizer")) {
            Self::LlvmSymbolizer
        } else {
            Self::Llvm
        }
    }

    /// Returns the arguments: demangled names (`-C`, `-f`), inlined calls (`-i`), addresses in the output (`-a`),
    /// and the file (`-e`).
    pub(super) fn arguments(self, module_file: &Path) -> Vec<&OsStr> {
        let mut arguments: Vec<&OsStr> = Vec::new();
        if self == Self::LlvmSymbolizer {
            arguments.push(OsStr::new("--output-style=GNU"));
        }
        arguments.extend(["-C", "-f", "-i", "-a", "-e"].map(OsStr::new));
        arguments.push(module_file.as_os_str());
        arguments
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_requested_program_precedes_the_named_one() {
        let both = |variable: &str| Some(OsString::from(format!("/of/{variable}")));
        assert_eq!(choose(Some(Path::new("/requested")), both), Path::new("/requested"));
        assert_eq!(choose(None, both), Path::new("/of/STACKWEAVE_ADDR2LINE"));
        let torch =
            |variable: &str| Some(if variable.starts_with("TORCH") { "/torch".into() } else { OsString::new() });
        assert_eq!(choose(None, torch), Path::new("/torch"));
        assert_eq!(choose(None, |_| None), Path::new("addr2line"));
    }

    #[test]
    fn the_kind_is_determined_by_the_version() {
        assert_eq!(ProgramKind::from_version("GNU addr2line (GNU Binutils for Debian) 2.40\n"), ProgramKind::Gnu);
        assert_eq!(ProgramKind::from_version("llvm-addr2line\nDebian LLVM version 14.0.6\n"), ProgramKind::Llvm);
        assert_eq!(
            ProgramKind::from_version("llvm-symbolizer\nDebian LLVM version 14.0.6\n"),
            ProgramKind::LlvmSymbolizer
        );
        assert_eq!(ProgramKind::from_version("LLVM (http://llvm.org/):\n  LLVM version 12.0.0\n"), ProgramKind::Llvm);
        assert_eq!(ProgramKind::from_version("eu-addr2line (elfutils) 0.188\n"), ProgramKind::Other);
    }
}

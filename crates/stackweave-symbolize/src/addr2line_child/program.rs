//! Which addr2line program is run, and of what make it is.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::conversation::Conversation;
use super::error::ChildError;

/// The variables that name the program, best first. The second is the one of `PyTorch`.
const VARIABLES: [&str; 2] = ["STACKWEAVE_ADDR2LINE", "TORCH_ADDR2LINE_BINARY"];
/// How much of the answer to `--version` is read.
const MAX_VERSION: usize = 4096;

/// The make of an addr2line program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Make {
    /// GNU binutils.
    Gnu,
    /// `llvm-addr2line`.
    Llvm,
    /// `llvm-symbolizer`, which answers in the same form when told to.
    LlvmSymbolizer,
    /// Some other, which had better understand the arguments of GNU's.
    Other,
}

/// The program to run: the one that was asked for, else the one that the environment names, else `addr2line`.
pub(crate) fn choose_program(asked: Option<&Path>) -> PathBuf {
    choose(asked, |variable| std::env::var_os(variable))
}

fn choose(asked: Option<&Path>, variable: impl Fn(&str) -> Option<OsString>) -> PathBuf {
    let named = || VARIABLES.into_iter().filter_map(variable).find(|value| !value.is_empty());
    asked.map(Path::to_owned).or_else(|| named().map(PathBuf::from)).unwrap_or_else(|| "addr2line".into())
}

impl Make {
    /// Asks `program` for its version; once for each program.
    pub(super) fn of(program: &Path, limit: Duration) -> Result<Self, ChildError> {
        static KNOWN: Mutex<Option<HashMap<PathBuf, Make>>> = Mutex::new(None);
        let lock = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&make) = lock().as_ref().and_then(|known| known.get(program)) {
            return Ok(make);
        }
        let mut child = Conversation::start(program, &[OsStr::new("--version")])?;
        let mut version = Vec::new();
        child.exchange(&[], limit, &mut |bytes| {
            version.extend_from_slice(bytes);
            Ok(version.len() >= MAX_VERSION)
        })?;
        let make = Self::from_version(&String::from_utf8_lossy(&version));
        lock().get_or_insert_default().insert(program.to_owned(), make);
        Ok(make)
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

    /// The arguments: demangled names (`-C`, `-f`), inlined calls (`-i`), addresses echoed (`-a`), of a file (`-e`).
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
    fn the_program_is_the_one_asked_for_then_the_one_named() {
        let both = |variable: &str| Some(OsString::from(format!("/of/{variable}")));
        assert_eq!(choose(Some(Path::new("/asked")), both), Path::new("/asked"));
        assert_eq!(choose(None, both), Path::new("/of/STACKWEAVE_ADDR2LINE"));
        let torch =
            |variable: &str| Some(if variable.starts_with("TORCH") { "/torch".into() } else { OsString::new() });
        assert_eq!(choose(None, torch), Path::new("/torch"));
        assert_eq!(choose(None, |_| None), Path::new("addr2line"));
    }

    #[test]
    fn the_make_is_told_from_the_version() {
        assert_eq!(Make::from_version("GNU addr2line (GNU Binutils for Debian) 2.40\n"), Make::Gnu);
        assert_eq!(Make::from_version("llvm-addr2line\nDebian LLVM version 14.0.6\n"), Make::Llvm);
        assert_eq!(Make::from_version("llvm-symbolizer\nDebian LLVM version 14.0.6\n"), Make::LlvmSymbolizer);
        assert_eq!(Make::from_version("LLVM (http://llvm.org/):\n  LLVM version 12.0.0\n"), Make::Llvm);
        assert_eq!(Make::from_version("eu-addr2line (elfutils) 0.188\n"), Make::Other);
    }
}

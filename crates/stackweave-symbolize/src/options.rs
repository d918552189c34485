//! How to resolve.

use std::path::PathBuf;
use std::str::FromStr;

/// Who answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// This crate, with everything it can find: the default.
    #[default]
    Fast,
    /// An `addr2line` child process for each module.
    Addr2line,
    /// Exported names only, as `dladdr` gives them.
    Dladdr,
}

/// The variable that sets the default mode.
pub const MODE_VARIABLE: &str = "STACKWEAVE_SYMBOLIZE_MODE";

impl Mode {
    /// The mode that `STACKWEAVE_SYMBOLIZE_MODE` names; [`Mode::Fast`] if it is not set.
    pub fn from_environment() -> Result<Self, UnknownMode> {
        match std::env::var_os(MODE_VARIABLE) {
            Some(value) if !value.is_empty() => value.to_string_lossy().parse(),
            _ => Ok(Self::Fast),
        }
    }
}

impl FromStr for Mode {
    type Err = UnknownMode;

    fn from_str(name: &str) -> Result<Self, UnknownMode> {
        match name {
            "fast" => Ok(Self::Fast),
            "addr2line" => Ok(Self::Addr2line),
            "dladdr" => Ok(Self::Dladdr),
            _ => Err(UnknownMode(name.to_owned())),
        }
    }
}

/// A mode that there is not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown symbolize mode {0:?}: use fast, addr2line or dladdr")]
pub struct UnknownMode(String);

/// How to resolve addresses. The default finds what is on this machine and asks no server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Who answers.
    pub mode: Mode,
    /// Folders that hold modules' files under their names, for modules that are not at their own path:
    /// how a recording from another machine is resolved.
    pub search_path: Vec<PathBuf>,
    /// Folders with separate debug files, by build id (`.build-id/xx/yyyy.debug`) and by path.
    pub debug_folders: Vec<PathBuf>,
    /// Whether the servers in `DEBUGINFOD_URLS` may be asked for debug files.
    pub debuginfod: bool,
    /// The program that [`Mode::Addr2line`] runs; else `STACKWEAVE_ADDR2LINE`, `TORCH_ADDR2LINE_BINARY`, or
    /// `addr2line` on the path.
    pub addr2line: Option<PathBuf>,
    /// The process whose perf map and jitdump are read for addresses in no module.
    pub perf_map_of: Option<u32>,
}

impl Options {
    /// The default, with the mode that `STACKWEAVE_SYMBOLIZE_MODE` names.
    pub fn from_environment() -> Result<Self, UnknownMode> {
        Ok(Self { mode: Mode::from_environment()?, ..Self::default() })
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            mode: Mode::Fast,
            search_path: Vec::new(),
            debug_folders: vec![PathBuf::from("/usr/lib/debug")],
            debuginfod: false,
            addr2line: None,
            perf_map_of: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_named_and_others_refused() {
        assert_eq!("fast".parse(), Ok(Mode::Fast));
        assert_eq!("addr2line".parse(), Ok(Mode::Addr2line));
        assert_eq!("dladdr".parse(), Ok(Mode::Dladdr));
        let error = "quick".parse::<Mode>().unwrap_err();
        assert_eq!(error.to_string(), "unknown symbolize mode \"quick\": use fast, addr2line or dladdr");
    }
}

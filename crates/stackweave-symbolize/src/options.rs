//! Options of the symbolizer.

use std::path::PathBuf;
use std::str::FromStr;

/// The mode of resolving addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SymbolizeMode {
    /// By this crate, with all sources: the default.
    #[default]
    Fast,
    /// By an `addr2line` child process for each module.
    Addr2line,
    /// By exported names only, as `dladdr` does.
    Dladdr,
}

/// The variable that sets the default mode.
pub const MODE_VARIABLE: &str = "STACKWEAVE_SYMBOLIZE_MODE";

impl SymbolizeMode {
    /// Returns the mode that `STACKWEAVE_SYMBOLIZE_MODE` names; [`SymbolizeMode::Fast`] if it is not set.
    pub fn from_environment() -> Result<Self, UnknownMode> {
        match std::env::var_os(MODE_VARIABLE) {
            Some(value) if !value.is_empty() => value.to_string_lossy().parse(),
            _ => Ok(Self::Fast),
        }
    }
}

impl FromStr for SymbolizeMode {
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

/// The error for an unknown mode.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown symbolize mode {0:?}: use fast, addr2line or dladdr")]
pub struct UnknownMode(String);

/// Options of the symbolizer. The default uses what is on this machine and queries no server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SymbolizerOptions {
    /// The mode of resolving addresses.
    pub mode: SymbolizeMode,
    /// Folders with modules' files by name, for modules that are not at their own path: needed to resolve a
    /// recording from another machine.
    pub search_path: Vec<PathBuf>,
    /// Folders with separate debug files, by build id (`.build-id/xx/yyyy.debug`) and by path.
    pub debug_folders: Vec<PathBuf>,
    /// Whether the servers in `DEBUGINFOD_URLS` may be queried for debug files.
    pub debuginfod: bool,
    /// The program for [`SymbolizeMode::Addr2line`]; otherwise `STACKWEAVE_ADDR2LINE`, `TORCH_ADDR2LINE_BINARY`, or
    /// `addr2line` on the path.
    pub addr2line: Option<PathBuf>,
    /// The process whose perf map and jitdump are read, for addresses in no module.
    pub perf_map_of: Option<u32>,
    /// Whether what is read of files is kept for later addresses, which are then resolved faster. Without it, a reader
    /// of a recording, who resolves most addresses at once, needs less memory. Results are always kept.
    pub keeps_files: bool,
}

impl SymbolizerOptions {
    /// Returns the default, with the mode that `STACKWEAVE_SYMBOLIZE_MODE` names.
    pub fn from_environment() -> Result<Self, UnknownMode> {
        Ok(Self { mode: SymbolizeMode::from_environment()?, ..Self::default() })
    }
}

impl Default for SymbolizerOptions {
    fn default() -> Self {
        Self {
            mode: SymbolizeMode::Fast,
            search_path: Vec::new(),
            debug_folders: vec![PathBuf::from("/usr/lib/debug")],
            debuginfod: false,
            addr2line: None,
            perf_map_of: None,
            keeps_files: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_have_names_and_other_names_are_refused() {
        assert_eq!("fast".parse(), Ok(SymbolizeMode::Fast));
        assert_eq!("addr2line".parse(), Ok(SymbolizeMode::Addr2line));
        assert_eq!("dladdr".parse(), Ok(SymbolizeMode::Dladdr));
        let error = "quick".parse::<SymbolizeMode>().unwrap_err();
        assert_eq!(error.to_string(), "unknown symbolize mode \"quick\": use fast, addr2line or dladdr");
    }
}

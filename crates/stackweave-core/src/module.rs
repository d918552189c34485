//! Loaded modules: their address ranges and their files.

use core::fmt;
use std::path::PathBuf;

/// The id that a linker put into a file to distinguish it from every other file.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BuildId(Box<[u8]>);

impl BuildId {
    /// Creates a build id from these bytes; `None` if there are none.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        (!bytes.is_empty()).then(|| Self(bytes.into()))
    }

    /// Returns the bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BuildId({self})")
    }
}

/// A module as it is, or was, mapped in a process.
///
/// A *stated* address is one that the file states; the actual address in the process is the stated address plus
/// the bias.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// The file it was mapped from; `[vdso]` for the kernel's own.
    pub path: PathBuf,
    /// Its build id, if it has one.
    pub build_id: Option<BuildId>,
    /// Actual address minus stated address.
    pub bias: u64,
    /// The first actual address.
    pub start: u64,
    /// The actual address after the last.
    pub end: u64,
}

impl Module {
    /// Returns whether `address` is in this module.
    pub fn contains(&self, address: u64) -> bool {
        address >= self.start && address < self.end
    }

    /// Returns the address as the file states it.
    pub fn stated(&self, address: u64) -> u64 {
        address.wrapping_sub(self.bias)
    }

    /// Returns the file's name without its folder.
    pub fn name(&self) -> &str {
        self.path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
    }
}

/// The modules of a process at one moment, sorted by address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModuleList {
    modules: Vec<Module>,
}

impl ModuleList {
    /// Creates a sorted list of these modules.
    pub fn new(mut modules: Vec<Module>) -> Self {
        modules.sort_by_key(|module| module.start);
        Self { modules }
    }

    /// Returns the module that holds `address`, and its index in [`ModuleList::as_slice`].
    pub fn find(&self, address: u64) -> Option<(usize, &Module)> {
        let index = self.modules.partition_point(|module| module.start <= address).checked_sub(1)?;
        let module = &self.modules[index];
        module.contains(address).then_some((index, module))
    }

    /// Returns all modules, sorted by address.
    pub fn as_slice(&self) -> &[Module] {
        &self.modules
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(start: u64, end: u64) -> Module {
        Module { path: "/lib/libexample.so.1".into(), build_id: None, bias: start, start, end }
    }

    #[test]
    fn an_address_is_found_in_the_module_that_holds_it() {
        let list = ModuleList::new(vec![module(0x5000, 0x6000), module(0x1000, 0x2000)]);
        assert_eq!(list.find(0x1000).map(|(index, module)| (index, module.start)), Some((0, 0x1000)));
        assert_eq!(list.find(0x5fff).map(|(index, module)| (index, module.stated(0x5fff))), Some((1, 0xfff)));
        for outside in [0, 0xfff, 0x2000, 0x4fff, 0x6000, u64::MAX] {
            assert_eq!(list.find(outside), None, "{outside:#x}");
        }
        assert_eq!(ModuleList::default().find(0x1000), None);
    }

    #[test]
    fn a_build_id_is_written_in_hexadecimal() {
        assert_eq!(BuildId::new(&[0x00, 0xab, 0x1f]).map(|id| id.to_string()), Some("00ab1f".to_owned()));
        assert_eq!(BuildId::new(&[]), None);
    }

    #[test]
    fn a_name_has_no_folders() {
        assert_eq!(module(0, 1).name(), "libexample.so.1");
    }
}

//! Shared functions of the tests: files as modules, and the subject of the test.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use stackweave_core::{BuildId, CodeAddress, Module, ModuleList};
use stackweave_symbolize::{Resolved, ResolvedFrame, Symbolizer, SymbolizerOptions};
use stackweave_testkit::symbols::module_file::LibraryFile;
use stackweave_testkit::symbols::{SymbolizedFrame, gnu_addr2line};

/// The value `addr2line` replaces Stackweave's symbolizer by binutils: if agreement is then missed, the test
/// itself is wrong.
const SUBJECT: &str = "STACKWEAVE_TEST_SUBJECT";

/// Returns the file as a module at its stated addresses, with its build id.
pub fn module(file: &Path) -> Module {
    let build_id = LibraryFile::read(file).build_id.and_then(|id| BuildId::new(&id));
    Module { path: file.to_owned(), build_id, bias: 0, start: 0, end: u64::MAX }
}

/// Returns a module list with only this file.
pub fn modules(file: &Path) -> ModuleList {
    ModuleList::new(vec![module(file)])
}

/// Returns a symbolizer that looks for debug files in these folders.
pub fn symbolizer(debug_folders: &[PathBuf]) -> Symbolizer {
    let mut options = SymbolizerOptions::default();
    options.debug_folders.extend_from_slice(debug_folders);
    Symbolizer::new(options)
}

pub fn exact(address: u64) -> CodeAddress {
    CodeAddress::instruction_pointer(address)
}

/// Resolves one exact address of one file.
pub fn resolve_one(symbolizer: &Symbolizer, file: &Path, address: u64) -> Arc<Resolved> {
    let mut answers = symbolizer.resolve(&[exact(address)], &modules(file));
    assert_eq!(answers.len(), 1);
    answers.remove(0)
}

/// Returns the subject's result for each address of the file.
pub fn places(file: &Path, truth: &Path, addresses: &[u64], debug_folders: &[PathBuf]) -> Vec<Vec<SymbolizedFrame>> {
    if std::env::var(SUBJECT).is_ok_and(|subject| subject == "addr2line") {
        return gnu_addr2line::resolve(truth, addresses).expect("addr2line is installed");
    }
    let exact: Vec<CodeAddress> = addresses.iter().copied().map(exact).collect();
    let answers = symbolizer(debug_folders).resolve(&exact, &modules(file));
    answers.iter().map(|resolved| resolved.frames().iter().map(place).collect()).collect()
}

fn place(frame: &ResolvedFrame) -> SymbolizedFrame {
    SymbolizedFrame {
        function: Some(frame.function.to_string()),
        file: frame.file.as_deref().map(str::to_owned),
        line: frame.line.unwrap_or(0),
        column: frame.column.unwrap_or(0),
    }
}

/// A temporary folder of the test, which is removed when the test ends.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("stackweave-symbolize-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Copies `file` to the folder with this `name`, and returns its path.
    pub fn copy(&self, file: &Path, name: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::copy(file, &path).unwrap();
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns the fixture, or prints why the test is skipped.
macro_rules! or_skip {
    ($fixture:expr) => {
        match $fixture {
            Ok(fixture) => fixture,
            Err(skipped) => return println!("{skipped}"),
        }
    };
}
pub(crate) use or_skip;

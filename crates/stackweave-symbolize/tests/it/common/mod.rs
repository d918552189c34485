//! What the tests share: files as modules, and who is tested.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use stackweave_core::{BuildId, CodeAddress, Module, ModuleList};
use stackweave_symbolize::{Frame, Options, Resolved, Symbolizer};
use stackweave_testkit::symbols::module_file::ModuleFile;
use stackweave_testkit::symbols::{Place, gnu_addr2line};

/// `addr2line` puts binutils in the place of Stackweave's symbolizer: an agreement that is then missed is the
/// test's own fault.
const SUBJECT: &str = "STACKWEAVE_TEST_SUBJECT";

/// The file as a module at its stated addresses, with the build id that it has.
pub fn module(file: &Path) -> Module {
    let build_id = ModuleFile::read(file).build_id.and_then(|id| BuildId::new(&id));
    Module { path: file.to_owned(), build_id, bias: 0, start: 0, end: u64::MAX }
}

/// The file alone as the module list.
pub fn modules(file: &Path) -> ModuleList {
    ModuleList::new(vec![module(file)])
}

/// A symbolizer that looks for debug files in these folders.
pub fn symbolizer(debug_folders: &[PathBuf]) -> Symbolizer {
    let mut options = Options::default();
    options.debug_folders.extend_from_slice(debug_folders);
    Symbolizer::new(options)
}

pub fn exact(address: u64) -> CodeAddress {
    CodeAddress::instruction_pointer(address)
}

/// One exact address of one file.
pub fn resolve_one(symbolizer: &Symbolizer, file: &Path, address: u64) -> Arc<Resolved> {
    let mut answers = symbolizer.resolve(&[exact(address)], &modules(file));
    assert_eq!(answers.len(), 1);
    answers.remove(0)
}

/// What the subject tells about each address of the file.
pub fn places(file: &Path, truth: &Path, addresses: &[u64], debug_folders: &[PathBuf]) -> Vec<Vec<Place>> {
    if std::env::var(SUBJECT).is_ok_and(|subject| subject == "addr2line") {
        return gnu_addr2line::resolve(truth, addresses).expect("addr2line is installed");
    }
    let exact: Vec<CodeAddress> = addresses.iter().copied().map(exact).collect();
    let answers = symbolizer(debug_folders).resolve(&exact, &modules(file));
    answers.iter().map(|resolved| resolved.frames().iter().map(place).collect()).collect()
}

fn place(frame: &Frame) -> Place {
    Place {
        function: Some(frame.function.to_string()),
        file: frame.file.as_deref().map(str::to_owned),
        line: frame.line.unwrap_or(0),
        column: frame.column.unwrap_or(0),
    }
}

/// A folder of this test's own, gone when the test is done.
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

    /// A copy of `file` under `name`.
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

/// The fixture, or a line that says why the test is skipped.
macro_rules! or_skip {
    ($fixture:expr) => {
        match $fixture {
            Ok(fixture) => fixture,
            Err(skipped) => return println!("{skipped}"),
        }
    };
}
pub(crate) use or_skip;

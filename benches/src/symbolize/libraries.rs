//! The files to symbolize that this machine has.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

use super::sample::{self, Functions};
use crate::peers::torch;

/// A script that finds the shared libpython, and torch's library and version, without importing torch, because that
/// takes seconds.
const FIND: &str = "
import importlib.metadata, importlib.util, os, sysconfig
names = sysconfig.get_config_var('INSTSONAME'), sysconfig.get_config_var('LDLIBRARY')
paths = [os.path.join(sysconfig.get_config_var('LIBDIR'), name) for name in names if name and '.so' in name]
print(next(filter(os.path.exists, paths), ''))
spec = importlib.util.find_spec('torch')
if spec:
    print(os.path.join(os.path.dirname(spec.origin), 'lib', 'libtorch_cpu.so'))
    print(importlib.metadata.version('torch'))
";

#[derive(Clone, Debug)]
pub(super) struct Library {
    pub(super) path: PathBuf,
    pub(super) functions: Functions,
}

impl Library {
    fn open(path: &Path) -> Option<Self> {
        let path = fs::canonicalize(path).ok()?;
        let functions = sample::functions(&path)?;
        Some(Self { path, functions })
    }

    pub(super) fn name(&self) -> &str {
        self.path.file_name().and_then(|name| name.to_str()).unwrap_or("unnamed")
    }

    /// Returns the library's name, its size, and the best kind of symbols that it has.
    pub(super) fn describe(&self) -> String {
        format!("{}, {} MiB, {}", self.name(), self.functions.bytes >> 20, self.functions.kind)
    }

    /// Reads the file once, so that no contender waits for the disk.
    pub(super) fn warm_up(&self) -> io::Result<()> {
        io::copy(&mut fs::File::open(&self.path)?, &mut io::sink()).map(|_| ())
    }
}

/// The libraries that were found; `None` for the others.
#[derive(Clone, Debug, Default)]
pub(super) struct Libraries {
    pub(super) libpython: Option<Library>,
    pub(super) libtorch: Option<Library>,
    pub(super) torch_version: Option<String>,
    pub(super) libllvm: Option<Library>,
    pub(super) libstdcxx: Option<Library>,
    pub(super) own: Option<Library>,
}

impl Libraries {
    pub(super) fn find() -> Self {
        let output = Command::new(torch::python()).args(["-c", FIND]).output().ok();
        let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
        let lines = text.lines().collect::<Vec<_>>();
        let line = |index: usize| lines.get(index).filter(|line| !line.is_empty());
        let cache = loader_cache();
        let cached = |prefix: &str| {
            cache
                .lines()
                .find(|line| line.trim_start().starts_with(prefix) && line.contains("x86-64"))?
                .split(" => ")
                .nth(1)
        };
        Self {
            libpython: line(0).and_then(|path| Library::open(path.as_ref())),
            libtorch: line(1).and_then(|path| Library::open(path.as_ref())),
            torch_version: line(2).map(ToString::to_string),
            libllvm: cached("libLLVM").and_then(|path| Library::open(path.as_ref())),
            libstdcxx: cached("libstdc++.so.6").and_then(|path| Library::open(path.as_ref())),
            own: env::current_exe().ok().and_then(|path| Library::open(&path)),
        }
    }

    /// Returns each name with its library, or the reason why it is left out.
    pub(super) fn all(&self) -> [(&'static str, Result<&Library, &'static str>); 5] {
        let libpython = self.libpython.as_ref().ok_or("no shared libpython");
        let with_dwarf = libpython.and_then(|library| {
            if library.functions.has_dwarf { Ok(library) } else { Err("libpython has no .debug_info") }
        });
        [
            ("libpython", with_dwarf),
            ("libtorch_cpu", self.libtorch.as_ref().ok_or("torch is not installed")),
            ("libLLVM", self.libllvm.as_ref().ok_or("not installed")),
            ("libstdc++", self.libstdcxx.as_ref().ok_or("not installed")),
            ("this program", self.own.as_ref().ok_or("has no symbols")),
        ]
    }
}

/// Returns the loader's list of libraries. The program that prints it is not on the PATH of every user.
fn loader_cache() -> String {
    let printed = ["ldconfig", "/sbin/ldconfig"]
        .iter()
        .find_map(|program| Command::new(program).arg("-p").output().ok().filter(|output| output.status.success()));
    printed.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default()
}

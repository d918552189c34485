//! The `backtrace` crate's resolve, which sees only the libraries of its process and leaves C++ names mangled.

use std::env;
use std::ffi::{CString, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::{fs, ptr};

use super::{Chain, Contender, Job, Place, Resolve, by_module, measure};
use crate::peers::{locked_version, shared_library};
use crate::symbolize::loaded;

pub(super) const CONTENDER: Contender = Contender {
    name: "backtrace crate",
    version: || Ok(format!("{}, resolve: loaded libraries only, C++ names mangled", locked_version("backtrace"))),
    measure: measure::<Backtrace>,
    many_modules: true,
    in_process_only: true,
    is_slow: false,
};

struct Backtrace {
    biases: Vec<u64>,
}

/// The data that a caller would keep of a frame.
struct Frame {
    function: String,
    _file: Option<PathBuf>,
    _line: Option<u32>,
    _column: Option<u32>,
}

impl Resolve for Backtrace {
    type Answers = Vec<Vec<Frame>>;

    fn prepare(job: &Job) -> Result<Self, String> {
        let executable = env::current_exe().map_err(|error| error.to_string())?;
        for path in job.modules.iter().filter(|path| **path != executable) {
            load(path)?;
        }
        let loaded = loaded::here();
        let bias = |path: &PathBuf| {
            let path = fs::canonicalize(path).unwrap_or_else(|_| path.clone());
            let found = loaded.iter().find(|module| module.path == path);
            found.map(|module| module.bias).ok_or_else(|| "not loaded".to_owned())
        };
        Ok(Self { biases: job.modules.iter().map(bias).collect::<Result<_, _>>()? })
    }

    fn resolve(&mut self, places: &[Place]) -> Result<Self::Answers, String> {
        let mut answers = places.iter().map(|_| Vec::new()).collect::<Vec<_>>();
        // The crate caches four modules, and reads a module again when it has dropped it.
        for (module, positions) in by_module(places, self.biases.len()) {
            for position in positions {
                answers[position] = frames(self.biases[module].wrapping_add(places[position].address));
            }
        }
        Ok(answers)
    }

    fn chains(answers: &Self::Answers) -> Vec<Chain> {
        answers.iter().map(|frames| frames.iter().map(|frame| frame.function.clone()).collect()).collect()
    }
}

fn frames(address: u64) -> Vec<Frame> {
    let mut frames = Vec::new();
    // The crate treats its argument as a return address, and looks up the byte before.
    let after = ptr::without_provenance_mut::<c_void>(usize::try_from(address).unwrap_or_default().wrapping_add(1));
    backtrace::resolve(after, |symbol| {
        frames.push(Frame {
            function: symbol.name().map(|name| format!("{name:#}")).unwrap_or_default(),
            _file: symbol.filename().map(Path::to_owned),
            _line: symbol.lineno(),
            _column: symbol.colno(),
        });
    });
    frames
}

fn load(path: &Path) -> Result<(), String> {
    let name = CString::new(path.as_os_str().as_bytes()).map_err(|_| "its path contains a null byte".to_owned())?;
    shared_library::open(&name).map(|_| ()).map_err(|_| "n/a: can't be loaded here".to_owned())
}

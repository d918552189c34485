//! The Python interpreters of this machine.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The minor versions whose frames Stackweave can read.
pub const MINORS: std::ops::RangeInclusive<u8> = 10..=15;
/// The oldest minor version with the public functions that are the fallback for reading frames.
const OLDEST_FALLBACK: u8 = 9;
/// The environment variable with paths of more interpreters, separated by colons, for those in unusual folders.
pub const MORE: &str = "STACKWEAVE_TEST_PYTHONS";

const QUESTION: &str = "import sys, sysconfig
print(sys.version_info[1], bool(sysconfig.get_config_var('Py_GIL_DISABLED')), hasattr(sys, 'gettotalrefcount'), \
sysconfig.get_config_var('LIBDIR'), sysconfig.get_config_var('LDLIBRARY'), sys.version.split()[0], sys.base_prefix, \
sep='\\n')
";

/// Defines a module of tests, one for each minor version: `in_each_python!(name, check)` defines
/// `name::python_3_10` and so on. Each calls `check(&Python)` with the interpreters of that version, so that
/// versions run in parallel and a failure names its version.
#[macro_export]
macro_rules! in_each_python {
    ($(#[$meta:meta])* $name:ident, $check:expr) => {
        $(#[$meta])*
        mod $name {
            use super::*;

            $crate::in_each_python!(@tests $check,
                python_3_10 10, python_3_11 11, python_3_12 12, python_3_13 13, python_3_14 14, python_3_15 15);
        }
    };
    (@tests $check:expr, $($test:ident $minor:literal),+) => {
        $(#[test]
        fn $test() {
            $crate::pythons::check_minor($minor, $check);
        })+
    };
}

/// Calls `check` with each readable interpreter of this minor version. Prints a message if there is none.
pub fn check_minor(minor: u8, check: impl FnMut(&Python)) {
    const { assert!(*MINORS.start() == 10 && *MINORS.end() == 15, "the macro has a test for each") };
    let found = found(candidates().into_iter().filter(|executable| may_be(executable, minor)));
    let readable: Vec<_> = found.iter().filter(|python| python.minor == minor && python.refusal.is_none()).collect();
    if readable.is_empty() {
        report_missing(minor);
    }
    readable.into_iter().for_each(check);
}

#[expect(clippy::print_stdout, reason = "a test reports what it skips")]
fn report_missing(minor: u8) {
    println!("skipped: Python 3.{minor} is not installed");
}

/// Returns whether the file's name is compatible with this minor version.
fn may_be(executable: &Path, minor: u8) -> bool {
    let Ok(file) = executable.canonicalize() else { return false };
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let Some(named) = name.strip_prefix("python3.") else { return true };
    let digits: String = named.chars().take_while(char::is_ascii_digit).collect();
    digits.parse() == Ok(minor)
}

/// An installed interpreter.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Python {
    /// Its minor version.
    pub minor: u8,
    /// Its full version.
    pub version: String,
    /// The path of the executable.
    pub executable: PathBuf,
    /// The path of its shared library, if it has one.
    pub library: Option<PathBuf>,
    /// The folder in which it is installed.
    pub home: PathBuf,
    /// The reason why its frames cannot be read directly, with the crate's message.
    pub refusal: Option<String>,
}

impl Python {
    /// Runs the interpreter and queries its properties. Returns `None` if it does not run or is too old.
    pub fn query(executable: &Path) -> Option<Self> {
        let output = Command::new(executable).args(["-c", QUESTION]).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        let mut lines = text.lines();
        let minor = lines.next()?.parse().ok()?;
        if minor < OLDEST_FALLBACK {
            return None;
        }
        let (free_threaded, debug) = (lines.next()? == "True", lines.next()? == "True");
        let refusal = if !MINORS.contains(&minor) {
            Some(format!("Python 3.{minor} is not known; 3.{} to 3.{} are", MINORS.start(), MINORS.end()))
        } else if free_threaded {
            Some("free-threaded builds of CPython are not supported yet".to_owned())
        } else {
            debug.then(|| "debug builds of CPython are not supported".to_owned())
        };
        let library = Path::new(lines.next()?).join(lines.next()?);
        let library = (library.to_string_lossy().contains(".so") && library.exists()).then_some(library);
        let (version, home) = (lines.next()?.to_owned(), lines.next()?.into());
        Some(Self { minor, version, executable: executable.to_owned(), library, home, refusal })
    }
}

/// Returns every interpreter whose frames can be read.
pub fn readable_pythons() -> BTreeSet<Python> {
    all().into_iter().filter(|python| python.refusal.is_none()).collect()
}

/// Returns every interpreter whose frames can be read, and prints which minor versions are missing.
pub fn pythons() -> BTreeSet<Python> {
    let found = readable_pythons();
    for minor in MINORS {
        if !found.iter().any(|python| python.minor == minor) {
            report_missing(minor);
        }
    }
    found
}

/// Returns every interpreter that Stackweave refuses.
pub fn refused_pythons() -> BTreeSet<Python> {
    all().into_iter().filter(|python| python.refusal.is_some()).collect()
}

/// Returns every interpreter on the path, in pyenv and in [`MORE`], each once.
fn all() -> BTreeSet<Python> {
    found(candidates())
}

/// Returns the interpreters among these files.
fn found(candidates: impl IntoIterator<Item = PathBuf>) -> BTreeSet<Python> {
    let mut files = BTreeSet::new();
    let is_new = |executable: &PathBuf| executable.canonicalize().is_ok_and(|file| files.insert(file));
    // The same interpreter may have several names, or be behind a script that chooses one.
    let mut found: BTreeMap<(String, PathBuf, Option<String>), Python> = BTreeMap::new();
    for executable in candidates.into_iter().filter(is_new) {
        if let Some(python) = Python::query(&executable) {
            found.entry((python.version.clone(), python.home.clone(), python.refusal.clone())).or_insert(python);
        }
    }
    found.into_values().collect()
}

fn candidates() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::env::var_os(MORE).iter().flat_map(std::env::split_paths).collect();
    for folder in std::env::var_os("PATH").iter().flat_map(std::env::split_paths) {
        found.push(folder.join("python3"));
        found.extend((OLDEST_FALLBACK..=*MINORS.end()).map(|minor| folder.join(format!("python3.{minor}"))));
    }
    let root = Command::new("pyenv").arg("root").output().ok().and_then(|output| String::from_utf8(output.stdout).ok());
    let versions = root.map(|root| Path::new(root.trim()).join("versions"));
    for version in versions.and_then(|versions| versions.read_dir().ok()).into_iter().flatten().flatten() {
        found.push(version.path().join("bin/python3"));
    }
    found
}

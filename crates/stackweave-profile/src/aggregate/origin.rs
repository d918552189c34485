//! The origin of code, which determines the frames that are visible by default.

use crate::frame::{Frame, FrameKind};

/// The origin of a function's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CodeOrigin {
    /// The interpreter, code that starts processes and threads, and Stackweave.
    Interpreter,
    /// A library, including Python's standard library.
    Library,
    /// The program: everything else.
    Program,
}

impl CodeOrigin {
    /// Returns the name of the origin.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Interpreter => "interpreter",
            Self::Library => "library",
            Self::Program => "program",
        }
    }

    /// Returns the origin of a frame. `module` is the path of a native frame's module.
    pub fn of(frame: &Frame, module: &str) -> Self {
        let path = if frame.kind == FrameKind::Native { module } else { frame.filename.as_deref().unwrap_or_default() };
        let name = frame.qualname.as_ref().unwrap_or(&frame.name);
        CodeIdentity { kind: frame.kind, name, path, is_own: frame.is_own }.origin()
    }
}

/// The properties of a frame that determine its origin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CodeIdentity<'a> {
    pub(crate) kind: FrameKind,
    /// The name with the classes around it, if they are known.
    pub(crate) name: &'a str,
    /// The source file of an interpreted function, or the path of a native function's module; empty if unknown.
    pub(crate) path: &'a str,
    /// Whether the recording states that the file is Stackweave's.
    pub(crate) is_own: bool,
}

impl CodeIdentity<'_> {
    pub(crate) fn origin(self) -> CodeOrigin {
        match self.kind {
            FrameKind::Python if self.is_python_of_interpreter() => CodeOrigin::Interpreter,
            FrameKind::Python if is_library_file(self.path) => CodeOrigin::Library,
            FrameKind::Native if self.is_native_code_of_interpreter() => CodeOrigin::Interpreter,
            FrameKind::Native if self.is_backward_node() => CodeOrigin::Program,
            FrameKind::Native if is_library_module(self.path) => CodeOrigin::Library,
            _ => CodeOrigin::Program,
        }
    }

    fn is_python_of_interpreter(self) -> bool {
        let is_file = |name| self.path.ends_with(name) && is_standard_library(self.path);
        self.path.starts_with("<frozen importlib")
            || self.path == "<frozen runpy>"
            || is_file("/runpy.py")
            || is_file("/importlib/_bootstrap.py")
            || is_file("/importlib/_bootstrap_external.py")
            || (is_file("/threading.py") && THREAD_STARTERS.contains(&self.name))
            || self.is_own
            || is_own_package(self.path)
            || (self.name == "<module>" && is_own_command(self.path))
    }

    fn is_native_code_of_interpreter(self) -> bool {
        let file = file_name(self.path);
        is_interpreter(file) || is_own_library(self.path, file) || PROCESS_STARTERS.contains(&self.name)
    }

    /// Returns whether it is a backward step of a program's own graph in `PyTorch`, on threads without other code of
    /// the program.
    fn is_backward_node(self) -> bool {
        self.name.starts_with("torch::autograd::generated::") && self.name.contains("::apply(")
    }
}

/// Functions that run the target of a `threading.Thread`.
const THREAD_STARTERS: [&str; 6] =
    ["Thread._bootstrap", "Thread._bootstrap_inner", "Thread.run", "_bootstrap", "_bootstrap_inner", "run"];

/// Functions that call `main`, and a thread's first function.
const PROCESS_STARTERS: [&str; 11] = [
    "_start",
    "__libc_start_main",
    "__libc_start_main_impl",
    "__libc_start_main@@GLIBC_2.34",
    "__libc_start_call_main",
    "start_thread",
    "__clone",
    "clone",
    "clone3",
    "__clone3",
    "execute_native_thread_routine",
];

const SYSTEM_FOLDERS: [&str; 6] = ["/lib/", "/lib32/", "/lib64/", "/usr/lib/", "/usr/lib32/", "/usr/lib64/"];
const LOCAL_FOLDERS: [&str; 3] = ["/usr/local/lib/", "/usr/local/lib64/", "/usr/libexec/"];

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// Returns whether it is `python`, `python3.13t` or `libpython3.11.so.1.0`.
fn is_interpreter(file: &str) -> bool {
    if let Some(rest) = file.strip_prefix("libpython") {
        return rest.contains(".so");
    }
    let Some(version) = file.strip_prefix("python") else { return false };
    let version = version.trim_end_matches(['t', 'd', 'm', 'u']);
    version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}

/// Returns whether it is in the package as installers place it. A folder of a program may have the package's name.
fn is_own_package(path: &str) -> bool {
    ["/site-packages/stackweave/", "/dist-packages/stackweave/"].iter().any(|folder| path.contains(folder))
}

/// Returns whether it is the script that installers create for the command. It calls the package, which runs the
/// program.
fn is_own_command(path: &str) -> bool {
    path.ends_with("/bin/stackweave")
}

fn is_own_library(path: &str, file: &str) -> bool {
    file.starts_with("libstackweave") || path.ends_with("/stackweave/_native.abi3.so")
}

fn is_library_file(path: &str) -> bool {
    path.starts_with("<frozen ") || is_installed_package(path) || is_standard_library(path)
}

fn is_installed_package(path: &str) -> bool {
    path.contains("/site-packages/") || path.contains("/dist-packages/")
}

/// Returns whether it is in a folder such as `lib/python3.12`.
fn is_standard_library(path: &str) -> bool {
    let mut folders = path.split('/').peekable();
    while let Some(folder) = folders.next() {
        let below = folders.peek().and_then(|below| below.strip_prefix("python3"));
        if matches!(folder, "lib" | "lib64" | "Lib") && below.is_some_and(is_version_rest) {
            return true;
        }
    }
    false
}

/// Returns whether it is `.12`, `.13t`, `12.zip` or empty.
fn is_version_rest(rest: &str) -> bool {
    let rest = rest.trim_end_matches(".zip").trim_end_matches('t');
    rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}

fn is_library_module(path: &str) -> bool {
    let is_shared = path.contains(".so");
    path == "[vdso]"
        || (is_shared && SYSTEM_FOLDERS.iter().chain(&LOCAL_FOLDERS).any(|folder| path.starts_with(folder)))
        || is_installed_package(path)
        || is_standard_library(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origins(kind: FrameKind, places: &[(&str, &str)]) -> Vec<CodeOrigin> {
        places.iter().map(|(name, path)| CodeIdentity { kind, name, path, is_own: false }.origin()).collect()
    }

    #[test]
    fn python_files_are_distinguished_by_their_folders() {
        let interpreter = [
            ("_find_and_load", "<frozen importlib._bootstrap>"),
            ("_run_code", "<frozen runpy>"),
            ("_run_code", "/usr/lib/python3.10/runpy.py"),
            ("Thread._bootstrap_inner", "/opt/py/lib/python3.12/threading.py"),
            ("_bootstrap", "/opt/py/lib/python3.10/threading.py"),
            ("capture", "/venv/lib/python3.11/site-packages/stackweave/__init__.py"),
            ("<module>", "/venv/bin/stackweave"),
        ];
        assert_eq!(origins(FrameKind::Python, &interpreter), [CodeOrigin::Interpreter; 7]);
        let library = [
            ("dumps", "/usr/lib/python3.11/json/__init__.py"),
            ("loads", "/opt/py/lib/python3.13t/json/__init__.py"),
            ("Thread.start", "/usr/lib/python3.11/threading.py"),
            ("array", "/srv/me/app/.venv/lib/python3.12/site-packages/numpy/core.py"),
            ("get", "/usr/lib/python3/dist-packages/requests/api.py"),
            ("exists", "<frozen genericpath>"),
            ("x", "/usr/lib/python311.zip/json.py"),
        ];
        assert_eq!(origins(FrameKind::Python, &library), [CodeOrigin::Library; 7]);
        let program = [
            ("main", "/srv/me/app/main.py"),
            ("main", "runpy.py"),
            ("run", "/srv/me/threading.py"),
            ("<module>", "<string>"),
            ("f", "/srv/me/lib/python3_tools/a.py"),
            ("f", "/srv/me/python3.11/a.py"),
            ("f", ""),
            ("f", "/srv/me/bin/stackweave"),
            ("<module>", "/srv/me/bin/my-stackweave"),
            ("<module>", "/srv/python/stackweave/train.py"),
            ("main", "/srv/python/stackweave/_helpers.py"),
            ("main", "/srv/stackweave/__init__.py"),
        ];
        assert_eq!(origins(FrameKind::Python, &program), [CodeOrigin::Program; 12]);
        let own = CodeIdentity {
            kind: FrameKind::Python,
            name: "start",
            path: "/opt/stackweave/_recorders/recorder.py",
            is_own: true,
        };
        assert_eq!(own.origin(), CodeOrigin::Interpreter);
    }

    #[test]
    fn native_code_is_distinguished_by_its_module() {
        let interpreter = [
            ("list_sort", "/usr/lib/x86_64-linux-gnu/libpython3.11.so.1.0"),
            ("_PyEval_EvalFrameDefault", "/usr/bin/python3.11"),
            ("main", "/opt/bin/python3.13t"),
            ("main", "/opt/bin/python"),
            ("__libc_start_call_main", "/lib/x86_64-linux-gnu/libc.so.6"),
            ("start_thread", "/lib/x86_64-linux-gnu/libc.so.6"),
            ("execute_native_thread_routine", "/lib/x86_64-linux-gnu/libstdc++.so.6"),
            ("capture", "/venv/lib/python3.11/site-packages/stackweave/_native.abi3.so"),
            ("sw_capture", "/opt/lib/libstackweave.so"),
        ];
        assert_eq!(origins(FrameKind::Native, &interpreter), [CodeOrigin::Interpreter; 9]);
        let library = [
            ("qsort", "/lib/x86_64-linux-gnu/libc.so.6"),
            ("sgemm_", "/venv/lib/python3.11/site-packages/numpy.libs/libopenblas.so"),
            ("scan_once", "/opt/py/lib/python3.12/lib-dynload/_json.cpython-312-x86_64-linux-gnu.so"),
            ("clock_gettime", "[vdso]"),
            (
                "torch::autograd::Engine::thread_init(int)",
                "/venv/lib/python3.11/site-packages/torch/lib/libtorch_cpu.so",
            ),
        ];
        assert_eq!(origins(FrameKind::Native, &library), [CodeOrigin::Library; 5]);
        let program = [
            ("main", "/usr/bin/server"),
            ("step", "/srv/me/app/build/libapp.so"),
            ("step", "/srv/python/stackweave/_native.cpython-312-x86_64-linux-gnu.so"),
            ("main", "/srv/me/pythonista"),
            ("jitted", ""),
            (
                "torch::autograd::generated::MmBackward0::apply(std::vector<at::Tensor>&&)",
                "/venv/lib/python3.11/site-packages/torch/lib/libtorch_cpu.so",
            ),
        ];
        assert_eq!(origins(FrameKind::Native, &program), [CodeOrigin::Program; 6]);
    }

    #[test]
    fn all_other_code_is_of_the_program() {
        for kind in [FrameKind::Script, FrameKind::Extra, FrameKind::Span] {
            assert_eq!(
                origins(kind, &[("f", "/usr/lib/python3.11/json/__init__.py")]),
                [CodeOrigin::Program],
                "{kind}"
            );
        }
    }
}

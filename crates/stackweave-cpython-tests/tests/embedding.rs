//! An interpreter inside this process: before it is initialised, after it is gone, and loaded for its host alone.

#![expect(clippy::expect_used, clippy::unwrap_used, reason = "a test that cannot do its work must fail")]

use std::ffi::{CString, c_char, c_int, c_void};
use std::mem::transmute;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use stackweave_cpython::{FrameReader, Interpreter, PythonFrame, SourceStop, Unavailable};
use stackweave_cpython_tests::pythons::pythons;
use stackweave_testkit::child;

const NAME: &str = "an_embedded_interpreter_comes_and_goes";
const HIDDEN: &str = "hidden:";
const OPEN: &str = "open:";

struct Library(*mut c_void);

impl Library {
    fn open(path: &Path, mode: c_int) -> Self {
        let path = CString::new(path.as_os_str().as_bytes()).unwrap();
        // SAFETY: loading an interpreter runs nothing of it.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | mode) };
        assert!(!handle.is_null(), "{path:?} does not load");
        Self(handle)
    }

    fn symbol(&self, name: &str) -> *mut c_void {
        let name = CString::new(name).unwrap();
        // SAFETY: the handle is open, the name is a C string.
        let symbol = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        assert!(!symbol.is_null(), "{name:?} is missing");
        symbol
    }
}

fn walk() -> (usize, SourceStop) {
    let interpreter = Interpreter::find().expect("it is loaded and supported");
    let mut frames = [PythonFrame::default(); 16];
    let walked = interpreter.walk(&mut frames);
    assert_eq!(interpreter.walk_interrupted(&mut frames), walked);
    (walked.len, walked.stop)
}

fn come_and_go(path: &Path, mode: c_int) {
    assert_eq!(Interpreter::find().err(), Some(Unavailable::NoInterpreter));
    let library = Library::open(path, mode);
    assert_eq!(walk(), (0, SourceStop::NotInitialized), "before");
    // SAFETY: the symbols have these signatures in every Python 3; nothing else uses the interpreter.
    unsafe {
        let initialize: extern "C" fn(c_int) = transmute(library.symbol("Py_InitializeEx"));
        let run: extern "C" fn(*const c_char) -> c_int = transmute(library.symbol("PyRun_SimpleString"));
        let finalize: extern "C" fn() -> c_int = transmute(library.symbol("Py_FinalizeEx"));
        for _ in 0..2 {
            initialize(0);
            assert_eq!(run(c"sum(n for n in range(10))".as_ptr()), 0);
            assert_eq!(walk(), (0, SourceStop::EndOfStack), "no frame is left");
            let reader = FrameReader::choose().expect("there is an interpreter");
            assert_eq!(reader.fallback_reason(), None);
            assert_eq!(finalize(), 0);
            let (len, stop) = walk();
            assert!(len == 0 && matches!(stop, SourceStop::NotInitialized | SourceStop::Finalizing), "after: {stop}");
        }
    }
}

#[test]
fn an_embedded_interpreter_comes_and_goes() {
    match child::role() {
        Some(role) if role.starts_with(HIDDEN) => come_and_go(Path::new(&role[HIDDEN.len()..]), libc::RTLD_LOCAL),
        Some(role) => come_and_go(Path::new(&role[OPEN.len()..]), libc::RTLD_GLOBAL),
        None => {
            for python in pythons() {
                let Some(library) = &python.library else {
                    println!("skipped: {} has no shared library", python.version);
                    continue;
                };
                for prefix in [HIDDEN, OPEN] {
                    let role = format!("{prefix}{}", library.display());
                    let mut command = child::command(&child::own_executable(), NAME, &role);
                    // An interpreter looks for its library beside the executable, which is this test.
                    command.env("PYTHONHOME", &python.home);
                    let output = child::run(&mut command);
                    assert!(output.status.success(), "{}, {role}: {}", python.version, child::text(&output));
                }
            }
        }
    }
}

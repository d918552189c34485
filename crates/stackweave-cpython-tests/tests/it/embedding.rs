//! An interpreter inside this process: before it is initialised, after it has ended, and loaded with local symbols.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem::transmute;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::null_mut;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use stackweave_core::{FrameSource, RawFrame, SourceWalk, StackPointer};
use stackweave_cpython::{FrameReader, Interpreter, PythonFrame, PythonSource, SourceStop, Unavailable};
use stackweave_cpython_tests::pythons::Python;
use stackweave_testkit::{child, in_each_python};

const EMBEDS: &str = "embedding::embeds_the_library_of_its_role";
const HIDDEN: &str = "hidden:";
const OPEN: &str = "open:";

struct Library(*mut c_void);

impl Library {
    fn open(path: &Path, mode: c_int) -> Self {
        let path = CString::new(path.as_os_str().as_bytes()).unwrap();
        // SAFETY: loading an interpreter runs none of its code.
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

fn initialize_and_finalize(path: &Path, mode: c_int) {
    assert_eq!(Interpreter::find().err(), Some(Unavailable::NoInterpreter));
    let library = Library::open(path, mode);
    assert_eq!(walk(), (0, SourceStop::NotInitialized), "before");
    // SAFETY: the symbols have these signatures in every Python 3; nothing else uses the interpreter.
    unsafe {
        let initialize: extern "C" fn(c_int) = transmute(library.symbol("Py_InitializeEx"));
        let run: extern "C" fn(*const c_char) -> c_int = transmute(library.symbol("PyRun_SimpleString"));
        let finalize: extern "C" fn() -> c_int = transmute(library.symbol("Py_FinalizeEx"));
        let add_hook: extern "C" fn(Hook, *mut c_void) -> c_int = transmute(library.symbol("PySys_AddAuditHook"));
        for _ in 0..2 {
            initialize(0);
            assert_eq!(run(c"sum(n for n in range(10))".as_ptr()), 0);
            assert_eq!(walk(), (0, SourceStop::EndOfStack), "no frame is left");
            let reader = FrameReader::choose().expect("there is an interpreter");
            assert_eq!(reader.fallback_reason(), None);
            add_hook(hook, null_mut());
            name_new_functions(run);
            assert_eq!(finalize(), 0);
            let (len, stop) = walk();
            assert!(len == 0 && matches!(stop, SourceStop::NotInitialized | SourceStop::Finalizing), "after: {stop}");
        }
    }
}

type Hook = unsafe extern "C" fn(*const c_char, *mut c_void, *mut c_void) -> c_int;

/// The frames that `hook` has read.
static SEEN: Mutex<Vec<RawFrame>> = Mutex::new(Vec::new());

/// Stores the innermost frame when Python code raises the event.
///
/// # Safety
/// The interpreter calls it, with the GIL held.
unsafe extern "C" fn hook(event: *const c_char, _: *mut c_void, _: *mut c_void) -> c_int {
    // SAFETY: events are C strings.
    if unsafe { CStr::from_ptr(event) } != c"walk" {
        return 0;
    }
    let (frames, activations) = (&mut [RawFrame::default(); 4], &mut [StackPointer(0); 4]);
    let source = PythonSource::install().expect("there is an interpreter");
    let walk = SourceWalk { frames, activations, memory: &mut [], source: 0, in_signal_handler: false };
    assert_eq!(source.walk(walk).len, 3);
    SEEN.lock().unwrap().push(frames[0]);
    0
}

/// Checks that code objects of an ended interpreter keep their names, and that those of the next have other names.
fn name_new_functions(run: extern "C" fn(*const c_char) -> c_int) {
    static LIVES: AtomicUsize = AtomicUsize::new(0);
    const FUNCTIONS: usize = 50;
    let life = LIVES.fetch_add(1, Ordering::Relaxed);
    let source = PythonSource::install().expect("there is an interpreter");
    assert_eq!(source.stats().death_watch, "watching");
    let program = format!(
        "import sys
for number in range({FUNCTIONS}):
    exec(f'def life{life}_{{number}}(): sys.audit(\"walk\")\\nlife{life}_{{number}}()')
"
    );
    assert_eq!(run(CString::new(program).unwrap().as_ptr()), 0);
    let seen = SEEN.lock().unwrap();
    assert_eq!(seen.len(), FUNCTIONS * (life + 1));
    for (index, frame) in seen.iter().enumerate() {
        let name = source.locate(*frame).expect("it was walked").name;
        assert_eq!(*name, format!("life{}_{}", index / FUNCTIONS, index % FUNCTIONS));
    }
}

in_each_python!(an_embedded_interpreter_is_initialized_and_finalized_twice, check_embedded);

fn check_embedded(python: &Python) {
    let Some(library) = &python.library else {
        println!("skipped: {} has no shared library", python.version);
        return;
    };
    for prefix in [HIDDEN, OPEN] {
        let role = format!("{prefix}{}", library.display());
        let mut command = child::command(&child::own_executable(), EMBEDS, &role);
        // An interpreter searches for its library beside the executable, which is this test.
        command.arg("--include-ignored").env("PYTHONHOME", &python.home);
        let output = child::run(&mut command);
        let text = child::text(&output);
        assert!(output.status.success() && text.contains("1 passed"), "{}, {role}: {text}", python.version);
    }
}

#[test]
#[ignore = "run by the tests of embedded interpreters, in a separate process"]
fn embeds_the_library_of_its_role() {
    let role = child::role().expect("the parent passes the library");
    match role.strip_prefix(HIDDEN) {
        Some(library) => initialize_and_finalize(Path::new(library), libc::RTLD_LOCAL),
        None => initialize_and_finalize(Path::new(&role[OPEN.len()..]), libc::RTLD_GLOBAL),
    }
}

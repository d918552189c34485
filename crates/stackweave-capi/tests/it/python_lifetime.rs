//! Captures before Python is initialized, while it runs, and after it is finalized, in a host that embeds it.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem::transmute;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use stackweave::stackweave_status::{STACKWEAVE_BAD_ARGUMENT, STACKWEAVE_NO_PYTHON, STACKWEAVE_OK};
use stackweave::*;
use stackweave_testkit::pythons::Python;
use stackweave_testkit::{child, in_each_python};

const EMBEDS: &str = "python_lifetime::embeds_the_library_of_its_role";

static CAPTURED: AtomicU64 = AtomicU64::new(STACKWEAVE_NO_STACK);

fn capture() -> stackweave_stack {
    let mut stack = STACKWEAVE_NO_STACK;
    // SAFETY: a null request requests all frames; the output is a local.
    assert_eq!(unsafe { stackweave_capture(ptr::null(), &raw mut stack, ptr::null_mut()) }, STACKWEAVE_OK);
    stack
}

/// Captures a stack. Python calls it through ctypes.
extern "C" fn capture_here() {
    CAPTURED.store(capture(), Ordering::SeqCst);
}

fn json(stack: stackweave_stack) -> String {
    let mut text = ptr::null_mut();
    // SAFETY: locals; the text is copied before it is freed.
    unsafe {
        assert_eq!(stackweave_resolve_json(&raw const stack, 1, &raw mut text), STACKWEAVE_OK);
        let copy = CStr::from_ptr(text).to_str().expect("UTF-8").to_owned();
        assert_eq!(stackweave_free_string(text), STACKWEAVE_OK);
        copy
    }
}

/// Returns the names of the Python frames and of their original frames, in order.
fn python_names(json: &str) -> Vec<&str> {
    let objects = json.split("{\"name\":\"").skip(1);
    let python_objects =
        objects.filter(|object| object.contains("\"kind\":\"python\"") || object.contains("\"kind\":\"extra\""));
    python_objects.filter_map(|object| object.split('"').next()).collect()
}

unsafe extern "C" fn frames_behind(
    _data: *mut c_void,
    filename: *const c_char,
    line: u32,
    frames: *mut stackweave_location_list,
) {
    // SAFETY: a C string, and the list that the library passed.
    unsafe {
        if CStr::from_ptr(filename) != c"generated.py" {
            return;
        }
        for name in [c"original", c"caller of the original"] {
            let location = stackweave_location {
                size: size_of::<stackweave_location>(),
                name: name.as_ptr(),
                qualname: ptr::null(),
                filename: c"original.py".as_ptr(),
                line,
                column: 0,
                end_line: 0,
                end_column: 0,
            };
            assert_eq!(stackweave_add_location(frames, &raw const location), STACKWEAVE_OK);
        }
    }
}

fn script() -> CString {
    let address = capture_here as extern "C" fn() as usize;
    let script = format!(
        "import ctypes\n\
         call = ctypes.CFUNCTYPE(None)({address})\n\
         exec(compile('def generated(): call()', 'generated.py', 'exec'))\n\
         def outer(): generated()\n\
         outer()\n"
    );
    CString::new(script).expect("no null byte")
}

fn symbol(library: *mut c_void, name: &CStr) -> *mut c_void {
    // SAFETY: the handle is open, the name is a C string.
    let symbol = unsafe { libc::dlsym(library, name.as_ptr()) };
    assert!(!symbol.is_null(), "{name:?} is missing");
    symbol
}

fn run_embedded_python(path: &Path) {
    let path = CString::new(path.as_os_str().as_bytes()).expect("no null byte");
    assert_eq!(stackweave_enable_python(), STACKWEAVE_NO_PYTHON, "not loaded");
    // SAFETY: loading an interpreter runs none of its code. Its extension modules need its symbols, too.
    let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
    assert!(!library.is_null());
    assert_eq!(stackweave_enable_python(), STACKWEAVE_NO_PYTHON, "not initialized");
    // SAFETY: the symbols have these signatures in every Python 3, and no other thread uses the interpreter.
    unsafe {
        let initialize: extern "C" fn(c_int) = transmute(symbol(library, c"Py_InitializeEx"));
        let run: extern "C" fn(*const c_char) -> c_int = transmute(symbol(library, c"PyRun_SimpleString"));
        let finalize: extern "C" fn() -> c_int = transmute(symbol(library, c"Py_FinalizeEx"));
        let set_error: extern "C" fn() -> *mut c_void = transmute(symbol(library, c"PyErr_NoMemory"));
        let clear_error: extern "C" fn() = transmute(symbol(library, c"PyErr_Clear"));
        initialize(0);
        set_error();
        assert_eq!(stackweave_enable_python(), STACKWEAVE_BAD_ARGUMENT, "an exception is set");
        clear_error();
        for _ in 0..2 {
            assert_eq!(stackweave_enable_python(), STACKWEAVE_OK);
        }
        let extra = stackweave_extra_frames {
            size: size_of::<stackweave_extra_frames>(),
            data: ptr::null_mut(),
            frames_behind: Some(frames_behind),
        };
        let mut handle = 0;
        assert_eq!(stackweave_register_extra_frames(&raw const extra, &raw mut handle), STACKWEAVE_OK);
        assert_eq!(run(script().as_ptr()), 0);
        let stack = CAPTURED.load(Ordering::SeqCst);
        let names = ["generated", "original", "caller of the original", "outer", "<module>"];
        assert_eq!(python_names(&json(stack)), names);
        assert_eq!(stackweave_remove_extra_frames(handle), STACKWEAVE_OK);
        assert_eq!(python_names(&json(stack)), ["generated", "outer", "<module>"]);
        let mut stats = stackweave_stats { size: size_of::<stackweave_stats>(), ..Default::default() };
        assert_eq!(stackweave_get_stats(&raw mut stats), STACKWEAVE_OK);
        assert!(stats.python_is_enabled && stats.python_is_direct && stats.python_codes >= 3, "{stats:?}");
        assert_eq!(finalize(), 0);
        check_after_finalization(stack);
    }
}

fn check_after_finalization(stack: stackweave_stack) {
    assert_eq!(python_names(&json(stack)), ["generated", "outer", "<module>"], "names outlive Python");
    assert_eq!(python_names(&json(capture())), Vec::<&str>::new());
    assert_eq!(stackweave_release(stack), STACKWEAVE_OK);
    assert_eq!(stackweave_disable_python(), STACKWEAVE_OK);
    assert_eq!(stackweave_disable_python(), STACKWEAVE_OK);
    assert_eq!(stackweave_enable_python(), STACKWEAVE_NO_PYTHON);
    assert_eq!(python_names(&json(capture())), Vec::<&str>::new());
}

in_each_python!(captures_work_before_during_and_after_an_embedded_python, check_embedded);

fn check_embedded(python: &Python) {
    let Some(library) = &python.library else {
        println!("skipped: {} has no shared library", python.version);
        return;
    };
    let role = library.display().to_string();
    let mut command = child::command(&child::own_executable(), EMBEDS, &role);
    let output = child::run(command.arg("--include-ignored").env("PYTHONHOME", &python.home));
    let text = child::text(&output);
    assert!(output.status.success() && text.contains("1 passed"), "{}: {text}", python.version);
}

#[test]
#[ignore = "the tests of embedded interpreters run it in a child process"]
fn embeds_the_library_of_its_role() {
    run_embedded_python(Path::new(&child::role().expect("the parent passes the library")));
}

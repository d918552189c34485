//! Two copies of the library in one process, in addition to the test's own, don't affect each other.
#![expect(clippy::expect_used, reason = "a test that cannot do its work must fail")]
#![expect(clippy::cast_possible_truncation, reason = "small numbers")]

mod common;
#[path = "common/interpreter.rs"]
mod interpreter;

use std::ffi::{CStr, c_char};
use std::mem::transmute;
use std::thread;

use common::{shared_library, workshop};
use interpreter::{AddLocation, Interpreter, interpret};
use stackweave::stackweave_status::{self, STACKWEAVE_OK, STACKWEAVE_UNKNOWN_HANDLE, STACKWEAVE_UNKNOWN_STACK};
use stackweave::{
    STACKWEAVE_CAPTURE_ALL, STACKWEAVE_NO_STACK, stackweave_capture_request, stackweave_frame_source, stackweave_stack,
};
use stackweave_testkit::library::Library;

/// The functions of one copy of the library.
#[derive(Clone, Copy)]
struct LibraryCopy {
    capture:
        unsafe extern "C" fn(*const stackweave_capture_request, *mut stackweave_stack, *mut i32) -> stackweave_status,
    release: extern "C" fn(stackweave_stack) -> stackweave_status,
    resolve_json: unsafe extern "C" fn(*const stackweave_stack, usize, *mut *mut c_char) -> stackweave_status,
    free_string: unsafe extern "C" fn(*mut c_char) -> stackweave_status,
    register: unsafe extern "C" fn(*const stackweave_frame_source, *mut u64) -> stackweave_status,
    remove: extern "C" fn(u64) -> stackweave_status,
    add_location: AddLocation,
}

impl LibraryCopy {
    fn of(library: &Library) -> Self {
        let symbol = |name: &str| {
            let symbol = library.symbol(name);
            assert!(!symbol.is_null(), "{name}");
            symbol
        };
        #[expect(clippy::missing_transmute_annotations, reason = "the fields have the types")]
        // SAFETY: the signatures are those of the header.
        unsafe {
            Self {
                capture: transmute(symbol("stackweave_capture")),
                release: transmute(symbol("stackweave_release")),
                resolve_json: transmute(symbol("stackweave_resolve_json")),
                free_string: transmute(symbol("stackweave_free_string")),
                register: transmute(symbol("stackweave_register_frame_source")),
                remove: transmute(symbol("stackweave_remove_frame_source")),
                add_location: transmute(symbol("stackweave_add_location")),
            }
        }
    }

    fn capture(&self) -> stackweave_stack {
        let request = stackweave_capture_request {
            size: size_of::<stackweave_capture_request>(),
            flags: STACKWEAVE_CAPTURE_ALL,
            skip: 0,
            limit: 0,
        };
        let mut stack = STACKWEAVE_NO_STACK;
        // SAFETY: locals.
        let status = unsafe { (self.capture)(&raw const request, &raw mut stack, std::ptr::null_mut()) };
        assert_eq!(status, STACKWEAVE_OK);
        stack
    }

    fn json(&self, stack: stackweave_stack) -> String {
        let mut text = std::ptr::null_mut();
        // SAFETY: locals; the text is copied before it is freed.
        unsafe {
            assert_eq!((self.resolve_json)(&raw const stack, 1, &raw mut text), STACKWEAVE_OK);
            let copy = CStr::from_ptr(text).to_str().expect("UTF-8").to_owned();
            assert_eq!((self.free_string)(text), STACKWEAVE_OK);
            copy
        }
    }

    fn register(&self, file: &str) -> u64 {
        let mut handle = 0;
        let source = Interpreter::new(file, self.add_location).source();
        // SAFETY: its callbacks are never removed.
        assert_eq!(unsafe { (self.register)(&raw const source, &raw mut handle) }, STACKWEAVE_OK);
        handle
    }
}

fn copy(name: &str) -> String {
    let path = workshop("two-copies").join(format!("{}-{name}", std::process::id()));
    std::fs::copy(shared_library(), &path).expect("the folder is writable");
    path.display().to_string()
}

/// Returns the files of the script frames.
fn files(json: &str) -> Vec<&str> {
    let kinds = json.split("\"filename\":\"").skip(1).filter(|rest| rest.contains("\"kind\":\"script\""));
    kinds.filter_map(|rest| rest.split('"').next()).filter(|file| file.contains(".calc")).collect()
}

#[test]
fn copies_do_not_disturb_each_other() {
    for (round, order) in [[true, false], [false, true], [true, true]].into_iter().enumerate() {
        // New names in each round, because a copy is never unloaded.
        let paths = ["first", "second"].map(|name| copy(&format!("lib{name}-{round}.so")));
        let open = |index: usize| {
            let opened = if order[index] { Library::open_for_all(&paths[index]) } else { Library::open(&paths[index]) };
            opened.expect("a copy of the library loads")
        };
        let libraries = [open(0), open(1)];
        let copies = [LibraryCopy::of(&libraries[0]), LibraryCopy::of(&libraries[1])];
        assert_ne!(copies[0].capture as usize, copies[1].capture as usize);
        let handles = [copies[0].register("first.calc"), copies[1].register("second.calc")];
        let threads: Vec<_> = (0..4).map(|_| thread::spawn(move || use_both(copies))).collect();
        use_both(copies);
        for thread in threads {
            thread.join().expect("no thread fails");
        }
        assert_eq!((copies[0].remove)(handles[1]), STACKWEAVE_UNKNOWN_HANDLE);
        assert_eq!((copies[1].remove)(handles[1]), STACKWEAVE_OK);
        let still = interpret(1, || copies[0].capture());
        assert_eq!(files(&copies[0].json(still)), ["first.calc"], "only the other copy's source was removed");
        assert_eq!((copies[0].remove)(handles[0]), STACKWEAVE_OK);
        drop(libraries);
        for path in paths {
            std::fs::remove_file(path).expect("the file exists");
        }
    }
}

fn use_both(copies: [LibraryCopy; 2]) {
    let sources = ["first.calc", "second.calc"];
    for round in 0..50 {
        let stacks = interpret(round, || interpret(round + 1, || copies.map(|copy| copy.capture())));
        for index in [0, 1] {
            let json = copies[index].json(stacks[index]);
            assert_eq!(files(&json), [sources[index]; 2], "{json}");
            assert!(json.contains(&format!("word {round}")), "{json}");
            assert!(json.contains("use_both"), "{json}");
            assert!(!json.contains("\"stackweave_capture\""), "the library's own frames are omitted: {json}");
            assert_eq!((copies[index].release)(stacks[index]), STACKWEAVE_OK);
            assert_eq!((copies[1 - index].release)(stacks[index]), STACKWEAVE_UNKNOWN_STACK);
        }
    }
}

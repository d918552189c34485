//! A test interpreter that uses the C interface. Each thread has a list of running words.

use std::cell::RefCell;
use std::ffi::{CString, c_void};

use stackweave::{
    stackweave_frame_source, stackweave_location, stackweave_location_list, stackweave_source_walk, stackweave_status,
};

thread_local! {
    static RUNNING: RefCell<Vec<(u64, u64)>> = const { RefCell::new(Vec::new()) };
}

pub(crate) type AddLocation =
    unsafe extern "C" fn(*mut stackweave_location_list, *const stackweave_location) -> stackweave_status;

/// The data of the frame source.
pub(crate) struct Interpreter {
    pub(crate) file: CString,
    pub(crate) add_location: AddLocation,
}

impl Interpreter {
    /// Creates an interpreter and leaks it, so that callbacks can always use it.
    pub(crate) fn new(file: &str, add_location: AddLocation) -> &'static Self {
        Box::leak(Box::new(Self { file: CString::new(file).expect("no null byte"), add_location }))
    }

    pub(crate) fn source(&'static self) -> stackweave_frame_source {
        stackweave_frame_source {
            size: size_of::<stackweave_frame_source>(),
            data: std::ptr::from_ref(self).cast_mut().cast(),
            walk: Some(walk),
            locate: Some(locate),
        }
    }
}

unsafe extern "C" fn walk(_data: *mut c_void, walk: *mut stackweave_source_walk) -> usize {
    // SAFETY: the library passes a walk with room for `capacity` frames.
    let walk = unsafe { &mut *walk };
    RUNNING.with_borrow(|running| {
        let count = running.len().min(walk.capacity);
        for (index, (word, activation)) in running.iter().rev().take(count).enumerate() {
            // SAFETY: index < capacity.
            unsafe {
                walk.words.add(index).write(*word);
                walk.activations.add(index).write(*activation);
            }
        }
        walk.is_cut = count < running.len();
        count
    })
}

unsafe extern "C" fn locate(data: *mut c_void, word: u64, locations: *mut stackweave_location_list) {
    // SAFETY: the data of `source`.
    let interpreter = unsafe { &*data.cast::<Interpreter>() };
    let name = CString::new(format!("word {word}")).expect("no null byte");
    let location = stackweave_location {
        size: size_of::<stackweave_location>(),
        name: name.as_ptr(),
        qualname: std::ptr::null(),
        filename: interpreter.file.as_ptr(),
        line: word as u32,
        column: 3,
        end_line: 0,
        end_column: 0,
    };
    // SAFETY: the list that the library passed, and a location whose strings are alive.
    let status = unsafe { (interpreter.add_location)(locations, &raw const location) };
    assert_eq!(status, stackweave_status::STACKWEAVE_OK);
}

/// Runs `body` in an interpreter frame of `word`.
#[inline(never)]
pub(crate) fn interpret<R>(word: u64, body: impl FnOnce() -> R) -> R {
    let here = 0_u8;
    RUNNING.with_borrow_mut(|running| running.push((word, (&raw const here).addr() as u64)));
    let result = body();
    RUNNING.with_borrow_mut(Vec::pop);
    std::hint::black_box(&here);
    result
}

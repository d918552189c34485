//! The allocations of a library of the program are recorded through the library's own calls: to the byte, with the
//! stack that allocated.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, reason = "a failure fails the test")]

use std::ffi::{CStr, c_void};
use std::mem::{transmute, zeroed};
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use stackweave_capture::stacks;
use stackweave_core::{NoNames, RawFrame, RawFrameKind, StackId};
use stackweave_heap::Figures;
use stackweave_memory::{MemoryMode, MemoryOptions, MemoryRecorder};
use stackweave_recording::{Recorder, RecorderOptions};
use stackweave_store::locate_label;
use stackweave_testkit::fixtures::KNOWN_AMOUNTS;
use stackweave_testkit::folder::Folder;
use stackweave_testkit::library::Library;

/// A process records memory once at a time, and tests may run in parallel.
static EXCLUSIVE: Mutex<()> = Mutex::new(());

/// The functions of `known_amounts.c`.
struct KnownAmounts {
    churn: unsafe extern "C" fn(u64, u64),
    hold: unsafe extern "C" fn(*mut *mut c_void, u64, u64),
    drop: unsafe extern "C" fn(*mut *mut c_void, u64),
    grow: unsafe extern "C" fn(u64, u64) -> *mut c_void,
    each: unsafe extern "C" fn() -> i32,
    _library: Library,
}

impl KnownAmounts {
    fn open() -> Self {
        let library = Library::open(KNOWN_AMOUNTS).unwrap();
        // SAFETY: the functions have these types.
        unsafe {
            Self {
                churn: transmute::<*mut c_void, unsafe extern "C" fn(u64, u64)>(library.symbol("sw_churn")),
                hold: transmute::<*mut c_void, unsafe extern "C" fn(*mut *mut c_void, u64, u64)>(
                    library.symbol("sw_hold"),
                ),
                drop: transmute::<*mut c_void, unsafe extern "C" fn(*mut *mut c_void, u64)>(library.symbol("sw_drop")),
                grow: transmute::<*mut c_void, unsafe extern "C" fn(u64, u64) -> *mut c_void>(
                    library.symbol("sw_grow"),
                ),
                each: transmute::<*mut c_void, unsafe extern "C" fn() -> i32>(library.symbol("sw_each")),
                _library: library,
            }
        }
    }
}

struct Running {
    _exclusive: MutexGuard<'static, ()>,
    _folder: Folder,
    recorder: Recorder,
    memory: MemoryRecorder,
}

fn start(options: MemoryOptions) -> Running {
    let exclusive = EXCLUSIVE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = Folder::new();
    let (file, observer) = (RecorderOptions::new(folder.file("out.swv")), MemoryRecorder::observer(&options));
    let recorder = Recorder::start_observed(file, stacks(), Arc::new(NoNames), Some(observer)).unwrap();
    let memory = MemoryRecorder::start(recorder.clone(), options).unwrap();
    Running { _exclusive: exclusive, _folder: folder, recorder, memory }
}

/// Returns the name of the function of the innermost frame, if it is one of the library's.
fn function(stack: StackId) -> Option<String> {
    let innermost: RawFrame = stacks().frames(stack).next()?;
    let RawFrameKind::Native(native) = innermost.kind() else { return None };
    // SAFETY: all zeros are a valid value, which the call replaces; the names live while the library is loaded.
    unsafe {
        let mut found: libc::Dl_info = zeroed();
        let address = ptr::without_provenance(usize::try_from(native.lookup()).unwrap());
        let is_ours = libc::dladdr(address, &raw mut found) != 0
            && CStr::from_ptr(found.dli_fname).to_string_lossy() == KNOWN_AMOUNTS
            && !found.dli_sname.is_null();
        is_ours.then(|| CStr::from_ptr(found.dli_sname).to_string_lossy().into_owned())
    }
}

/// Returns the sums of what a function of the library has allocated, by one allocator or by all.
fn of(memory: &MemoryRecorder, name: &str, allocator: Option<&str>) -> Figures {
    let snapshot = memory.snapshot().unwrap();
    let mut sums = Figures::default();
    for row in &snapshot.devices[0].rows {
        let allocator_name = row.allocator.and_then(locate_label).map(|label| label.name.to_string());
        if allocator.is_none_or(|wanted| allocator_name.as_deref() == Some(wanted))
            && row.stack.and_then(function).as_deref() == Some(name)
        {
            sums.allocations += row.figures.allocations;
            sums.bytes += row.figures.bytes;
            sums.live_blocks += row.figures.live_blocks;
            sums.live_bytes += row.figures.live_bytes;
            sums.peak_bytes += row.figures.peak_bytes;
            sums.temporary += row.figures.temporary;
        }
    }
    sums
}

fn allocations(figures: &Figures) -> (u64, u64) {
    (figures.allocations, figures.bytes)
}

#[test]
fn every_byte_of_a_library_is_recorded_with_its_function() {
    let library = KnownAmounts::open();
    for mode in [MemoryMode::History, MemoryMode::Aggregate] {
        let mut blocks = vec![ptr::null_mut(); 100];
        let running = start(MemoryOptions { mode, ..MemoryOptions::default() });
        let memory = &running.memory;
        // SAFETY: as these functions are meant to be called.
        unsafe {
            (library.churn)(10_000, 48);
            (library.hold)(blocks.as_mut_ptr(), 100, 1 << 20);
            (library.drop)(blocks.as_mut_ptr(), 60);
        }
        let (churn, hold) = (of(memory, "sw_churn", None), of(memory, "sw_hold", None));
        assert_eq!((allocations(&churn), churn.live_blocks, churn.temporary), ((10_000, 480_000), 0, 10_000));
        assert_eq!((allocations(&hold), hold.live_blocks), ((100, 100 << 20), 40));
        assert_eq!((hold.live_bytes, hold.peak_bytes), (40 << 20, 100 << 20));
        let origin = memory.block(blocks[99].addr() as u64).unwrap();
        assert_eq!((origin.size, origin.stack.and_then(function).as_deref()), (1 << 20, Some("sw_hold")));
        assert!(memory.block(blocks[0].addr() as u64).is_none_or(|origin| origin.size != 1 << 20));
        memory.stop();
        // SAFETY: as above; these frees are not recorded.
        unsafe { (library.drop)(blocks[60..].as_mut_ptr(), 40) };
        running.recorder.stop();
        assert_eq!(of(memory, "sw_hold", None).live_blocks, 40, "queries are answered after the end, too");
    }
}

#[test]
fn every_function_that_a_library_calls_reaches_its_hook() {
    let library = KnownAmounts::open();
    let running = start(MemoryOptions::default());
    let memory = &running.memory;
    // SAFETY: as these functions are meant to be called.
    unsafe {
        assert_eq!((library.each)(), 0);
        let grown = (library.grow)(100, 50);
        (library.drop)([grown].as_mut_ptr(), 1);
    }
    let expected = [
        ("malloc", 1000),
        ("calloc", 1001),
        ("realloc", 1002),
        ("reallocarray", 1003),
        ("posix_memalign", 1004),
        ("aligned_alloc", 1024),
        ("memalign", 1006),
        ("valloc", 1007),
        ("mmap", 8192),
        ("mremap", 40_960),
    ];
    for (name, size) in expected {
        let allocated = of(memory, "sw_each", Some(name));
        assert_eq!((allocations(&allocated), allocated.live_blocks), ((1, size), 0), "{name}");
    }
    let grown = of(memory, "sw_grow", Some("realloc"));
    assert_eq!((allocations(&grown), grown.live_blocks), ((100, 50 * 5050), 0));
    let stats = memory.stats();
    assert!(stats.slots > 0 && stats.modules > 1, "{stats:?}");
    memory.stop();
    running.recorder.stop();
}

#[test]
fn sampled_figures_of_a_library_are_near_the_truth() {
    let library = KnownAmounts::open();
    let mode = MemoryMode::Sampled { every: 10_000 };
    let running = start(MemoryOptions { mode, ..MemoryOptions::default() });
    // SAFETY: as the function is meant to be called.
    unsafe { (library.churn)(200_000, 100) };
    let churn = of(&running.memory, "sw_churn", None);
    // 2,000 samples: sigma is 45 of them, 450 KB.
    assert!(churn.bytes.abs_diff(20_000_000) < 6 * 450_000, "{churn:?}");
    assert_eq!(churn.live_bytes, 0);
    running.memory.stop();
    running.recorder.stop();
}

//! Memory recordings of hosts, and the events of their allocators.
#![expect(clippy::expect_used, reason = "a test that cannot do its work must fail")]

mod common;

use std::ffi::{CStr, CString};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use common::{INCLUDE, compilers, example, library_folder, run, static_library, workshop};
use stackweave::stackweave_host_event_kind::{STACKWEAVE_HOST_ALLOCATE, STACKWEAVE_HOST_FREE};
use stackweave::stackweave_status::{STACKWEAVE_BAD_ARGUMENT, STACKWEAVE_BUSY, STACKWEAVE_NO_RECORDING, STACKWEAVE_OK};
use stackweave::{
    STACKWEAVE_MEMORY_AGGREGATE, STACKWEAVE_MEMORY_NO_MAPPINGS, STACKWEAVE_MEMORY_OVERWRITE, stackweave_host_block,
    stackweave_last_error, stackweave_memory_get_usage, stackweave_memory_options, stackweave_memory_pause,
    stackweave_memory_resume, stackweave_memory_start, stackweave_memory_stop, stackweave_memory_usage,
    stackweave_memory_write_snapshot, stackweave_record_allocate, stackweave_record_free, stackweave_record_host_event,
    stackweave_record_segment_allocate, stackweave_record_segment_free, stackweave_status,
};
use stackweave_profile::memory::{DeviceUsage, MemoryQuery, MemoryUsage, UsageSource, read_usage};
use stackweave_recording::Recording;
use stackweave_recording::file::RecordedFrame;

/// Serializes the tests, because a process has one recording at a time.
static RECORDING: Mutex<()> = Mutex::new(());

fn lock_recording() -> MutexGuard<'static, ()> {
    RECORDING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the path of a new file for this process.
fn file(name: &str) -> PathBuf {
    let path = workshop("memory").join(format!("{}-{name}.swv", std::process::id()));
    let _ = std::fs::remove_file(&path);
    path
}

fn start(path: &Path, mode: u32, flags: u32) -> stackweave_status {
    let path = CString::new(path.display().to_string()).expect("no zeros");
    let size = size_of::<stackweave_memory_options>();
    let options = stackweave_memory_options { size, mode, flags, ..stackweave_memory_options::default() };
    // SAFETY: the string and the options are alive.
    unsafe { stackweave_memory_start(path.as_ptr(), &raw const options) }
}

fn block(address: u64, bytes: u64, device: i64) -> stackweave_host_block {
    stackweave_host_block { address, bytes, device, stream: 3, pool: 4, ..stackweave_host_block::default() }
}

fn free(block: &stackweave_host_block) -> stackweave_status {
    // SAFETY: a complete block.
    unsafe { stackweave_record_free(block) }
}

fn usage(device: i64) -> stackweave_memory_usage {
    let size = size_of::<stackweave_memory_usage>();
    let mut usage = stackweave_memory_usage { size, ..stackweave_memory_usage::default() };
    // SAFETY: the size is set.
    assert_eq!(unsafe { stackweave_memory_get_usage(device, &raw mut usage) }, STACKWEAVE_OK);
    usage
}

fn last_error() -> String {
    // SAFETY: the string of this thread.
    unsafe { CStr::from_ptr(stackweave_last_error()) }.to_string_lossy().into_owned()
}

fn read(path: &Path) -> (Recording, MemoryUsage) {
    let recording = Recording::open(path).expect("the recording opens");
    assert_eq!(recording.report(), Vec::<String>::new());
    let usage =
        read_usage(&recording.processes()[0], &MemoryQuery::default(), &mut |_| {}).expect("the recording is complete");
    (recording, usage)
}

fn device(usage: &MemoryUsage, device: i64) -> &DeviceUsage {
    usage.devices.iter().find(|known| known.device == device).expect("the device has events")
}

/// Allocates a block, as the allocator of a host does. Has its own frame on the stack.
#[inline(never)]
extern "C" fn allocate(block: &stackweave_host_block) -> stackweave_status {
    // SAFETY: a complete block.
    let status = unsafe { stackweave_record_allocate(block) };
    std::hint::black_box(&status);
    status
}

#[test]
fn blocks_of_a_host_are_recorded_with_their_stacks() {
    let _lock = lock_recording();
    let path = file("blocks");
    assert_eq!(start(&path, 0, 0), STACKWEAVE_OK);
    let blocks: Vec<_> = (0..100).map(|number| block(0x1000 + number * 64, 64, 0)).collect();
    assert!(blocks.iter().all(|block| allocate(block) == STACKWEAVE_OK));
    assert!(blocks[..60].iter().all(|block| free(block) == STACKWEAVE_OK));
    assert_eq!(allocate(&block(0x1000, 4096, 7)), STACKWEAVE_OK, "the same address on another device");
    let (own, other) = (usage(0), usage(7));
    assert_eq!((own.allocations, own.bytes, own.frees), (100, 6400, 60));
    assert_eq!((own.live_blocks, own.live_bytes, own.peak_bytes), (40, 2560, 6400));
    assert_eq!((other.live_bytes, usage(3).allocations), (4096, 0));
    assert_eq!(stackweave_memory_pause(), STACKWEAVE_OK);
    assert_eq!((allocate(&block(0x9000, 1, 0)), free(&blocks[99])), (STACKWEAVE_OK, STACKWEAVE_OK));
    assert_eq!(stackweave_memory_resume(), STACKWEAVE_OK);
    assert_eq!(stackweave_memory_stop(), STACKWEAVE_OK);
    assert_eq!(allocate(&blocks[0]), STACKWEAVE_OK, "nothing is recorded");
    let (recording, usage) = read(&path);
    let figures = device(&usage, 0).totals.figures;
    assert_eq!((figures.allocations, figures.live_blocks, figures.peak_bytes), (100, 39, 6400));
    assert_eq!(device(&usage, 7).totals.figures.live_bytes, 4096);
    let dictionary = recording.processes()[0].dictionary();
    let row = device(&usage, 0).rows.iter().max_by_key(|row| row.figures.allocations).expect("a row");
    let innermost = dictionary.frames_of(row.stack).next().and_then(|frame| dictionary.frame(frame));
    let Some(RecordedFrame::Native { address, .. }) = innermost else { panic!("{innermost:?}") };
    let function = allocate as *const () as u64;
    assert!((function..function + 4096).contains(&address.lookup()), "{address:?} {function:x}");
    std::fs::remove_file(path).expect("the file exists");
}

#[test]
fn segments_do_not_count_as_memory() {
    let _lock = lock_recording();
    let path = file("segments");
    assert_eq!(start(&path, 0, STACKWEAVE_MEMORY_NO_MAPPINGS), STACKWEAVE_OK);
    let (segment, block) = (block(0x10_0000, 1 << 20, 0), block(0x10_0000, 512, 0));
    // SAFETY: complete blocks.
    unsafe {
        assert_eq!(stackweave_record_segment_allocate(&raw const segment), STACKWEAVE_OK);
        assert_eq!(allocate(&block), STACKWEAVE_OK);
        assert_eq!((usage(0).live_bytes, usage(0).live_blocks), (512, 1));
        assert_eq!(free(&block), STACKWEAVE_OK);
        assert_eq!(stackweave_record_segment_free(&raw const segment), STACKWEAVE_OK);
    }
    assert_eq!((usage(0).live_bytes, usage(0).unknown_frees), (0, 0));
    assert_eq!(stackweave_memory_stop(), STACKWEAVE_OK);
    let (recording, _) = read(&path);
    let dictionary = recording.processes()[0].dictionary();
    let mut kinds = Vec::new();
    let visited = recording.visit_in_time_order(None, &mut |_| {}, &mut |timed| {
        kinds.extend(dictionary.kind(timed.event.kind).map(|kind| kind.name.to_string()));
        ControlFlow::Continue(())
    });
    assert!(visited.is_ok());
    let is_host_kind = |kind: &&String| ["segment", "segment-free", "host-allocate", "host-free"].contains(&&***kind);
    assert_eq!(
        kinds.iter().filter(is_host_kind).collect::<Vec<_>>(),
        ["segment", "host-allocate", "host-free", "segment-free"]
    );
    std::fs::remove_file(path).expect("the file exists");
}

fn record(kind: u32, block: &stackweave_host_block) -> stackweave_status {
    // SAFETY: a block whose size is correct, without a text.
    unsafe { stackweave_record_host_event(kind, block, ptr::null()) }
}

#[test]
fn host_events_are_recorded_by_their_number() {
    let _lock = lock_recording();
    let path = file("host-event");
    assert_eq!(start(&path, 0, STACKWEAVE_MEMORY_NO_MAPPINGS), STACKWEAVE_OK);
    // SAFETY: null is rejected.
    assert_eq!(unsafe { stackweave_record_host_event(1, ptr::null(), ptr::null()) }, STACKWEAVE_BAD_ARGUMENT);
    let complete = block(0x1000, 64, 2);
    assert_eq!([0, 19, u32::MAX].map(|kind| record(kind, &complete)), [STACKWEAVE_BAD_ARGUMENT; 3]);
    let first = std::mem::offset_of!(stackweave_host_block, text);
    assert_eq!(record(1, &stackweave_host_block { size: first - 8, ..complete }), STACKWEAVE_BAD_ARGUMENT);
    assert_eq!(usage(2).allocations, 0);
    assert_eq!(
        record(STACKWEAVE_HOST_ALLOCATE as u32, &stackweave_host_block { size: first, ..complete }),
        STACKWEAVE_OK
    );
    assert_eq!((usage(2).live_blocks, usage(2).live_bytes), (1, 64));
    assert_eq!(record(STACKWEAVE_HOST_FREE as u32, &complete), STACKWEAVE_OK);
    assert_eq!((usage(2).live_blocks, usage(2).frees), (0, 1));
    assert_eq!(stackweave_memory_stop(), STACKWEAVE_OK);
    std::fs::remove_file(path).expect("the file exists");
}

#[test]
fn an_aggregate_recording_has_figures_and_no_events() {
    let _lock = lock_recording();
    let path = file("aggregate");
    assert_eq!(start(&path, STACKWEAVE_MEMORY_AGGREGATE, 0), STACKWEAVE_OK);
    for round in 0..10_000_u64 {
        let block = block(0x1000 + round % 8 * 64, 32, 0);
        assert_eq!((allocate(&block), free(&block)), (STACKWEAVE_OK, STACKWEAVE_OK));
    }
    assert_eq!(allocate(&block(0x5000, 100, 0)), STACKWEAVE_OK);
    assert_eq!(stackweave_memory_write_snapshot(), STACKWEAVE_OK);
    assert_eq!(stackweave_memory_stop(), STACKWEAVE_OK);
    let (recording, usage) = read(&path);
    assert_eq!(usage.source, UsageSource::Snapshot);
    let figures = device(&usage, 0).totals.figures;
    assert_eq!((figures.allocations, figures.live_bytes, figures.peak_bytes), (10_001, 100, 100));
    assert!(recording.processes()[0].dictionary().kinds().all(|(_, kind)| kind.name != "host-allocate"));
    std::fs::remove_file(path).expect("the file exists");
}

#[test]
fn invalid_calls_return_errors() {
    let _lock = lock_recording();
    let none = [stackweave_memory_stop(), stackweave_memory_write_snapshot(), stackweave_memory_pause()];
    assert_eq!(none, [STACKWEAVE_NO_RECORDING; 3]);
    assert!(last_error().contains("not being recorded"), "{}", last_error());
    // SAFETY: null, or a complete structure.
    unsafe {
        assert_eq!(stackweave_memory_start(ptr::null(), ptr::null()), STACKWEAVE_BAD_ARGUMENT);
        assert_eq!(stackweave_record_allocate(ptr::null()), STACKWEAVE_BAD_ARGUMENT);
        let short = stackweave_host_block { size: 8, ..block(1, 1, 0) };
        assert_eq!(stackweave_record_free(&raw const short), STACKWEAVE_BAD_ARGUMENT);
        assert_eq!(stackweave_record_segment_allocate(ptr::null()), STACKWEAVE_BAD_ARGUMENT);
    }
    let path = file("refused");
    assert_eq!((start(&path, 9, 0), start(&path, 0, 1 << 20)), (STACKWEAVE_BAD_ARGUMENT, STACKWEAVE_BAD_ARGUMENT));
    assert_eq!(start(Path::new("/missing/folder/memory.swv"), 0, 0), STACKWEAVE_NO_RECORDING);
    assert!(last_error().contains("its folder does not exist"), "{}", last_error());
    assert_eq!(start(&path, 0, 0), STACKWEAVE_OK);
    assert_eq!(start(&file("second"), 0, 0), STACKWEAVE_BUSY);
    assert!(last_error().contains("recorded already"), "{}", last_error());
    let mut no_size = stackweave_memory_usage::default();
    // SAFETY: a structure whose size is 0.
    assert_eq!(unsafe { stackweave_memory_get_usage(0, &raw mut no_size) }, STACKWEAVE_BAD_ARGUMENT);
    assert_eq!(stackweave_memory_stop(), STACKWEAVE_OK);
    assert_eq!(start(&path, 0, 0), STACKWEAVE_NO_RECORDING, "the file exists");
    assert_eq!(start(&path, 0, STACKWEAVE_MEMORY_OVERWRITE), STACKWEAVE_OK);
    assert_eq!(stackweave_memory_stop(), STACKWEAVE_OK);
    std::fs::remove_file(path).expect("the file exists");
}

#[test]
fn the_c_allocator_records_its_devices_linked_dynamically_and_statically() {
    let folder = library_folder();
    let dynamic_link =
        [format!("-L{}", folder.display()), "-lstackweave".into(), format!("-Wl,-rpath,{}", folder.display())];
    let static_link = [static_library().display().to_string(), "-pthread".to_owned(), "-ldl".into(), "-lm".into()];
    let compiler = compilers(&["gcc", "clang"])[0];
    for (name, link) in [("dynamic", &dynamic_link[..]), ("static", &static_link[..])] {
        let program = workshop("c-allocator").join(name);
        let mut command = Command::new(compiler);
        command.args(["-Wall", "-Wextra", "-Werror", "-pedantic", "-std=c11", "-O2", "-g", "-pthread", "-I", INCLUDE]);
        command.arg(example("c-allocator").join("main.c")).arg("-o").arg(&program).args(link);
        run(&mut command);
        let path = file(name);
        let text = run(Command::new(&program).arg(&path));
        let expected = "device 0: 201 blocks allocated, 200 freed, 4096 bytes live, 7168 at the peak\n\
                        device 1: 401 blocks allocated, 400 freed, 4096 bytes live, 7168 at the peak\n";
        assert_eq!(text, expected, "{name}");
        let (_, usage) = read(&path);
        let live = |number| device(&usage, number).totals.figures.live_bytes;
        assert_eq!((live(0), live(1)), (4096, 0), "{name}");
        assert_eq!(device(&usage, 0).rows.len(), 3, "weights, activations, gradients");
        std::fs::remove_file(path).expect("the file exists");
        assert_eq!(run(&mut Command::new(&program)), "", "it also runs without a recording");
    }
}

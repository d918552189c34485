//! Hosts of one copy of the library, in a process where another copy records.
#![expect(clippy::expect_used, reason = "a test that cannot do its work must fail")]

mod common;

use std::ffi::{CString, c_char, c_int, c_void};
use std::mem::transmute;
use std::path::Path;
use std::process::Command;
use std::ptr;
use std::sync::{Mutex, PoisonError};

use common::{compilers, run, shared_library, workshop};
use stackweave::stackweave_status::{self, STACKWEAVE_BUSY, STACKWEAVE_OK};
use stackweave::{stackweave_host_block, stackweave_memory_usage};
use stackweave_testkit::library::Library;

/// Serializes the tests, because a process has one recording at a time.
static RECORDING: Mutex<()> = Mutex::new(());

/// The functions of one copy of the library.
#[derive(Clone, Copy)]
struct LibraryCopy {
    alloc: unsafe extern "C" fn(*const stackweave_host_block) -> stackweave_status,
    free: unsafe extern "C" fn(*const stackweave_host_block) -> stackweave_status,
    start: unsafe extern "C" fn(*const c_char, *const c_void) -> stackweave_status,
    stop: extern "C" fn() -> stackweave_status,
    usage: unsafe extern "C" fn(i64, *mut stackweave_memory_usage) -> stackweave_status,
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
                alloc: transmute(symbol("stackweave_record_allocate")),
                free: transmute(symbol("stackweave_record_free")),
                start: transmute(symbol("stackweave_memory_start")),
                stop: transmute(symbol("stackweave_memory_stop")),
                usage: transmute(symbol("stackweave_memory_get_usage")),
            }
        }
    }

    fn alloc(&self, address: u64, bytes: u64) -> stackweave_status {
        let block = block(address, bytes);
        // SAFETY: a complete block.
        unsafe { (self.alloc)(&raw const block) }
    }

    fn free(&self, address: u64) -> stackweave_status {
        let block = block(address, 0);
        // SAFETY: a complete block.
        unsafe { (self.free)(&raw const block) }
    }

    fn start(&self, path: &Path) -> stackweave_status {
        let path = CString::new(path.display().to_string()).expect("no zeros");
        // SAFETY: a string, and null for the default options.
        unsafe { (self.start)(path.as_ptr(), ptr::null()) }
    }

    fn live_bytes(&self) -> u64 {
        let size = size_of::<stackweave_memory_usage>();
        let mut usage = stackweave_memory_usage { size, ..stackweave_memory_usage::default() };
        // SAFETY: the size is set.
        assert_eq!(unsafe { (self.usage)(0, &raw mut usage) }, STACKWEAVE_OK);
        usage.live_bytes
    }
}

fn block(address: u64, bytes: u64) -> stackweave_host_block {
    stackweave_host_block { address, bytes, stream: 1, pool: 2, ..stackweave_host_block::default() }
}

/// Loads a copy of the library that only this process has.
fn copy(name: &str) -> Library {
    let path = workshop("memory-sinks").join(format!("{}-{name}.so", std::process::id()));
    std::fs::copy(shared_library(), &path).expect("the folder is writable");
    let library = Library::open(&path.display().to_string()).expect("a copy of the library loads");
    std::fs::remove_file(path).expect("the file exists");
    library
}

#[test]
fn events_of_one_copys_hosts_are_recorded_by_the_other_copy() {
    let _lock = RECORDING.lock().unwrap_or_else(PoisonError::into_inner);
    let libraries = [copy("first"), copy("second")];
    let [recording, host] = [LibraryCopy::of(&libraries[0]), LibraryCopy::of(&libraries[1])];
    let folder = workshop("memory-sinks");
    let paths = ["one", "two", "three"].map(|name| folder.join(format!("{}-{name}.swv", std::process::id())));
    assert_eq!(host.alloc(0x1000, 1), STACKWEAVE_OK, "nothing is recorded");
    assert_eq!(recording.start(&paths[0]), STACKWEAVE_OK);
    assert_eq!((host.alloc(0x2000, 64), recording.alloc(0x3000, 32)), (STACKWEAVE_OK, STACKWEAVE_OK));
    assert_eq!(recording.live_bytes(), 96);
    assert_eq!(host.start(&paths[1]), STACKWEAVE_BUSY, "a process has one recorder");
    assert_eq!(host.free(0x2000), STACKWEAVE_OK);
    assert_eq!(recording.live_bytes(), 32);
    assert_eq!((recording.stop)(), STACKWEAVE_OK);
    assert_eq!(host.alloc(0x4000, 1), STACKWEAVE_OK, "nothing is recorded");
    assert_eq!(host.start(&paths[2]), STACKWEAVE_OK, "the other copy has stopped");
    assert_eq!(recording.alloc(0x5000, 8), STACKWEAVE_OK);
    assert_eq!(host.live_bytes(), 8);
    assert_eq!((host.stop)(), STACKWEAVE_OK);
    for path in [&paths[0], &paths[2]] {
        std::fs::remove_file(path).expect("the file exists");
    }
}

/// A module that records memory itself, as that of the Python package does. It counts the events that it receives.
const PROVIDER: &str = r"
#include <stddef.h>
#include <stdint.h>

struct block { size_t size; uint64_t address, bytes; int64_t device; uint64_t stream, pool; };
struct sink { size_t size; void (*record)(uint32_t kind, const struct block *block, uintptr_t stack_address); };

int is_recording;
uint64_t counts[4], sum;
uintptr_t depth;

static void record(uint32_t kind, const struct block *block, uintptr_t stack_address)
{
    char here;
    counts[kind - 1]++;
    sum += block->address + block->bytes + (uint64_t)block->device + block->stream + block->pool;
    depth = stack_address - (uintptr_t)&here;
}

static const struct sink sink = {sizeof sink, record};

const struct sink *stackweave_memory_sink(void) { return is_recording ? &sink : NULL; }
";

#[test]
fn a_copy_that_is_loaded_later_finds_the_recorder() {
    let _lock = RECORDING.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = workshop("memory-sinks");
    let [source, module] = ["c", "so"].map(|kind| folder.join(format!("{}-provider.{kind}", std::process::id())));
    std::fs::write(&source, PROVIDER).expect("the folder is writable");
    let compiler = compilers(&["gcc", "clang"])[0];
    run(Command::new(compiler).args(["-shared", "-fPIC", "-o"]).arg(&module).arg(&source));
    let provider = Library::open(&module.display().to_string()).expect("the module loads");
    let is_recording = provider.symbol("is_recording").cast::<c_int>();
    let before = copy("before");
    assert_eq!(LibraryCopy::of(&before).alloc(0x1000, 1), STACKWEAVE_OK, "the module does not record yet");
    // SAFETY: a variable of the module, which no other code uses.
    unsafe { is_recording.write(1) };
    let later = copy("later");
    let host = LibraryCopy::of(&later);
    assert_eq!((host.alloc(0x2000, 16), host.free(0x2000)), (STACKWEAVE_OK, STACKWEAVE_OK));
    // SAFETY: variables of the module, which no other code uses any more.
    unsafe {
        let counts = provider.symbol("counts").cast::<[u64; 4]>().read();
        assert_eq!(counts, [1, 1, 0, 0]);
        assert_eq!(provider.symbol("sum").cast::<u64>().read(), 2 * 0x2000 + 16 + 2 * 3);
        let depth = provider.symbol("depth").cast::<usize>().read();
        assert!((1..4096).contains(&depth), "an address in the frame of the function that the host calls: {depth}");
    }
    for path in [source, module] {
        std::fs::remove_file(path).expect("the file exists");
    }
}

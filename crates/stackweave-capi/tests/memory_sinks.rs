//! Hosts of one copy of the library in a process where another copy records.
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
use stackweave::{stackweave_block, stackweave_memory_usage};
use stackweave_testkit::library::Library;

/// What is recorded is the process's.
static ALONE: Mutex<()> = Mutex::new(());

/// The functions of one copy.
#[derive(Clone, Copy)]
struct Copied {
    alloc: unsafe extern "C" fn(*const stackweave_block) -> stackweave_status,
    free: unsafe extern "C" fn(*const stackweave_block) -> stackweave_status,
    start: unsafe extern "C" fn(*const c_char, *const c_void) -> stackweave_status,
    stop: extern "C" fn() -> stackweave_status,
    usage: unsafe extern "C" fn(i64, *mut stackweave_memory_usage) -> stackweave_status,
}

impl Copied {
    fn of(library: &Library) -> Self {
        let symbol = |name: &str| {
            let symbol = library.symbol(name);
            assert!(!symbol.is_null(), "{name}");
            symbol
        };
        #[expect(clippy::missing_transmute_annotations, reason = "the fields say the types")]
        // SAFETY: the signatures are those of the header.
        unsafe {
            Self {
                alloc: transmute(symbol("stackweave_alloc")),
                free: transmute(symbol("stackweave_free")),
                start: transmute(symbol("stackweave_memory_start")),
                stop: transmute(symbol("stackweave_memory_stop")),
                usage: transmute(symbol("stackweave_memory_get_usage")),
            }
        }
    }

    fn alloc(&self, address: u64, bytes: u64) -> stackweave_status {
        let block = block(address, bytes);
        // SAFETY: a whole block.
        unsafe { (self.alloc)(&raw const block) }
    }

    fn free(&self, address: u64) -> stackweave_status {
        let block = block(address, 0);
        // SAFETY: a whole block.
        unsafe { (self.free)(&raw const block) }
    }

    fn start(&self, path: &Path) -> stackweave_status {
        let path = CString::new(path.display().to_string()).expect("no zeros");
        // SAFETY: a string, and the options that everybody gets.
        unsafe { (self.start)(path.as_ptr(), ptr::null()) }
    }

    fn live_bytes(&self) -> u64 {
        let size = size_of::<stackweave_memory_usage>();
        let mut usage = stackweave_memory_usage { size, ..stackweave_memory_usage::default() };
        // SAFETY: its size is set.
        assert_eq!(unsafe { (self.usage)(0, &raw mut usage) }, STACKWEAVE_OK);
        usage.live_bytes
    }
}

fn block(address: u64, bytes: u64) -> stackweave_block {
    stackweave_block { address, bytes, stream: 1, pool: 2, ..stackweave_block::default() }
}

/// A copy of the library that is the process's own, by its name.
fn copy(name: &str) -> Library {
    let path = workshop("memory-sinks").join(format!("{}-{name}.so", std::process::id()));
    std::fs::copy(shared_library(), &path).expect("the folder can be written to");
    let library = Library::open(&path.display().to_string()).expect("a copy of the library loads");
    std::fs::remove_file(path).expect("it is ours");
    library
}

#[test]
fn what_hosts_of_one_copy_tell_is_recorded_by_the_other() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let libraries = [copy("first"), copy("second")];
    let [recording, telling] = [Copied::of(&libraries[0]), Copied::of(&libraries[1])];
    let folder = workshop("memory-sinks");
    let paths = ["one", "two", "three"].map(|name| folder.join(format!("{}-{name}.swv", std::process::id())));
    assert_eq!(telling.alloc(0x1000, 1), STACKWEAVE_OK, "nobody records");
    assert_eq!(recording.start(&paths[0]), STACKWEAVE_OK);
    assert_eq!((telling.alloc(0x2000, 64), recording.alloc(0x3000, 32)), (STACKWEAVE_OK, STACKWEAVE_OK));
    assert_eq!(recording.live_bytes(), 96);
    assert_eq!(telling.start(&paths[1]), STACKWEAVE_BUSY, "there is one recorder in the process");
    assert_eq!(telling.free(0x2000), STACKWEAVE_OK);
    assert_eq!(recording.live_bytes(), 32);
    assert_eq!((recording.stop)(), STACKWEAVE_OK);
    assert_eq!(telling.alloc(0x4000, 1), STACKWEAVE_OK, "nobody records");
    assert_eq!(telling.start(&paths[2]), STACKWEAVE_OK, "now it may");
    assert_eq!(recording.alloc(0x5000, 8), STACKWEAVE_OK);
    assert_eq!(telling.live_bytes(), 8);
    assert_eq!((telling.stop)(), STACKWEAVE_OK);
    for path in [&paths[0], &paths[2]] {
        std::fs::remove_file(path).expect("it is ours");
    }
}

/// A module that records memory itself, as the Python package's does: it counts what it is told.
const PROVIDER: &str = r"
#include <stddef.h>
#include <stdint.h>

struct block { size_t size; uint64_t address, bytes; int64_t device; uint64_t stream, pool; };
struct sink { size_t size; void (*tell)(uint32_t what, const struct block *block, uintptr_t place); };

int is_recording;
uint64_t told[4], sum;
uintptr_t depth;

static void tell(uint32_t what, const struct block *block, uintptr_t place)
{
    char here;
    told[what - 1]++;
    sum += block->address + block->bytes + (uint64_t)block->device + block->stream + block->pool;
    depth = place - (uintptr_t)&here;
}

static const struct sink sink = {sizeof sink, tell};

const struct sink *stackweave_memory_sink(void) { return is_recording ? &sink : NULL; }
";

#[test]
fn a_copy_that_is_loaded_later_finds_who_records() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = workshop("memory-sinks");
    let [source, module] = ["c", "so"].map(|kind| folder.join(format!("{}-provider.{kind}", std::process::id())));
    std::fs::write(&source, PROVIDER).expect("our own folder");
    let compiler = compilers(&["gcc", "clang"])[0];
    run(Command::new(compiler).args(["-shared", "-fPIC", "-o"]).arg(&module).arg(&source));
    let provider = Library::open(&module.display().to_string()).expect("it was just built");
    let is_recording = provider.symbol("is_recording").cast::<c_int>();
    let before = copy("before");
    assert_eq!(Copied::of(&before).alloc(0x1000, 1), STACKWEAVE_OK, "the module does not record yet");
    // SAFETY: its own variable, which nobody else touches.
    unsafe { is_recording.write(1) };
    let later = copy("later");
    let telling = Copied::of(&later);
    assert_eq!((telling.alloc(0x2000, 16), telling.free(0x2000)), (STACKWEAVE_OK, STACKWEAVE_OK));
    // SAFETY: its own variables, which nobody touches any more.
    unsafe {
        let told = provider.symbol("told").cast::<[u64; 4]>().read();
        assert_eq!(told, [1, 1, 0, 0]);
        assert_eq!(provider.symbol("sum").cast::<u64>().read(), 2 * 0x2000 + 16 + 2 * 3);
        let depth = provider.symbol("depth").cast::<usize>().read();
        assert!((1..4096).contains(&depth), "an address in the frame of the function that the host calls: {depth}");
    }
    for path in [source, module] {
        std::fs::remove_file(path).expect("it is ours");
    }
}

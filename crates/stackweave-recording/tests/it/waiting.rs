//! A thread that waits for room never waits for ever: the writer may need a lock that this very thread holds, and there may be
//! no memory.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;
use std::{fs, thread};

use stackweave_core::{CodeAddress, ModuleList, Names, RawFrame, SourceLocation};
use stackweave_recording::file::LossReason;
use stackweave_recording::live::{Options, Recorder};
use stackweave_testkit::child;

use crate::recorded::{Read, STACKS, mark, start};

const CHUNK: usize = 64 * 1024;
/// More than a buffer holds.
const MANY: u64 = 12_000;

/// A process whose list of modules is behind a lock, as the loader's is.
struct Locked(Arc<Mutex<()>>);

impl Names for Locked {
    fn locate(&self, _: RawFrame) -> Option<SourceLocation> {
        None
    }

    fn has_extra_frames(&self) -> bool {
        false
    }

    fn frames_behind(&self, _: &str, _: u32) -> Vec<SourceLocation> {
        Vec::new()
    }

    fn modules(&self) -> ModuleList {
        let _list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ModuleList::new(Vec::new())
    }
}

#[test]
fn a_thread_that_holds_what_the_writer_needs_goes_on() {
    let folder = child::in_own_process("waiting::a_thread_that_holds_what_the_writer_needs_goes_on", |folder| {
        let list = Arc::new(Mutex::new(()));
        let options = Options { memory: CHUNK, ..Options::new(folder.join("out.swv")) };
        let recorder = Recorder::start(options, &STACKS, Arc::new(Locked(Arc::clone(&list)))).unwrap();
        let mark = mark(&recorder);
        let held = list.lock().unwrap();
        // The first event has a frame whose module the writer looks up, and every buffer needs room then.
        recorder.instant(RawFrame::native(CodeAddress::instruction_pointer(0x1234)), None);
        (0..MANY).for_each(|which| recorder.record(mark, &[0, which]));
        drop(held);
        let summary = recorder.stop();
        assert_eq!((summary.events, summary.lost.len()), (MANY + 1, 0));
    });
    if let Some(folder) = folder {
        assert_eq!(Read::whole(&folder.file("out.swv")).marks()[&0].len() as u64, MANY);
    }
}

/// Lets this process have so many bytes of address space more.
fn limit_address_space(more: u64) {
    let pages: u64 = fs::read_to_string("/proc/self/statm").unwrap().split(' ').next().unwrap().parse().unwrap();
    // SAFETY: has no conditions.
    let page = u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap();
    let limit = libc::rlimit { rlim_cur: pages * page + more, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: a valid limit.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) }, 0);
}

fn record_without_memory(folder: &Path) {
    let recorder = start(Options { memory: 4 * CHUNK, ..Options::new(folder.join("out.swv")) });
    let mark = mark(&recorder);
    recorder.record(mark, &[0, 0]);
    let (go, wait) = mpsc::channel::<()>();
    let (tell, told) = mpsc::channel();
    let other = thread::spawn({
        let recorder = recorder.clone();
        move || {
            // Whatever the channels and this thread need of the allocator, they have before memory is short.
            wait.recv().unwrap();
            tell.send(()).unwrap();
            wait.recv().unwrap();
            (0..10).for_each(|which| recorder.record(mark, &[1, which]));
            tell.send(()).unwrap();
            wait.recv().unwrap();
            recorder.record(mark, &[1, 10]);
        }
    });
    go.send(()).unwrap();
    told.recv().unwrap();
    recorder.flush().unwrap();
    // Enough for what a thread needs to be known, not enough for a buffer.
    limit_address_space(24 << 10);
    go.send(()).unwrap();
    told.recv_timeout(Duration::from_secs(40)).expect("a thread without memory goes on");
    // A thread that has a buffer gets it back from the writer.
    (1..MANY).for_each(|which| recorder.record(mark, &[0, which]));
    limit_address_space(1 << 30);
    go.send(()).unwrap();
    other.join().unwrap();
    let summary = recorder.stop();
    assert_eq!((summary.events, summary.lost.get(&LossReason::NoMemory)), (MANY + 1, Some(&10)), "{summary:?}");
}

#[test]
fn events_without_memory_are_counted_and_not_waited_for() {
    let name = "waiting::events_without_memory_are_counted_and_not_waited_for";
    if let Some(folder) = child::in_own_process(name, record_without_memory) {
        let read = Read::whole(&folder.file("out.swv"));
        let marks = read.marks();
        assert_eq!((marks[&0].len() as u64, &marks[&1][..]), (MANY, &[10][..]));
        let lost: Vec<_> = read.lost.iter().map(|lost| (lost.reason, lost.count)).collect();
        assert_eq!(lost, [(LossReason::NoMemory, 10)]);
    }
}

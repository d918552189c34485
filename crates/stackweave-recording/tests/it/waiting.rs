//! A thread never waits for a buffer forever: the writer may need a lock that this very thread holds, and there may be no memory.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;
use std::{fs, thread};

use stackweave_core::{CodeAddress, FrameNames, ModuleList, RawFrame, SourceLocation};
use stackweave_recording::file::LossReason;
use stackweave_recording::live::{Recorder, RecorderOptions};
use stackweave_testkit::child;

use crate::recorded::{ReadBack, STACKS, mark, start};

const CHUNK: usize = 64 * 1024;
/// More events than a buffer holds.
const MANY: u64 = 12_000;

/// A process whose list of modules is behind a lock, as the loader's is.
struct LockedNames(Arc<Mutex<()>>);

impl FrameNames for LockedNames {
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
fn a_thread_that_holds_a_lock_of_the_writer_continues() {
    let folder = child::in_own_process("waiting::a_thread_that_holds_a_lock_of_the_writer_continues", |folder| {
        let list = Arc::new(Mutex::new(()));
        let options = RecorderOptions { memory: CHUNK, ..RecorderOptions::new(folder.join("out.swv")) };
        let recorder = Recorder::start(options, &STACKS, Arc::new(LockedNames(Arc::clone(&list)))).unwrap();
        let mark = mark(&recorder);
        let held = list.lock().unwrap();
        // The writer looks up the module of the first event's frame, so it can't return buffers.
        recorder.instant(RawFrame::native(CodeAddress::instruction_pointer(0x1234)), None);
        (0..MANY).for_each(|index| recorder.record(mark, &[0, index]));
        drop(held);
        let summary = recorder.stop();
        assert_eq!((summary.events, summary.lost.len()), (MANY + 1, 0));
    });
    if let Some(folder) = folder {
        assert_eq!(ReadBack::whole(&folder.file("out.swv")).marks()[&0].len() as u64, MANY);
    }
}

/// Limits the address space of this process to this many bytes more.
fn limit_address_space(more: u64) {
    let pages: u64 = fs::read_to_string("/proc/self/statm").unwrap().split(' ').next().unwrap().parse().unwrap();
    // SAFETY: has no conditions.
    let page = u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap();
    let limit = libc::rlimit { rlim_cur: pages * page + more, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: a valid limit.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) }, 0);
}

fn record_without_memory(folder: &Path) {
    let recorder = start(RecorderOptions { memory: 4 * CHUNK, ..RecorderOptions::new(folder.join("out.swv")) });
    let mark = mark(&recorder);
    recorder.record(mark, &[0, 0]);
    let (proceed, wait) = mpsc::channel::<()>();
    let (sender, receiver) = mpsc::channel();
    let other = thread::spawn({
        let recorder = recorder.clone();
        move || {
            // The channels and this thread make their allocations before memory is limited.
            wait.recv().unwrap();
            sender.send(()).unwrap();
            wait.recv().unwrap();
            (0..10).for_each(|index| recorder.record(mark, &[1, index]));
            sender.send(()).unwrap();
            wait.recv().unwrap();
            recorder.record(mark, &[1, 10]);
        }
    });
    proceed.send(()).unwrap();
    receiver.recv().unwrap();
    recorder.flush().unwrap();
    // Enough for a thread's lane, not enough for a buffer.
    limit_address_space(24 << 10);
    proceed.send(()).unwrap();
    receiver.recv_timeout(Duration::from_secs(40)).expect("a thread without memory continues");
    // A thread that has had a buffer gets it back from the writer.
    (1..MANY).for_each(|index| recorder.record(mark, &[0, index]));
    limit_address_space(1 << 30);
    proceed.send(()).unwrap();
    other.join().unwrap();
    let summary = recorder.stop();
    assert_eq!((summary.events, summary.lost.get(&LossReason::NoMemory)), (MANY + 1, Some(&10)), "{summary:?}");
}

#[test]
fn events_without_memory_are_counted_and_do_not_block() {
    let name = "waiting::events_without_memory_are_counted_and_do_not_block";
    if let Some(folder) = child::in_own_process(name, record_without_memory) {
        let read = ReadBack::whole(&folder.file("out.swv"));
        let marks = read.marks();
        assert_eq!((marks[&0].len() as u64, &marks[&1][..]), (MANY, &[10][..]));
        let lost: Vec<_> = read.lost.iter().map(|lost| (lost.reason, lost.count)).collect();
        assert_eq!(lost, [(LossReason::NoMemory, 10)]);
    }
}

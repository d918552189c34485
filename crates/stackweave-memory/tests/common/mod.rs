//! A recording in a separate process, and what an independent counter counts there.
#![allow(dead_code, reason = "each test program uses a part")]
#![allow(clippy::unwrap_used, clippy::missing_panics_doc, reason = "a failure fails the test")]

use std::collections::BTreeMap;
use std::ffi::{CStr, c_void};
use std::fmt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use stackweave_capture::stacks;
use stackweave_core::{NoNames, RawFrame, RawFrameKind};
use stackweave_memory::{MemoryOptions, MemoryRecorder, MemorySnapshot, MemoryStats};
use stackweave_recording::{Recorder, RecorderOptions, Summary};
use stackweave_testkit::child;
use stackweave_testkit::folder::Folder;
use stackweave_testkit::library::Library;

/// Counts of allocations: the twin of `struct sw_counts` in `counter.c`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) allocations: u64,
    pub(crate) bytes: u64,
    pub(crate) frees: u64,
    pub(crate) unknown_frees: u64,
    pub(crate) live_blocks: u64,
    pub(crate) live_bytes: u64,
    pub(crate) peak_bytes: u64,
}

impl fmt::Display for Counts {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { allocations, bytes, frees, unknown_frees, live_blocks, live_bytes, peak_bytes } = self;
        write!(to, "counts {allocations} {bytes} {frees} {unknown_frees} {live_blocks} {live_bytes} {peak_bytes}")
    }
}

impl Counts {
    /// Returns the counts of a recorder.
    pub(crate) fn of(snapshot: &MemorySnapshot) -> Self {
        let totals = &snapshot.devices[0].totals;
        Self {
            allocations: totals.figures.allocations,
            bytes: totals.figures.bytes,
            frees: totals.frees,
            unknown_frees: totals.unknown_frees,
            live_blocks: totals.figures.live_blocks,
            live_bytes: totals.figures.live_bytes,
            peak_bytes: totals.figures.peak_bytes,
        }
    }

    /// Returns the last counts that a child has printed.
    pub(crate) fn in_text(text: &str) -> Option<Self> {
        let line = text.lines().rev().find_map(|line| line.split_once("counts ").map(|(_, counts)| counts))?;
        let mut numbers = line.split(' ').map_while(|number| number.trim().parse().ok());
        let mut next = || numbers.next();
        Some(Self {
            allocations: next()?,
            bytes: next()?,
            frees: next()?,
            unknown_frees: next()?,
            live_blocks: next()?,
            live_bytes: next()?,
            peak_bytes: next()?,
        })
    }
}

/// A memory recording of this process.
pub(crate) struct Recorded {
    folder: Folder,
    recorder: Recorder,
    pub(crate) memory: MemoryRecorder,
}

/// The results of a recording.
pub(crate) struct Outcome {
    pub(crate) snapshot: MemorySnapshot,
    pub(crate) stats: MemoryStats,
    pub(crate) summary: Summary,
    _folder: Folder,
}

impl Recorded {
    pub(crate) fn start(options: MemoryOptions) -> Self {
        let folder = Folder::new();
        let recording =
            RecorderOptions { bypass_waiter: true, follow_forks: true, ..RecorderOptions::new(folder.file("out.swv")) };
        let observer = Some(MemoryRecorder::observer(&options));
        let recorder = Recorder::start_observed(recording, stacks(), Arc::new(NoNames), observer).unwrap();
        let memory = MemoryRecorder::start(recorder.clone(), options).unwrap();
        Self { folder, recorder, memory }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn stop(self) -> Outcome {
        self.memory.stop();
        let stats = self.memory.stats();
        let snapshot = self.memory.snapshot().unwrap();
        let summary = self.recorder.stop();
        assert_eq!((&summary.error, &summary.lost), (&None, &BTreeMap::default()), "{stats:?}");
        Outcome { snapshot, stats, summary, _folder: self.folder }
    }
}

/// Returns the bytes of each function of a fixture, by the innermost function whose name begins with `prefix`.
pub(crate) fn bytes_by_function(snapshot: &MemorySnapshot, prefix: &str) -> BTreeMap<String, u64> {
    let mut bytes = BTreeMap::new();
    for row in &snapshot.devices[0].rows {
        let frames = row.stack.into_iter().flat_map(|stack| stacks().frames(stack));
        if let Some(name) = frames.filter_map(native).filter_map(name).find(|name| name.starts_with(prefix)) {
            *bytes.entry(name).or_default() += row.figures.bytes;
        }
    }
    bytes
}

fn native(frame: RawFrame) -> Option<u64> {
    match frame.kind() {
        RawFrameKind::Native(address) => Some(address.lookup()),
        _ => None,
    }
}

fn name(address: u64) -> Option<String> {
    let address = std::ptr::without_provenance(usize::try_from(address).ok()?);
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: the address is only compared; the result is filled in on success.
    let info = unsafe {
        let found = libc::dladdr(address, info.as_mut_ptr());
        (found != 0).then(|| info.assume_init())?
    };
    // SAFETY: a C string of the module's, if there is one.
    (!info.dli_sname.is_null()).then(|| unsafe { CStr::from_ptr(info.dli_sname) }.to_string_lossy().into_owned())
}

/// Returns a function of a library, as that type.
///
/// # Safety
/// The function has that type.
pub(crate) unsafe fn function<T: Copy>(library: &Library, name: &str) -> T {
    let symbol = library.symbol(name);
    assert!(!symbol.is_null(), "{name}");
    assert_eq!(size_of::<T>(), size_of::<*mut c_void>());
    // SAFETY: a pointer; the caller vouches for its type.
    unsafe { std::mem::transmute_copy(&symbol) }
}

/// The preloaded counter. It counts the allocations of this program, too: there are none while it counts.
pub(crate) struct Counter {
    end: unsafe extern "C" fn(*mut Counts),
    _library: Library,
}

impl Counter {
    pub(crate) fn begin(path: &str, at_least: usize) -> Self {
        let library = Library::open(path).unwrap();
        // SAFETY: the fixture's functions.
        let (begin, end) = unsafe {
            let begin: unsafe extern "C" fn(usize) = function(&library, "sw_counter_begin");
            (begin, function(&library, "sw_counter_end"))
        };
        // SAFETY: as above.
        unsafe { begin(at_least) };
        Self { end, _library: library }
    }

    pub(crate) fn end(&self) -> Counts {
        let mut counts = Counts::default();
        // SAFETY: the fixture's function; the struct is its twin.
        unsafe { (self.end)(&raw mut counts) };
        counts
    }
}

/// Runs the test `name` again in a role, with a library preloaded if one is given, and returns what it has printed.
pub(crate) fn run(name: &str, role: &str, preload: Option<&str>) -> String {
    let output = child::run_for(&mut command(name, role, preload), 120);
    let text = child::text(&output);
    assert!(output.status.success(), "{role}: {text}");
    text
}

pub(crate) fn command(name: &str, role: &str, preload: Option<&str>) -> Command {
    let mut command = child::command(&child::own_executable(), name, role);
    if let Some(library) = preload {
        command.env("LD_PRELOAD", library);
    }
    command
}

/// Returns the allocators that are installed on this machine and can be preloaded.
pub(crate) fn allocators() -> Vec<&'static str> {
    let known = ["libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2"];
    // The loader reports what it can't find. The allocators are not loaded here, because they can't be unloaded.
    let has = |name: &&str| {
        Command::new("true").env("LD_PRELOAD", name).output().is_ok_and(|output| output.stderr.is_empty())
    };
    known.into_iter().filter(has).collect()
}

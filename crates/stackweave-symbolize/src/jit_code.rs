//! Addresses in no module: code for which a just-in-time compiler has written a map.

use std::sync::{Arc, Mutex, PoisonError};

use crate::perf_map::PerfMap;
use crate::perf_map::jitdump::JitDump;
use crate::resolved::{ResolvedFrame, SymbolSource, Symbolized, UnresolvedReason};

/// The maps of one process. They are read again when an address is not in them: such code is added and removed, so
/// results are not stored.
#[derive(Debug)]
pub(crate) struct JitCode {
    maps: Option<Mutex<(PerfMap, JitDump)>>,
}

/// The results of reading the maps of just-in-time compilers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PerfMapHealth {
    /// Number of malformed lines and records.
    pub skipped: u64,
    /// Whether a map is so large that a part of it was ignored.
    pub is_cut: bool,
    /// Whether a jitdump is not read, or not to its end: it is from a different machine, or malformed.
    pub is_jitdump_refused: bool,
}

impl JitCode {
    /// Reads the maps of process `pid`, if it is given.
    pub(crate) fn new(pid: Option<u32>) -> Self {
        Self { maps: pid.map(|pid| Mutex::new((PerfMap::of_process(pid), JitDump::of_process(pid)))) }
    }

    /// Returns how well the maps could be read.
    pub(crate) fn health(&self) -> PerfMapHealth {
        let Some(maps) = &self.maps else { return PerfMapHealth::default() };
        let (perf_map, jit_dump) = &*maps.lock().unwrap_or_else(PoisonError::into_inner);
        PerfMapHealth {
            skipped: perf_map.skipped_lines() + jit_dump.skipped_records(),
            is_cut: perf_map.is_cut() || jit_dump.is_cut(),
            is_jitdump_refused: jit_dump.fault().is_some(),
        }
    }

    /// Resolves `address`.
    pub(crate) fn resolve(&self, address: u64) -> Symbolized {
        let unknown = Symbolized::Unknown(UnresolvedReason::NoModule);
        let Some(maps) = &self.maps else { return unknown };
        let (perf_map, jit_dump) = &mut *maps.lock().unwrap_or_else(PoisonError::into_inner);
        find(perf_map, jit_dump, address)
            .or_else(|| {
                perf_map.refresh();
                jit_dump.refresh();
                find(perf_map, jit_dump, address)
            })
            .map_or(unknown, |frame| Symbolized::Frames { frames: Arc::new([frame]), source: SymbolSource::PerfMap })
    }
}

fn find(perf_map: &PerfMap, jit_dump: &JitDump, address: u64) -> Option<ResolvedFrame> {
    let mut frame = ResolvedFrame { function: "".into(), file: None, line: None, column: None, is_inlined: false };
    if let Some(symbol) = jit_dump.lookup(address) {
        (frame.function, frame.file, frame.line) = (symbol.name, symbol.file, symbol.line);
    } else {
        frame.function = perf_map.lookup(address)?.name;
    }
    Some(frame)
}

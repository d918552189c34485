//! What has to be known about figures of memory.

use stackweave_recording::ProcessRecording;
use stackweave_recording::file::Mode;

use super::foreign_hooks::ForeignHooks;
use super::header::{MemoryHeader, MemoryMode};
use crate::aggregate::Measure;

/// A sentence for each that holds for figures of this measure, of all or of a part of the time.
pub fn remarks(processes: &[ProcessRecording], measure: Measure, is_part: bool) -> Vec<String> {
    let mut remarks = Vec::new();
    if is_part && processes.iter().any(has_no_history) {
        remarks.push("There are only sums of memory, and no history: they are of the whole time.".to_owned());
    }
    let header = |process: &ProcessRecording| MemoryHeader::of(process.start());
    if let Some(every) = processes.iter().find_map(|process| header(process)?.sample_every) {
        #[expect(clippy::cast_precision_loss, reason = "for people, with a few digits")]
        let every = Measure::LiveBytes.text(every as f64);
        remarks.push(format!("Figures are estimated, from a sample of one allocation in {every}."));
    }
    if measure == Measure::PeakBytes && processes.len() > 1 {
        remarks.push("Each process had its peak at a time of its own: their sum was never there at once.".to_owned());
    }
    if processes.iter().any(|process| process.start().mode == Mode::Ring) {
        remarks.push("Only the last events were kept: memory that was taken before is not known.".to_owned());
    }
    remarks.extend(missing(processes));
    remarks
}

/// Returns a sentence for each process whose allocations another tool kept from its recorder.
fn missing(processes: &[ProcessRecording]) -> impl Iterator<Item = String> {
    let has_several = processes.len() > 1;
    processes.iter().filter_map(move |process| {
        let sentence = ForeignHooks::read(process)?.sentence();
        Some(if has_several { format!("Process {}: {sentence}", process.start().pid) } else { sentence })
    })
}

/// Whether a process has recorded sums of its memory only.
pub fn has_no_history(process: &ProcessRecording) -> bool {
    MemoryHeader::of(process.start()).is_some_and(|header| header.mode == MemoryMode::Aggregate)
}

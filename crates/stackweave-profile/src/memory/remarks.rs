//! Remarks about memory figures.

use stackweave_recording::ProcessRecording;
use stackweave_recording::file::RecordingMode;

use super::foreign_hooks::ForeignHooks;
use super::header::{MemoryHeader, RecordedMode};
use crate::aggregate::Measure;

/// Returns the remarks about figures of a measure, of the whole recording or of a time range, one sentence each.
/// `hooks` are those that other tools held, for each process.
pub fn remarks(
    (processes, hooks): (&[ProcessRecording], &[Option<ForeignHooks>]),
    measure: Measure,
    is_part: bool,
) -> Vec<String> {
    let mut remarks = Vec::new();
    if is_part && processes.iter().any(has_no_history) {
        remarks.push(
            "Only totals of memory were recorded, without a history: they are of the whole recording.".to_owned(),
        );
    }
    let header = |process: &ProcessRecording| MemoryHeader::of(process.start());
    if let Some(every) = processes.iter().find_map(|process| header(process)?.sample_every) {
        #[expect(clippy::cast_precision_loss, reason = "rounded to a few digits for display")]
        let every = Measure::LiveBytes.text(every as f64);
        remarks.push(format!("Figures are estimated, from a sample of one allocation in {every}."));
    }
    if measure == Measure::PeakBytes && processes.len() > 1 {
        remarks.push("Processes have their peaks at different times: this sum was never live at once.".to_owned());
    }
    if processes.iter().any(|process| process.start().mode == RecordingMode::Ring) {
        remarks.push("Only the last events were kept: earlier allocations are unknown.".to_owned());
    }
    remarks.extend(missing(processes, hooks));
    remarks
}

/// Returns a sentence for each process with allocations that another tool kept from its recorder.
fn missing(processes: &[ProcessRecording], hooks: &[Option<ForeignHooks>]) -> impl Iterator<Item = String> {
    let has_several = processes.len() > 1;
    processes.iter().zip(hooks).filter_map(move |(process, hooks)| {
        let sentence = hooks.as_ref()?.sentence();
        Some(if has_several { format!("Process {}: {sentence}", process.start().pid) } else { sentence })
    })
}

/// Returns whether a process has recorded totals of its memory only.
pub fn has_no_history(process: &ProcessRecording) -> bool {
    MemoryHeader::of(process.start()).is_some_and(|header| header.mode == RecordedMode::Aggregate)
}

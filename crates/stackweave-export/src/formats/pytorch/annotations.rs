//! Spans and tags as `PyTorch`'s annotations, which are names that a program gives to its parts.

use std::collections::HashMap;

use stackweave_profile::FrameKind;

use crate::activity::{EventContent, NamedProcess, ThreadEvent, visit};
use crate::error::ExportError;
use crate::formats::pytorch::AnnotatedDevice;
use crate::formats::pytorch::pickle::Pickle;
use crate::source::Source;

/// Writes the labels of spans and tags, with the times when they begin and end. Tags of processes without recorded
/// process memory are left out: the events of their hosts have them.
pub(super) fn write(
    source: &Source<'_>,
    devices: &[AnnotatedDevice],
    pickle: &mut Pickle<'_>,
) -> Result<(), ExportError> {
    let processes = NamedProcess::all(source);
    let mut tags: HashMap<(usize, u32), u32> = HashMap::new();
    visit(source, &mut |event| {
        let ThreadEvent { process, thread, time, .. } = *event;
        let time_us = source.wall_ns(time).div_euclid(1000);
        let mut put = |frame: u32, stage: &str| -> Result<(), ExportError> {
            let label = processes[process].chain(frame).find(|frame| frame.kind == FrameKind::Span);
            let Some(label) = label else { return Ok(()) };
            pickle.item()?;
            pickle.begin_dictionary();
            pickle.text("name");
            pickle.text(&label.name);
            pickle.text("stage");
            pickle.text(stage);
            pickle.text("device");
            pickle.unsigned(devices[process].index as u64);
            pickle.text("time_us");
            pickle.integer(time_us);
            pickle.end_dictionary();
            Ok(())
        };
        match &event.content {
            EventContent::Begin(span) => put(span.frame, "START"),
            EventContent::End(span, _) => put(span.frame, "END"),
            EventContent::Tag { frame } if devices[process].is_process_memory => {
                let before = tags.insert((process, thread), *frame).unwrap_or(0);
                if before != 0 {
                    put(before, "END")?;
                }
                if *frame == 0 { Ok(()) } else { put(*frame, "START") }
            }
            _ => Ok(()),
        }
    })
}

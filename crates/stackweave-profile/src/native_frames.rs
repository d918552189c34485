//! What the symbolizer says of an address, as frames.

use std::sync::Arc;

use stackweave_core::{CodeAddress, Position, RawFrame};
use stackweave_symbolize::{Reason, Resolved, Source, Symbolized};

use crate::frame::{Frame, FrameKind};
use crate::known_frames::Answer;

pub(crate) fn answer(address: CodeAddress, resolved: &Resolved) -> Answer {
    let frame = RawFrame::native(address);
    Answer { frame, names: frames(address, resolved), is_lasting: is_lasting(resolved) }
}

/// Innermost first, at least one.
pub(crate) fn frames(address: CodeAddress, resolved: &Resolved) -> Vec<Frame> {
    let native = |name| Frame {
        module: resolved.module.clone(),
        address: Some(address.address()),
        ..Frame::named(FrameKind::Native, name)
    };
    let nameless = || place(address, resolved).into();
    let frames = resolved.frames().iter().map(|found| Frame {
        filename: found.file.clone(),
        position: Position { line: found.line, column: found.column, ..Position::default() },
        is_inlined: found.is_inlined,
        ..native(if found.function.is_empty() { nameless() } else { Arc::clone(&found.function) })
    });
    let frames: Vec<Frame> = frames.collect();
    if frames.is_empty() { vec![native(nameless())] } else { frames }
}

/// The captured address, in its module as the file states it.
fn place(address: CodeAddress, resolved: &Resolved) -> String {
    match &resolved.module {
        Some(module) => format!("{module}+{:#x}", resolved.offset + (address.address() - address.lookup())),
        None => format!("{:#x}", address.address()),
    }
}

/// Generated code comes and goes, and a file that can't be read now may be there the next time.
fn is_lasting(resolved: &Resolved) -> bool {
    match &resolved.symbolized {
        Symbolized::Frames { source, .. } => *source != Source::PerfMap,
        Symbolized::Unknown(reason) => *reason == Reason::NoSymbol,
    }
}

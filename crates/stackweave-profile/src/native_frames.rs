//! Converts results of the symbolizer to frames.

use std::sync::Arc;

use stackweave_core::{CodeAddress, Position, RawFrame};
use stackweave_symbolize::{Resolved, SymbolSource, Symbolized, UnresolvedReason};

use crate::frame::{Frame, FrameKind};
use crate::known_frames::NamedFrame;

pub(crate) fn resolved_frame(address: CodeAddress, resolved: &Resolved) -> NamedFrame {
    let frame = RawFrame::native(address);
    NamedFrame { frame, names: frames(address, resolved), is_lasting: is_lasting(resolved) }
}

/// Returns the frames of an address, innermost first, at least one.
pub(crate) fn frames(address: CodeAddress, resolved: &Resolved) -> Vec<Frame> {
    let native = |name| Frame {
        module: resolved.module.clone(),
        address: Some(address.address()),
        ..Frame::named(FrameKind::Native, name)
    };
    let nameless = || location(address, resolved).into();
    let frames = resolved.frames().iter().map(|found| Frame {
        filename: found.file.clone(),
        position: Position { line: found.line, column: found.column, ..Position::default() },
        is_inlined: found.is_inlined,
        ..native(if found.function.is_empty() { nameless() } else { Arc::clone(&found.function) })
    });
    let frames: Vec<Frame> = frames.collect();
    if frames.is_empty() { vec![native(nameless())] } else { frames }
}

/// Formats the captured address, relative to its module as in the file.
fn location(address: CodeAddress, resolved: &Resolved) -> String {
    match &resolved.module {
        Some(module) => format!("{module}+{:#x}", resolved.offset + (address.address() - address.lookup())),
        None => format!("{:#x}", address.address()),
    }
}

/// Returns whether the result stays valid: generated code changes, and a missing file may appear later.
fn is_lasting(resolved: &Resolved) -> bool {
    match &resolved.symbolized {
        Symbolized::Frames { source, .. } => *source != SymbolSource::PerfMap,
        Symbolized::Unknown(reason) => *reason == UnresolvedReason::NoSymbol,
    }
}

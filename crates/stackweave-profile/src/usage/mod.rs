//! Memory by stack, as functions and call trees.

mod functions;
mod tree;
mod visible_frames;

use std::sync::Arc;

use crate::Frame;

pub use functions::{FunctionUsage, function_usage};
pub use tree::{UsageNode, UsageTree};
pub use visible_frames::{collapsed_modules, visible_frames};

/// The memory of one stack, or its difference to an earlier moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StackUsage {
    /// The frames, innermost first; empty if unknown.
    pub frames: Vec<Arc<Frame>>,
    /// The bytes.
    pub bytes: i64,
    /// The blocks.
    pub blocks: i64,
}

/// Returns the name of a frame's function with the classes around it, if it is known.
pub(crate) fn full_name(frame: &Frame) -> &Arc<str> {
    frame.qualname.as_ref().filter(|name| !name.is_empty()).unwrap_or(&frame.name)
}

#[cfg(test)]
mod tests {
    use stackweave_core::Position;

    use super::*;
    use crate::FrameKind;

    pub(super) fn python(name: &str, line: u32, file: &str) -> Arc<Frame> {
        let position = Position { line: Some(line), ..Position::default() };
        Arc::new(Frame { filename: Some(file.into()), position, ..Frame::named(FrameKind::Python, name.into()) })
    }

    pub(super) fn native(name: &str, module: &str) -> Arc<Frame> {
        Arc::new(Frame { module: Some(module.into()), ..Frame::named(FrameKind::Native, name.into()) })
    }

    /// Returns 600 bytes of `inflate`, called by `parse`, by `load`, by `main`; 300 of `parse`, called by another line
    /// of `load`; 50 of `main`; 50 without a stack.
    pub(super) fn stacks() -> Vec<StackUsage> {
        let [main, load, load_again, parse] =
            [("main", 30), ("load", 20), ("load", 21), ("parse", 10)].map(|(name, line)| python(name, line, "app.py"));
        let inflate = native("inflate", "libz.so.1");
        let stack = |frames: &[&Arc<Frame>], bytes, blocks| StackUsage {
            frames: frames.iter().map(|frame| Arc::clone(frame)).collect(),
            bytes,
            blocks,
        };
        vec![
            stack(&[&inflate, &parse, &load, &main], 600, 2),
            stack(&[&parse, &load_again, &main], 300, 1),
            stack(&[&main], 50, 1),
            stack(&[], 50, 1),
        ]
    }
}

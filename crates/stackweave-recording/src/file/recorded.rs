//! What the numbers of a section stand for.

use stackweave_core::{CodeAddress, FrameKind, Position};

/// A frame, as it was captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RecordedFrame {
    /// A place in machine code.
    Native {
        /// Where, in the process that was recorded.
        address: CodeAddress,
        /// The number of the module that held it.
        module: Option<u32>,
    },
    /// A place in a Python code object.
    Python {
        /// The number of the code object in its process.
        code: u32,
        /// The offset in its bytecode.
        instruction: u32,
        /// Whether native code entered this frame, and not another Python frame.
        entered_from_native: bool,
    },
    /// A place in code of another interpreter.
    Script {
        /// The number of its frame source.
        source: u8,
        /// What the source calls the place.
        word: u64,
    },
    /// A name that somebody gave to what happens, and not a place in code.
    Label {
        /// The number of the label in its process.
        label: u32,
    },
}

/// What a frame is called: one of the places that it stands for. Strings and modules are numbers of the section.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RecordedName {
    /// What it is a name of.
    pub kind: FrameKind,
    /// The function.
    pub name: u32,
    /// The function with the classes and functions around it.
    pub qualname: Option<u32>,
    /// The file.
    pub filename: Option<u32>,
    /// The line that the function begins on.
    pub first_line: Option<u32>,
    /// The place in the file.
    pub position: Position,
    /// The module that holds it.
    pub module: Option<u32>,
    /// Whether the call of this function was inlined into the next one's.
    pub is_inlined: bool,
}

/// A thread of the process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedThread {
    /// Its number in the section.
    pub number: u32,
    /// What the system calls it.
    pub tid: u32,
    /// Its name; empty if it has none.
    pub name: String,
}

impl RecordedThread {
    /// The name of the thread that the recorder's own figures are of.
    pub const RECORDER: &'static str = "stackweave";

    /// Returns whether it is the recorder's own: it has figures for the whole process, and nothing that the program did.
    pub fn is_recorders(&self) -> bool {
        self.name == Self::RECORDER
    }
}

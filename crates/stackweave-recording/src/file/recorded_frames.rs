//! The frames, names and threads that the numbers of a section refer to.

use stackweave_core::{CodeAddress, FrameKind, Position};

/// A frame as it was captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RecordedFrame {
    /// An address of machine code.
    Native {
        /// The address in the recorded process.
        address: CodeAddress,
        /// The number of the module that contained it.
        module: Option<u32>,
    },
    /// A position in a Python code object.
    Python {
        /// The number of the code object in its process.
        code: u32,
        /// The offset in its bytecode.
        instruction: u32,
        /// Whether native code entered this frame, and not another Python frame.
        entered_from_native: bool,
    },
    /// A position in code of another interpreter.
    Script {
        /// The number of its frame source.
        source: u8,
        /// The source's identifier of the position.
        word: u64,
    },
    /// A name that the program or a recorder gave to an event, without a position in code.
    Label {
        /// The number of the label in its process.
        label: u32,
    },
}

/// A name of a frame, which has one for each function at its position. Strings and modules are numbers of the section.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RecordedName {
    /// The kind of code that the name belongs to.
    pub kind: FrameKind,
    /// The name of the function.
    pub name: u32,
    /// The name with the enclosing classes and functions.
    pub qualname: Option<u32>,
    /// The filename.
    pub filename: Option<u32>,
    /// The first line of the function.
    pub first_line: Option<u32>,
    /// The position in the file.
    pub position: Position,
    /// The module that contains it.
    pub module: Option<u32>,
    /// Whether the call of this function was inlined into the next one.
    pub is_inlined: bool,
}

/// A thread of the process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedThread {
    /// Its number in the section.
    pub number: u32,
    /// The thread id of the system.
    pub tid: u32,
    /// Its name; empty if it has none.
    pub name: String,
}

impl RecordedThread {
    /// The name of the thread that has the recorder's own figures.
    pub const RECORDER: &'static str = "stackweave";

    /// Returns whether it is the recorder's own thread, which has figures for the process, and no events of the program.
    pub fn is_recorders(&self) -> bool {
        self.name == Self::RECORDER
    }
}

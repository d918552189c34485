//! What a walk writes down.

use core::fmt;

use stackweave_core::SourceStop;

/// The address of a code object. As good as the code object's life: see [`CodePointer::address`].
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct CodePointer(u64);

impl CodePointer {
    /// A code object at that address.
    pub const fn new(address: u64) -> Self {
        Self(address)
    }

    /// The address: what `id(code)` is in Python. It names the code object only while that is alive, which a frame
    /// that has not returned guarantees, and after that whoever holds a reference.
    pub const fn address(self) -> u64 {
        self.0
    }
}

impl fmt::Debug for CodePointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "code:{:#x}", self.0)
    }
}

/// One Python frame, as raw words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PythonFrame {
    /// What it runs.
    pub code: CodePointer,
    /// An address on the C stack that belongs to the activation of the eval loop that runs the frame: the native frame
    /// whose stack holds it is that eval loop. Frames of one activation share it, those of outer activations have
    /// higher ones. Zero where it is not known: the walk ended before it got there, or came by the public API.
    pub activation: u64,
    /// The offset of its instruction in bytes, `f_lasti` in Python; [`PythonFrame::NOT_BEGUN`] before the first.
    pub instruction: u32,
    /// Whether native code entered the eval loop for this frame: the outermost of its activation.
    pub is_entry: bool,
}

impl PythonFrame {
    /// The instruction of a frame that has not run any. Only 3.10 shows such frames.
    pub const NOT_BEGUN: u32 = u32::MAX;
}

/// The result of one walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Walked {
    /// How many frames were written.
    pub len: usize,
    /// Why the walk ended.
    pub stop: SourceStop,
}

impl Walked {
    pub(crate) const fn nothing(stop: SourceStop) -> Self {
        Self { len: 0, stop }
    }
}

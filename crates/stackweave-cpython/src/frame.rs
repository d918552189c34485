//! The results of a walk.

use core::fmt;

use stackweave_core::SourceStop;

/// The address of a code object. It is valid while the code object lives: see [`CodePointer::address`].
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct CodePointer(u64);

impl CodePointer {
    /// Creates a pointer to the code object at that address.
    pub const fn new(address: u64) -> Self {
        Self(address)
    }

    /// Returns the address: `id(code)` in Python. It identifies the code object only while that is alive, which a frame
    /// guarantees that has not returned, or a reference.
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
    /// The code that it runs.
    pub code: CodePointer,
    /// An address on the C stack that belongs to the activation of the eval loop that runs the frame: the native frame
    /// whose stack contains it is that eval loop. Frames of one activation share it; those of outer activations have
    /// higher addresses. Zero if it is unknown: the walk ended before it was found, or used the public API.
    pub activation: u64,
    /// The offset of its instruction in bytes, `f_lasti` in Python; [`PythonFrame::NOT_BEGUN`] before the first.
    pub instruction: u32,
    /// Whether native code entered the eval loop for this frame: it is the outermost frame of its activation.
    pub is_entry: bool,
}

impl PythonFrame {
    /// The instruction of a frame that has run none. Only 3.10 shows such frames.
    pub const NOT_BEGUN: u32 = u32::MAX;
}

/// The result of one walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WalkResult {
    /// The number of frames that were written.
    pub len: usize,
    /// The reason why the walk ended.
    pub stop: SourceStop,
}

impl WalkResult {
    pub(crate) const fn empty(stop: SourceStop) -> Self {
        Self { len: 0, stop }
    }
}

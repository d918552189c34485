//! The offsets that walks and names need, for each minor version of Python: one table of integers per version.
//!
//! Offsets are in bytes, from the headers of a 64-bit build with the GIL. They have not moved between the patch
//! releases of one minor version. From 3.13 on the interpreter itself reports most of them, which is checked (see
//! [`debug_offsets`](crate::debug_offsets)); a self-test decides about all of them.

mod attributes;
mod v3_10;
mod v3_11;
mod v3_12;
mod v3_13;
mod v3_14;
mod v3_15;

pub use self::attributes::{AttributesLayout, InstanceLayout, KeysLayout};
use crate::line_table::LineTableFormat;

/// Everything that differs between versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VersionLayout {
    /// 13 for Python 3.13.
    pub minor: u8,
    /// `PyThreadState`.
    pub thread: ThreadLayout,
    /// `_PyInterpreterFrame`, or `PyFrameObject` on 3.10.
    pub frame: FrameLayout,
    /// `PyCodeObject`.
    pub code: CodeLayout,
    /// `str` and `bytes` objects.
    pub text: TextLayout,
    /// Dictionaries and instances.
    pub attributes: AttributesLayout,
    /// The format of line tables.
    pub line_table: LineTableFormat,
    /// The offsets that lead from `_PyRuntime` to all threads.
    pub lists: ListsLayout,
    /// The offsets in `_Py_DebugOffsets`, for the versions that have it.
    pub debug_offsets: Option<DebugOffsetsLayout>,
}

/// `PyThreadState`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadLayout {
    /// The links of its frames.
    pub chain: Chain,
    /// The `pthread_t` of the thread that the state belongs to.
    pub thread_id: usize,
    /// Whether a thread's own storage has the state that it activated last. Before 3.12 it has the state that the
    /// thread activated first, and only a global points to the one that holds the GIL.
    pub follows_swaps: bool,
    /// Its profile function.
    pub profile: ProfileLayout,
    /// The depth of its calls.
    pub recursion: RecursionLayout,
    /// The pointer to the frame that ends every chain, from 3.15 on. Before, null ends a chain.
    pub base_frame: Option<usize>,
    /// `datastack_chunk`, from 3.11 on; `datastack_top` and `datastack_limit` follow it.
    pub data_stack: Option<usize>,
}

/// The fields of a thread state for the depth of calls, 32 bits each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecursionLayout {
    /// 3.10: the depth; the limit is the interpreter's.
    Depth {
        /// `recursion_depth`.
        depth: usize,
    },
    /// 3.11 and later: what is left of the limit.
    Remaining {
        /// `recursion_remaining`, and `py_recursion_remaining` from 3.12 on.
        remaining: usize,
        /// `recursion_limit`, and `py_recursion_limit` from 3.12 on.
        limit: usize,
        /// `c_recursion_remaining`, in 3.12 and 3.13, where C calls have a separate limit.
        c_remaining: Option<usize>,
    },
}

/// The fields of a thread state for its profile function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProfileLayout {
    /// `c_profilefunc`.
    pub function: usize,
    /// `c_profileobj`.
    pub object: usize,
}

/// The links of the frames of a thread, and the marks of activations of the eval loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chain {
    /// 3.10: `frame` points to frame objects, each run by a separate eval loop, in step with the list of `CFrame`s,
    /// whose last is in the thread state and points nowhere.
    FrameObjects {
        /// In the thread state: the innermost frame.
        frame: usize,
        /// In the thread state: the `CFrame` of the innermost eval loop.
        c_frame: usize,
        /// In a `CFrame`: the next.
        previous_c_frame: usize,
        /// The offset of the last `CFrame` in the thread state.
        last_c_frame: usize,
    },
    /// 3.11: `c_frame` points to a `_PyCFrame` per eval loop; `is_entry` marks the last frame of a loop.
    EntryFlags {
        /// In the thread state: the `_PyCFrame` of the innermost eval loop.
        c_frame: usize,
        /// In a `_PyCFrame`: the innermost frame of the loop.
        current_frame: usize,
        /// In a `_PyCFrame`: the next.
        previous_c_frame: usize,
        /// In a frame, as one byte.
        is_entry: usize,
    },
    /// 3.12: the frames of each eval loop end with a shim on the C stack; `c_frame` points to the innermost.
    ShimsBehindCFrame {
        /// In the thread state: the `_PyCFrame` of the innermost eval loop.
        c_frame: usize,
        /// In a `_PyCFrame`: the innermost frame of the loop.
        current_frame: usize,
        /// In a `_PyCFrame`: the next.
        previous_c_frame: usize,
    },
    /// 3.13 and later: as above, without `_PyCFrame`.
    Shims {
        /// In the thread state: the innermost frame.
        current_frame: usize,
    },
}

/// `_PyInterpreterFrame`, or `PyFrameObject` on 3.10.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameLayout {
    /// The code object; from 3.14 on with tag bits.
    pub code: usize,
    /// The frame that called it.
    pub previous: usize,
    /// A pointer to a code unit; on 3.10 the index of one, 32 bits wide.
    pub instruction: usize,
    /// The owner of the frame, as one byte. Not on 3.10.
    pub owner: usize,
    /// The dictionary of the frame's module.
    pub globals: usize,
    /// The first of its local variables, one word each.
    pub locals: usize,
}

/// `PyCodeObject`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeLayout {
    /// `co_flags`, 32 bits wide.
    pub flags: usize,
    /// `co_filename`.
    pub filename: usize,
    /// `co_name`.
    pub name: usize,
    /// `co_qualname`, from 3.11 on.
    pub qualname: Option<usize>,
    /// `co_firstlineno`, 32 bits wide.
    pub first_line: usize,
    /// `co_linetable`.
    pub line_table: usize,
    /// The offset of the code units. On 3.10 they are in a separate object.
    pub units: usize,
    /// The index of the first unit that counts as begun. Not on 3.10.
    pub first_traceable: usize,
}

/// `str` and `bytes` objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextLayout {
    /// The number of characters.
    pub length: usize,
    /// A word of bits: two for interning, three for the width of a character, one each for compact and ASCII.
    pub state: usize,
    /// The offset of the characters of a compact ASCII string.
    pub ascii: usize,
    /// The offset of those of any other compact string; in a string that is not compact, of the pointer to them.
    pub compact: usize,
    /// The length of a `bytes` object.
    pub bytes_length: usize,
    /// The offset of the contents of a `bytes` object.
    pub bytes: usize,
}

/// The offsets that lead from `_PyRuntime` to all threads, for readers of other processes. In its own process, a thread
/// finds its state directly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListsLayout {
    /// In `_PyRuntime`: the newest interpreter.
    pub interpreters: usize,
    /// In `PyInterpreterState`: the next older one. This field and those of interpreters below have moved within a
    /// minor version: from 3.13 on they are read from `_Py_DebugOffsets`.
    pub next_interpreter: usize,
    /// In `PyInterpreterState`: the newest thread.
    pub threads: usize,
    /// In `PyInterpreterState`: `sys.modules`.
    pub modules: usize,
    /// In `PyThreadState`: the next older one.
    pub next_thread: usize,
    /// In `PyThreadState`: the interpreter of the thread.
    pub interpreter: usize,
    /// In `PyThreadState`: the kernel's id of the thread, from 3.11 on.
    pub native_thread_id: Option<usize>,
    /// The holder of the GIL.
    pub gil: GilLayout,
}

/// The location of the GIL's holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GilLayout {
    /// Up to 3.11 there is one GIL.
    OfRuntime {
        /// In `_PyRuntime`: the thread state that holds it.
        holder: usize,
    },
    /// Later, interpreters may share a GIL or have their own.
    OfInterpreter {
        /// In `PyInterpreterState`: a pointer to the GIL.
        gil: usize,
        /// In the GIL: the thread state that took it last.
        holder: usize,
        /// In the GIL: whether it is taken, 32 bits wide.
        locked: usize,
    },
}

/// The offset of each number in `_Py_DebugOffsets`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DebugOffsetsLayout {
    /// The size of `PyInterpreterState`; `id`, `next` and `threads_head` follow it.
    pub interpreter_size: usize,
    /// `imports_modules`.
    pub modules: usize,
    /// `ceval_gil`; `gil_runtime_state` and, in it, `enabled`, `locked` and `holder` follow it.
    pub gil: usize,
    /// Of the thread state, `next`; `interp` and `current_frame` follow it.
    pub next_thread: usize,
    /// `thread_id`; `native_thread_id` follows it.
    pub thread_id: usize,
    /// Of a frame, `previous`.
    pub frame_previous: usize,
    /// Of a frame, `executable`.
    pub frame_executable: usize,
    /// Of a frame, `instr_ptr`.
    pub frame_instruction: usize,
    /// Of a frame, `owner`.
    pub frame_owner: usize,
    /// `filename`; `name`, `qualname`, `linetable` and `firstlineno` follow it.
    pub code_filename: usize,
    /// `co_code_adaptive`.
    pub code_units: usize,
    /// `ob_size`; `ob_sval` follows it.
    pub bytes_length: usize,
    /// `state`; `length` and the size of an ASCII string's header follow it.
    pub text_state: usize,
}

const TEXT_3_12: TextLayout = TextLayout { length: 16, state: 32, ascii: 40, compact: 56, bytes_length: 16, bytes: 32 };
const TEXT_3_10: TextLayout = TextLayout { ascii: 48, compact: 72, ..TEXT_3_12 };

impl VersionLayout {
    /// The oldest minor version that has a table.
    pub const OLDEST: u8 = 10;
    /// The newest minor version that has a table.
    pub const NEWEST: u8 = 15;

    /// Returns the table of a version, if it has one.
    pub const fn of_minor(minor: u8) -> Option<&'static Self> {
        match minor {
            10 => Some(&v3_10::LAYOUT),
            11 => Some(&v3_11::LAYOUT),
            12 => Some(&v3_12::LAYOUT),
            13 => Some(&v3_13::LAYOUT),
            14 => Some(&v3_14::LAYOUT),
            15 => Some(&v3_15::LAYOUT),
            _ => None,
        }
    }

    /// Returns the table of a version that has one, as a constant.
    pub(crate) const fn must_have(minor: u8) -> Self {
        match Self::of_minor(minor) {
            Some(layout) => *layout,
            None => panic!("no table for this version"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_minor_version_has_its_own_table() {
        for minor in VersionLayout::OLDEST..=VersionLayout::NEWEST {
            assert_eq!(VersionLayout::of_minor(minor).map(|layout| layout.minor), Some(minor));
        }
        assert_eq!(VersionLayout::of_minor(VersionLayout::OLDEST - 1), None);
        assert_eq!(VersionLayout::of_minor(VersionLayout::NEWEST + 1), None);
    }
}

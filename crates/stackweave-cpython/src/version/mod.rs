//! Where each minor version of Python keeps what a walk and a name need: one table of integers per version.
//!
//! Offsets are in bytes, from the headers of a 64-bit build with the GIL. They have not moved between the patch
//! releases of one minor version. From 3.13 on the interpreter tells most of them itself, and is asked
//! (see [`debug_offsets`](crate::debug_offsets)); on all of them a self-test has the last word.

mod v3_10;
mod v3_11;
mod v3_12;
mod v3_13;
mod v3_14;
mod v3_15;

use crate::line_table::LineTableFormat;

/// Everything that differs between versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// 13 for Python 3.13.
    pub(crate) minor: u8,
    pub(crate) thread: ThreadLayout,
    pub(crate) frame: FrameLayout,
    pub(crate) code: CodeLayout,
    pub(crate) text: TextLayout,
    pub(crate) line_table: LineTableFormat,
    /// Where `_Py_DebugOffsets` has its numbers, on the versions that have it.
    pub(crate) debug_offsets: Option<DebugOffsetsLayout>,
}

/// `PyThreadState`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ThreadLayout {
    pub(crate) chain: Chain,
    /// The `pthread_t` of the thread that the state belongs to.
    pub(crate) thread_id: usize,
    /// Whether a thread keeps, in its own storage, the state it activated last. Before 3.12 it keeps the state it
    /// activated first, and the one that holds the GIL is known by a global only.
    pub(crate) follows_swaps: bool,
    pub(crate) profile: ProfileLayout,
}

/// What a thread state says of its profile function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProfileLayout {
    pub(crate) function: usize,
    pub(crate) object: usize,
}

/// How the frames of a thread hang together, and what marks an activation of the eval loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chain {
    /// 3.10: `frame` leads to frame objects, each run by an eval loop of its own, in step with the list of `CFrame`s,
    /// whose last is in the thread state and leads nowhere.
    FrameObjects { frame: usize, c_frame: usize, previous_c_frame: usize, last_c_frame: usize },
    /// 3.11: `c_frame` leads to a `_PyCFrame` per eval loop; a frame's `is_entry` says that it is the loop's last.
    EntryFlags { c_frame: usize, current_frame: usize, previous_c_frame: usize, is_entry: usize },
    /// 3.12: frames end each eval loop with a shim on the C stack; `c_frame` leads to the innermost.
    ShimsBehindCFrame { c_frame: usize, current_frame: usize, previous_c_frame: usize },
    /// 3.13 and later: the same, without `_PyCFrame`.
    Shims { current_frame: usize },
}

/// `_PyInterpreterFrame`, or `PyFrameObject` on 3.10.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameLayout {
    pub(crate) code: usize,
    pub(crate) previous: usize,
    /// A pointer to a code unit; on 3.10 the index of one, 32 bits wide.
    pub(crate) instruction: usize,
    /// Who owns the frame, as one byte. Not on 3.10.
    pub(crate) owner: usize,
    /// The dictionary of the module that it runs in.
    pub(crate) globals: usize,
    /// The first of its local variables, one word each.
    pub(crate) locals: usize,
}

/// `PyCodeObject`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CodeLayout {
    /// `co_flags`, 32 bits wide.
    pub(crate) flags: usize,
    pub(crate) filename: usize,
    pub(crate) name: usize,
    /// From 3.11 on.
    pub(crate) qualname: Option<usize>,
    pub(crate) first_line: usize,
    pub(crate) line_table: usize,
    /// Where the code units begin. On 3.10 they are in an object of their own.
    pub(crate) units: usize,
    /// The index of the first unit that counts as begun. Not on 3.10.
    pub(crate) first_traceable: usize,
}

/// `str` and `bytes` objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TextLayout {
    pub(crate) length: usize,
    /// A word of bits: two for interning, three for the width of a character, one each for compact and ASCII.
    pub(crate) state: usize,
    /// Where the characters of a compact ASCII string begin.
    pub(crate) ascii: usize,
    /// Where those of any other compact string begin; in a string that is not compact, the pointer to them.
    pub(crate) compact: usize,
    pub(crate) bytes_length: usize,
    pub(crate) bytes: usize,
}

/// Where in `_Py_DebugOffsets` each number is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DebugOffsetsLayout {
    pub(crate) current_frame: usize,
    pub(crate) frame_previous: usize,
    pub(crate) frame_executable: usize,
    pub(crate) frame_instruction: usize,
    pub(crate) frame_owner: usize,
    /// `filename`; `name`, `qualname`, `linetable` and `firstlineno` follow it.
    pub(crate) code_filename: usize,
    pub(crate) code_units: usize,
    /// `ob_size`; `ob_sval` follows it.
    pub(crate) bytes_length: usize,
    /// `state`; `length` and the size of an ASCII string's header follow it.
    pub(crate) text_state: usize,
}

const TEXT_3_12: TextLayout = TextLayout { length: 16, state: 32, ascii: 40, compact: 56, bytes_length: 16, bytes: 32 };
const TEXT_3_10: TextLayout = TextLayout { ascii: 48, compact: 72, ..TEXT_3_12 };

impl Layout {
    /// The oldest and the newest minor version that have a table.
    pub(crate) const OLDEST: u8 = 10;
    pub(crate) const NEWEST: u8 = 15;

    pub(crate) const fn of_minor(minor: u8) -> Option<&'static Self> {
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

    /// The table of a version that has one, as a constant.
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
        for minor in Layout::OLDEST..=Layout::NEWEST {
            assert_eq!(Layout::of_minor(minor).map(|layout| layout.minor), Some(minor));
        }
        assert_eq!(Layout::of_minor(Layout::OLDEST - 1), None);
        assert_eq!(Layout::of_minor(Layout::NEWEST + 1), None);
    }
}

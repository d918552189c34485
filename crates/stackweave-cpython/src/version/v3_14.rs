//! Python 3.14: code pointers in frames carry tag bits.

use super::attributes::ATTRIBUTES_3_13;
use super::{
    Chain, CodeLayout, DebugOffsetsLayout, FrameLayout, GilLayout, ListsLayout, ProfileLayout, RecursionLayout,
    TEXT_3_12, ThreadLayout, VersionLayout,
};
use crate::line_table::LineTableFormat;

pub(super) const LAYOUT: VersionLayout = VersionLayout {
    minor: 14,
    thread: ThreadLayout {
        chain: Chain::Shims { current_frame: 72 },
        thread_id: 152,
        follows_swaps: true,
        profile: ProfileLayout { function: 80, object: 96 },
        recursion: RecursionLayout::Remaining { remaining: 48, limit: 52, c_remaining: None },
        base_frame: None,
        data_stack: Some(232),
    },
    frame: FrameLayout { code: 0, previous: 8, instruction: 56, owner: 74, globals: 24, locals: 80 },
    code: CodeLayout {
        flags: 48,
        filename: 112,
        name: 120,
        qualname: Some(128),
        line_table: 136,
        first_line: 68,
        units: 208,
        first_traceable: 192,
    },
    text: TEXT_3_12,
    attributes: ATTRIBUTES_3_13,
    line_table: LineTableFormat::Locations,
    lists: ListsLayout {
        interpreters: 808,
        next_interpreter: 7272,
        threads: 7344,
        modules: 7688,
        next_thread: 8,
        interpreter: 16,
        native_thread_id: Some(160),
        gil: GilLayout::OfInterpreter { gil: 16, holder: 8, locked: 16 },
    },
    debug_offsets: Some(DebugOffsetsLayout {
        interpreter_size: 48,
        modules: 96,
        gil: 120,
        next_thread: 192,
        thread_id: 216,
        frame_previous: 256,
        frame_executable: 264,
        frame_instruction: 272,
        frame_owner: 288,
        code_filename: 320,
        code_units: 384,
        bytes_length: 600,
        text_state: 624,
    }),
};

//! Python 3.15: as 3.14, and a sentinel frame in the thread state ends every chain.

use super::attributes::ATTRIBUTES_3_15;
use super::{
    Chain, CodeLayout, DebugOffsetsLayout, FrameLayout, GilLayout, ListsLayout, ProfileLayout, RecursionLayout,
    TEXT_3_12, ThreadLayout, VersionLayout,
};
use crate::line_table::LineTableFormat;

pub(super) const LAYOUT: VersionLayout = VersionLayout {
    minor: 15,
    thread: ThreadLayout {
        chain: Chain::Shims { current_frame: 72 },
        thread_id: 176,
        follows_swaps: true,
        profile: ProfileLayout { function: 104, object: 120 },
        recursion: RecursionLayout::Remaining { remaining: 52, limit: 56, c_remaining: None },
        base_frame: Some(80),
        data_stack: Some(256),
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
    attributes: ATTRIBUTES_3_15,
    line_table: LineTableFormat::Locations,
    lists: ListsLayout {
        interpreters: 936,
        next_interpreter: 7264,
        threads: 7336,
        modules: 7592,
        next_thread: 8,
        interpreter: 16,
        native_thread_id: Some(184),
        gil: GilLayout::OfInterpreter { gil: 16, holder: 8, locked: 16 },
    },
    debug_offsets: Some(DebugOffsetsLayout {
        interpreter_size: 48,
        modules: 96,
        gil: 120,
        next_thread: 192,
        thread_id: 240,
        frame_previous: 320,
        frame_executable: 328,
        frame_instruction: 336,
        frame_owner: 352,
        code_filename: 384,
        code_units: 448,
        bytes_length: 696,
        text_state: 720,
    }),
};

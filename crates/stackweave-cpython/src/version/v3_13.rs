//! Python 3.13: the thread state points to the frame itself; hot instantiations push a hidden frame.

use super::attributes::ATTRIBUTES_3_13;
use super::{
    Chain, CodeLayout, DebugOffsetsLayout, FrameLayout, GilLayout, ListsLayout, ProfileLayout, RecursionLayout,
    TEXT_3_12, ThreadLayout, VersionLayout,
};
use crate::line_table::LineTableFormat;

pub(super) const LAYOUT: VersionLayout = VersionLayout {
    minor: 13,
    thread: ThreadLayout {
        chain: Chain::Shims { current_frame: 72 },
        thread_id: 152,
        follows_swaps: true,
        profile: ProfileLayout { function: 80, object: 96 },
        recursion: RecursionLayout::Remaining { remaining: 44, limit: 48, c_remaining: Some(52) },
        base_frame: None,
        data_stack: Some(232),
    },
    frame: FrameLayout { code: 0, previous: 8, instruction: 56, owner: 70, globals: 24, locals: 72 },
    code: CodeLayout {
        flags: 48,
        filename: 112,
        name: 120,
        qualname: Some(128),
        line_table: 136,
        first_line: 68,
        units: 200,
        first_traceable: 184,
    },
    text: TEXT_3_12,
    attributes: ATTRIBUTES_3_13,
    line_table: LineTableFormat::Locations,
    lists: ListsLayout {
        interpreters: 632,
        next_interpreter: 7264,
        threads: 7344,
        modules: 7656,
        next_thread: 8,
        interpreter: 16,
        native_thread_id: Some(160),
        gil: GilLayout::OfInterpreter { gil: 16, holder: 8, locked: 16 },
    },
    debug_offsets: Some(DebugOffsetsLayout {
        interpreter_size: 48,
        modules: 88,
        gil: 112,
        next_thread: 168,
        thread_id: 192,
        frame_previous: 232,
        frame_executable: 240,
        frame_instruction: 248,
        frame_owner: 264,
        code_filename: 280,
        code_units: 344,
        bytes_length: 520,
        text_state: 544,
    }),
};

//! Python 3.14: code pointers in frames carry tag bits.

use super::{Chain, CodeLayout, DebugOffsetsLayout, FrameLayout, Layout, ProfileLayout, TEXT_3_12, ThreadLayout};
use crate::line_table::LineTableFormat;

pub(super) const LAYOUT: Layout = Layout {
    minor: 14,
    thread: ThreadLayout {
        chain: Chain::Shims { current_frame: 72 },
        thread_id: 152,
        follows_swaps: true,
        profile: ProfileLayout { function: 80, object: 96 },
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
    line_table: LineTableFormat::Locations,
    debug_offsets: Some(DebugOffsetsLayout {
        current_frame: 208,
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

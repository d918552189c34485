//! Python 3.10: frames are objects, and each Python call has a separate eval loop.

use super::attributes::ATTRIBUTES_3_10;
use super::{
    Chain, CodeLayout, FrameLayout, GilLayout, ListsLayout, ProfileLayout, RecursionLayout, TEXT_3_10, ThreadLayout,
    VersionLayout,
};
use crate::line_table::LineTableFormat;

pub(super) const LAYOUT: VersionLayout = VersionLayout {
    minor: 10,
    thread: ThreadLayout {
        chain: Chain::FrameObjects { frame: 24, c_frame: 48, previous_c_frame: 8, last_c_frame: 264 },
        thread_id: 176,
        follows_swaps: false,
        profile: ProfileLayout { function: 56, object: 72 },
        recursion: RecursionLayout::Depth { depth: 32 },
        base_frame: None,
        data_stack: None,
    },
    frame: FrameLayout { code: 32, previous: 24, instruction: 96, owner: 0, globals: 48, locals: 352 },
    code: CodeLayout {
        flags: 36,
        filename: 104,
        name: 112,
        qualname: None,
        first_line: 40,
        line_table: 120,
        units: 0,
        first_traceable: 0,
    },
    text: TEXT_3_10,
    attributes: ATTRIBUTES_3_10,
    line_table: LineTableFormat::Lines,
    lists: ListsLayout {
        interpreters: 32,
        next_interpreter: 0,
        threads: 8,
        modules: 856,
        next_thread: 8,
        interpreter: 16,
        native_thread_id: None,
        gil: GilLayout::OfRuntime { holder: 568 },
    },
    debug_offsets: None,
};

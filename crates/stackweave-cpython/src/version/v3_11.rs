//! Python 3.11: Python calls share an eval loop; a `_PyCFrame` on the C stack stands for each loop.

use super::attributes::ATTRIBUTES_3_11;
use super::{
    Chain, CodeLayout, FrameLayout, GilLayout, ListsLayout, ProfileLayout, RecursionLayout, TEXT_3_10, ThreadLayout,
    VersionLayout,
};
use crate::line_table::LineTableFormat;

pub(super) const LAYOUT: VersionLayout = VersionLayout {
    minor: 11,
    thread: ThreadLayout {
        chain: Chain::EntryFlags { c_frame: 56, current_frame: 8, previous_c_frame: 16, is_entry: 68 },
        thread_id: 152,
        follows_swaps: false,
        profile: ProfileLayout { function: 64, object: 80 },
        recursion: RecursionLayout::Remaining { remaining: 32, limit: 36, c_remaining: None },
        base_frame: None,
        data_stack: Some(296),
    },
    frame: FrameLayout { code: 32, previous: 48, instruction: 56, owner: 69, globals: 8, locals: 72 },
    code: CodeLayout {
        flags: 48,
        filename: 112,
        name: 120,
        qualname: Some(128),
        line_table: 136,
        first_line: 72,
        units: 184,
        first_traceable: 168,
    },
    text: TEXT_3_10,
    attributes: ATTRIBUTES_3_11,
    line_table: LineTableFormat::Locations,
    lists: ListsLayout {
        interpreters: 40,
        next_interpreter: 0,
        threads: 16,
        modules: 888,
        next_thread: 8,
        interpreter: 16,
        native_thread_id: Some(160),
        gil: GilLayout::OfRuntime { holder: 576 },
    },
    debug_offsets: None,
};

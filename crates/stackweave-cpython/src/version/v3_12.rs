//! Python 3.12: shim frames on the C stack, still reached through `_PyCFrame`.

use super::attributes::ATTRIBUTES_3_12;
use super::{
    Chain, CodeLayout, FrameLayout, GilLayout, ListsLayout, ProfileLayout, RecursionLayout, TEXT_3_12, ThreadLayout,
    VersionLayout,
};
use crate::line_table::LineTableFormat;

pub(super) const LAYOUT: VersionLayout = VersionLayout {
    minor: 12,
    thread: ThreadLayout {
        chain: Chain::ShimsBehindCFrame { c_frame: 56, current_frame: 0, previous_c_frame: 8 },
        thread_id: 136,
        follows_swaps: true,
        profile: ProfileLayout { function: 64, object: 80 },
        recursion: RecursionLayout::Remaining { remaining: 28, limit: 32, c_remaining: Some(36) },
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
        units: 192,
        first_traceable: 176,
    },
    text: TEXT_3_12,
    attributes: ATTRIBUTES_3_12,
    line_table: LineTableFormat::Locations,
    lists: ListsLayout {
        interpreters: 40,
        next_interpreter: 0,
        threads: 72,
        modules: 944,
        next_thread: 8,
        interpreter: 16,
        native_thread_id: Some(144),
        gil: GilLayout::OfInterpreter { gil: 384, holder: 8, locked: 16 },
    },
    debug_offsets: None,
};

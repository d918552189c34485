//! Python 3.11: Python calls share an eval loop; a `_PyCFrame` on the C stack stands for each loop.

use super::{Chain, CodeLayout, FrameLayout, Layout, ProfileLayout, TEXT_3_10, ThreadLayout};
use crate::line_table::LineTableFormat;

pub(super) const LAYOUT: Layout = Layout {
    minor: 11,
    thread: ThreadLayout {
        chain: Chain::EntryFlags { c_frame: 56, current_frame: 8, previous_c_frame: 16, is_entry: 68 },
        thread_id: 152,
        follows_swaps: false,
        profile: ProfileLayout { function: 64, object: 80 },
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
    line_table: LineTableFormat::Locations,
    debug_offsets: None,
};

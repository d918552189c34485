//! What the interpreter says about its own layout: `_Py_DebugOffsets`, at the start of `_PyRuntime` from 3.13 on.
//!
//! The record is there for tools like this one, but its own form changes with each minor version, so it is read by a
//! table of ours and used to contradict the other tables, never to replace them.

use crate::version::{Chain, DebugOffsetsLayout, Layout};

const COOKIE: [u8; 8] = *b"xdebugpy";
const VERSION: usize = 8;
const FREE_THREADED: usize = 16;
const WORD: usize = 8;

/// How the interpreter's own numbers differ from the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contradiction {
    /// The record is not there, or of another version.
    Unreadable,
    FreeThreaded,
    /// The field of that name is elsewhere.
    Moved(&'static str),
}

/// Compares the table of this version with the record.
///
/// # Safety
/// `runtime` is the address of `_PyRuntime` in an interpreter of the layout's minor version, 3.13 or later.
pub(crate) unsafe fn check(
    runtime: *const u8,
    layout: &Layout,
    offsets: &DebugOffsetsLayout,
) -> Result<(), Contradiction> {
    // SAFETY: `_PyRuntime` begins with the record, which is larger than the largest offset used here.
    let word = |at: usize| unsafe { runtime.add(at).cast::<u64>().read_unaligned() };
    if word(0).to_le_bytes() != COOKIE || word(VERSION) >> 16 != 0x0300 | u64::from(layout.minor) {
        return Err(Contradiction::Unreadable);
    }
    if word(FREE_THREADED) != 0 {
        return Err(Contradiction::FreeThreaded);
    }
    let Chain::Shims { current_frame } = layout.thread.chain else { return Err(Contradiction::Unreadable) };
    let (frame, code, text) = (&layout.frame, &layout.code, &layout.text);
    let expected = [
        ("current_frame", offsets.current_frame, current_frame),
        ("previous", offsets.frame_previous, frame.previous),
        ("executable", offsets.frame_executable, frame.code),
        ("instr_ptr", offsets.frame_instruction, frame.instruction),
        ("owner", offsets.frame_owner, frame.owner),
        ("filename", offsets.code_filename, code.filename),
        ("name", offsets.code_filename + WORD, code.name),
        ("qualname", offsets.code_filename + 2 * WORD, code.qualname.unwrap_or_default()),
        ("linetable", offsets.code_filename + 3 * WORD, code.line_table),
        ("firstlineno", offsets.code_filename + 4 * WORD, code.first_line),
        ("co_code_adaptive", offsets.code_units, code.units),
        ("bytes.ob_size", offsets.bytes_length, text.bytes_length),
        ("bytes.ob_sval", offsets.bytes_length + WORD, text.bytes),
        ("unicode.state", offsets.text_state, text.state),
        ("unicode.length", offsets.text_state + WORD, text.length),
        ("unicode.asciiobject_size", offsets.text_state + 2 * WORD, text.ascii),
    ];
    match expected.into_iter().find(|&(_, at, ours)| word(at) != ours as u64) {
        Some((name, ..)) => Err(Contradiction::Moved(name)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record as an interpreter of that version would have it.
    fn record(layout: &Layout) -> Vec<u64> {
        let offsets = layout.debug_offsets.unwrap();
        let Chain::Shims { current_frame } = layout.thread.chain else { unreachable!() };
        let mut words = vec![u64::MAX; 128];
        words[0] = u64::from_le_bytes(COOKIE);
        words[1] = 0x0300_00f0 | u64::from(layout.minor) << 16;
        words[2] = 0;
        let (frame, code, text) = (&layout.frame, &layout.code, &layout.text);
        let mut put = |at: usize, values: &[usize]| {
            for (index, value) in values.iter().enumerate() {
                words[at / WORD + index] = *value as u64;
            }
        };
        put(offsets.current_frame, &[current_frame]);
        put(offsets.frame_previous, &[frame.previous]);
        put(offsets.frame_executable, &[frame.code]);
        put(offsets.frame_instruction, &[frame.instruction]);
        put(offsets.frame_owner, &[frame.owner]);
        put(
            offsets.code_filename,
            &[code.filename, code.name, code.qualname.unwrap(), code.line_table, code.first_line],
        );
        put(offsets.code_units, &[code.units]);
        put(offsets.bytes_length, &[text.bytes_length, text.bytes]);
        put(offsets.text_state, &[text.state, text.length, text.ascii]);
        words
    }

    fn verdict(words: &[u64], layout: &Layout) -> Result<(), Contradiction> {
        // SAFETY: the words are longer than any record.
        unsafe { check(words.as_ptr().cast(), layout, &layout.debug_offsets.unwrap()) }
    }

    #[test]
    fn every_difference_is_found() {
        for minor in 13..=Layout::NEWEST {
            let layout = Layout::of_minor(minor).unwrap();
            let words = record(layout);
            assert_eq!(verdict(&words, layout), Ok(()));
            let told = words.iter().enumerate().filter(|(_, word)| **word != u64::MAX).map(|(index, _)| index);
            for index in told {
                let mut changed = words.clone();
                changed[index] ^= 1 << 24;
                assert!(verdict(&changed, layout).is_err(), "3.{minor}, word {index}");
            }
        }
    }

    #[test]
    fn a_free_threaded_build_is_told_from_a_moved_field() {
        let layout = Layout::of_minor(14).unwrap();
        let mut words = record(layout);
        words[2] = 1;
        assert_eq!(verdict(&words, layout), Err(Contradiction::FreeThreaded));
    }
}

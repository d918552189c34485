//! The interpreter's description of its own layout: `_Py_DebugOffsets`, at the start of `_PyRuntime` from 3.13 on.
//!
//! The structure is meant for tools, but its own form changes with each minor version. So it is read by a table of
//! ours, and used to check the other tables. It replaces them only for fields that have moved within a minor version:
//! those of `PyInterpreterState`.

use crate::unavailable::Unavailable;
use crate::version::{Chain, DebugOffsetsLayout, GilLayout, ListsLayout, VersionLayout};

const COOKIE: [u8; 8] = *b"xdebugpy";
const VERSION: usize = 8;
const FREE_THREADED: usize = 16;
/// The offset of `interpreters_head`, in all versions.
const INTERPRETERS: usize = 40;
const WORD: usize = 8;
/// No structure is larger.
const LARGEST_INTERPRETER: usize = 1 << 24;
const LARGEST_GIL: usize = 1 << 12;

/// A difference between the interpreter's own description and the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contradiction {
    /// The structure is missing, or of another version.
    Unreadable,
    FreeThreaded,
    /// The field of that name has another offset.
    Moved(&'static str),
}

/// Compares the table of this version with the structure.
///
/// # Safety
/// `runtime` is the address of `_PyRuntime` in an interpreter of the layout's minor version, 3.13 or later.
pub(crate) unsafe fn check(
    runtime: *const u8,
    layout: &VersionLayout,
    offsets: &DebugOffsetsLayout,
) -> Result<(), Contradiction> {
    // SAFETY: `_PyRuntime` begins with the structure, which is larger than the largest offset used here.
    compare(|at| Some(unsafe { runtime.add(at).cast::<u64>().read_unaligned() }), layout, offsets)
}

impl VersionLayout {
    /// The number of bytes of `_PyRuntime` that [`VersionLayout::reported_lists`] needs.
    pub const RUNTIME_BYTES: usize = 1024;

    /// Returns the offsets that lead to all threads, as the interpreter itself reports them from 3.13 on. `runtime`
    /// holds the first bytes of `_PyRuntime` in a process with an interpreter of this version.
    pub fn reported_lists(&self, runtime: &[u8]) -> Result<ListsLayout, Unavailable> {
        let Some(offsets) = &self.debug_offsets else { return Ok(self.lists) };
        let word = |at: usize| Some(u64::from_le_bytes(runtime.get(at..at + WORD)?.try_into().ok()?));
        compare(word, self, offsets)?;
        Ok(lists(word, self, offsets)?)
    }
}

/// Reads the offsets. Those of thread states must equal the table's, because a walk uses others of that structure.
/// Those of interpreters are used as reported.
fn lists(
    word: impl Fn(usize) -> Option<u64>,
    layout: &VersionLayout,
    offsets: &DebugOffsetsLayout,
) -> Result<ListsLayout, Contradiction> {
    let lists = layout.lists;
    let expected = [
        ("next", offsets.next_thread, lists.next_thread),
        ("interp", offsets.next_thread + WORD, lists.interpreter),
        ("thread_id", offsets.thread_id, layout.thread.thread_id),
        ("native_thread_id", offsets.thread_id + WORD, lists.native_thread_id.unwrap_or_default()),
    ];
    if let Some((name, ..)) = expected.into_iter().find(|&(_, at, ours)| word(at) != Some(ours as u64)) {
        return Err(Contradiction::Moved(name));
    }
    let size = reported(&word, offsets.interpreter_size, LARGEST_INTERPRETER)?;
    // An interpreter contains a GIL, which need not be the one that it uses.
    let own_gil = reported(&word, offsets.gil + WORD, size)?;
    let in_gil = |at: usize| match reported(&word, at, size)?.checked_sub(own_gil) {
        Some(offset) if offset <= LARGEST_GIL => Ok(offset),
        _ => Err(Contradiction::Unreadable),
    };
    Ok(ListsLayout {
        interpreters: reported(&word, INTERPRETERS, LARGEST_INTERPRETER)?,
        next_interpreter: reported(&word, offsets.interpreter_size + 2 * WORD, size)?,
        threads: reported(&word, offsets.interpreter_size + 3 * WORD, size)?,
        modules: reported(&word, offsets.modules, size)?,
        gil: GilLayout::OfInterpreter {
            gil: reported(&word, offsets.gil, size)?,
            locked: in_gil(offsets.gil + 3 * WORD)?,
            holder: in_gil(offsets.gil + 4 * WORD)?,
        },
        ..lists
    })
}

/// Reads an offset in a structure of at most that size.
fn reported(word: impl Fn(usize) -> Option<u64>, at: usize, size: usize) -> Result<usize, Contradiction> {
    let offset = word(at).and_then(|word| usize::try_from(word).ok());
    offset.filter(|offset| *offset <= size).ok_or(Contradiction::Unreadable)
}

fn compare(
    word: impl Fn(usize) -> Option<u64>,
    layout: &VersionLayout,
    offsets: &DebugOffsetsLayout,
) -> Result<(), Contradiction> {
    let (Some(cookie), Some(version)) = (word(0), word(VERSION)) else { return Err(Contradiction::Unreadable) };
    if cookie.to_le_bytes() != COOKIE || version >> 16 != 0x0300 | u64::from(layout.minor) {
        return Err(Contradiction::Unreadable);
    }
    if word(FREE_THREADED) != Some(0) {
        return Err(Contradiction::FreeThreaded);
    }
    let Chain::Shims { current_frame } = layout.thread.chain else { return Err(Contradiction::Unreadable) };
    let (frame, code, text) = (&layout.frame, &layout.code, &layout.text);
    let expected = [
        ("current_frame", offsets.next_thread + 2 * WORD, current_frame),
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
    match expected.into_iter().find(|&(_, at, ours)| word(at) != Some(ours as u64)) {
        Some((name, ..)) => Err(Contradiction::Moved(name)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the structure as an interpreter of that version would have it.
    fn record(layout: &VersionLayout) -> Vec<u64> {
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
        let lists = layout.lists;
        let GilLayout::OfInterpreter { gil, holder, locked } = lists.gil else { unreachable!() };
        put(INTERPRETERS, &[lists.interpreters]);
        put(offsets.interpreter_size, &[200_000, 8, lists.next_interpreter, lists.threads]);
        put(offsets.modules, &[lists.modules]);
        put(offsets.gil, &[gil, 7000, 0, 7000 + locked, 7000 + holder]);
        put(offsets.next_thread, &[lists.next_thread, lists.interpreter, current_frame]);
        put(offsets.thread_id, &[layout.thread.thread_id, lists.native_thread_id.unwrap()]);
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

    fn check_words(words: &[u64], layout: &VersionLayout) -> Result<(), Contradiction> {
        // SAFETY: the words are longer than any such structure.
        unsafe { check(words.as_ptr().cast(), layout, &layout.debug_offsets.unwrap()) }
    }

    fn bytes(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn every_difference_is_detected() {
        for minor in 13..=VersionLayout::NEWEST {
            let layout = VersionLayout::of_minor(minor).unwrap();
            let words = record(layout);
            assert_eq!(check_words(&words, layout), Ok(()));
            let reported = words.iter().enumerate().filter(|(_, word)| **word != u64::MAX).map(|(index, _)| index);
            for index in reported {
                let mut changed = words.clone();
                changed[index] ^= 1 << 24;
                let is_readable = layout.reported_lists(&bytes(&changed)).is_ok();
                let offsets = layout.debug_offsets.unwrap();
                let unused = [offsets.interpreter_size + WORD, offsets.gil + 2 * WORD];
                assert_eq!(is_readable, unused.contains(&(index * WORD)), "3.{minor}, word {index}");
                assert!(
                    check_words(&changed, layout).is_err() || is_of_lists(index * WORD, layout),
                    "3.{minor}, word {index}"
                );
            }
        }
    }

    /// Returns whether a walk does not need the field.
    fn is_of_lists(at: usize, layout: &VersionLayout) -> bool {
        let offsets = layout.debug_offsets.unwrap();
        let of_threads = [0, WORD].map(|more| offsets.next_thread + more).contains(&at);
        at < offsets.next_thread && at >= INTERPRETERS || of_threads || (at - offsets.thread_id) / WORD < 2
    }

    #[test]
    fn offsets_that_move_within_a_version_are_used_as_reported() {
        for minor in 13..=VersionLayout::NEWEST {
            let layout = VersionLayout::of_minor(minor).unwrap();
            let mut words = record(layout);
            assert_eq!(layout.reported_lists(&bytes(&words)), Ok(layout.lists));
            let next = layout.debug_offsets.unwrap().interpreter_size / WORD + 2;
            words[next] += 16;
            let moved = ListsLayout { next_interpreter: layout.lists.next_interpreter + 16, ..layout.lists };
            assert_eq!(layout.reported_lists(&bytes(&words)), Ok(moved));
            assert_eq!(layout.reported_lists(&bytes(&words)[..80]), Err(Unavailable::FieldMoved("current_frame")));
        }
        let old = VersionLayout::of_minor(12).unwrap();
        assert_eq!(old.reported_lists(&[]), Ok(old.lists));
    }

    #[test]
    fn a_free_threaded_build_is_distinguished_from_a_moved_field() {
        let layout = VersionLayout::of_minor(14).unwrap();
        let mut words = record(layout);
        words[2] = 1;
        assert_eq!(check_words(&words, layout), Err(Contradiction::FreeThreaded));
    }
}

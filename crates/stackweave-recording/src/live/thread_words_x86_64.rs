//! Two words for each thread, in static TLS.
//!
//! Reached without a call: Rust's own thread-locals ask the loader in a library that was loaded later, and the loader may
//! then allocate, which a signal handler must not.
//!
//! Hot file: two instructions a word; async-signal-safe.

use core::arch::{asm, global_asm};

global_asm!(
    ".pushsection .tbss.stackweave_recording, \"awT\", @nobits",
    ".p2align 3",
    ".globl stackweave_recording_v0_lane",
    ".hidden stackweave_recording_v0_lane",
    ".type stackweave_recording_v0_lane, @object",
    ".size stackweave_recording_v0_lane, 8",
    "stackweave_recording_v0_lane: .zero 8",
    ".globl stackweave_recording_v0_list",
    ".hidden stackweave_recording_v0_list",
    ".type stackweave_recording_v0_list, @object",
    ".size stackweave_recording_v0_list, 8",
    "stackweave_recording_v0_list: .zero 8",
    ".popsection",
);

macro_rules! thread_word {
    ($symbol:literal, $get:ident, $set:ident) => {
        #[inline]
        pub(super) fn $get() -> usize {
            let word: usize;
            // SAFETY: loads this thread's own eight bytes of static TLS.
            unsafe {
                asm!(
                    concat!("mov {0}, qword ptr [rip + ", $symbol, "@gottpoff]"),
                    "mov {0}, qword ptr fs:[{0}]",
                    out(reg) word,
                    options(nostack, readonly, preserves_flags),
                );
            }
            word
        }

        pub(super) fn $set(word: usize) {
            // SAFETY: stores to this thread's own eight bytes of static TLS.
            unsafe {
                asm!(
                    concat!("mov {0}, qword ptr [rip + ", $symbol, "@gottpoff]"),
                    "mov qword ptr fs:[{0}], {1}",
                    out(reg) _,
                    in(reg) word,
                    options(nostack, preserves_flags),
                );
            }
        }
    };
}

thread_word!("stackweave_recording_v0_lane", lane, set_lane);
thread_word!("stackweave_recording_v0_list", list, set_list);

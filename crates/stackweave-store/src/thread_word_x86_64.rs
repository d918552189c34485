//! A word for each thread, in static TLS.
//!
//! Reached without a call: Rust's own thread-locals ask the loader in a library that was loaded later, and the loader may
//! then allocate, which a signal handler must not.

/// Makes a word that each thread has one of, 0 at first, and two functions, to get it and to set it: two instructions each,
/// async-signal-safe. The symbol must be one of its own in the program.
///
/// The loader has a small reserve for all such words of the libraries that are loaded later: a crate has few.
#[macro_export]
macro_rules! thread_word {
    ($visible:vis fn $get:ident, $set:ident, $symbol:literal) => {
        ::core::arch::global_asm!(
            concat!(".pushsection .tbss.", $symbol, ", \"awT\", @nobits"),
            ".p2align 3",
            concat!(".globl ", $symbol),
            concat!(".hidden ", $symbol),
            concat!(".type ", $symbol, ", @object"),
            concat!(".size ", $symbol, ", 8"),
            concat!($symbol, ": .zero 8"),
            ".popsection",
        );

        #[inline(always)]
        $visible fn $get() -> usize {
            let word: usize;
            // SAFETY: loads this thread's own eight bytes of static TLS.
            unsafe {
                ::core::arch::asm!(
                    concat!("mov {0}, qword ptr [rip + ", $symbol, "@gottpoff]"),
                    "mov {0}, qword ptr fs:[{0}]",
                    out(reg) word,
                    options(nostack, readonly, preserves_flags),
                );
            }
            word
        }

        $visible fn $set(word: usize) {
            // SAFETY: stores to this thread's own eight bytes of static TLS.
            unsafe {
                ::core::arch::asm!(
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

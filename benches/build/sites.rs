//! Thousands of small functions that capture once each: return addresses no unwinder has seen.

use std::fmt::Write;

const SITES: usize = 4000;

/// Returns the C source. Each function stores its own number; otherwise the compiler would fold functions of equal
/// shape into one.
pub(crate) fn source() -> String {
    let mut text = String::new();
    for index in 0..SITES {
        let words = 2 + index * 41 % 24;
        let registers = match index % 3 {
            0 => "",
            1 => "    __asm__ volatile(\"\" ::: \"rbx\", \"r12\");\n",
            _ => "    __asm__ volatile(\"\" ::: \"rbx\", \"rbp\", \"r12\", \"r13\", \"r14\", \"r15\");\n",
        };
        let _ = writeln!(
            text,
            "static void site_{index}(capture_fn capture, void **buffer, size_t max)\n{{\n    \
             volatile size_t room[{words}];\n    room[0] = {index};\n{registers}    capture(buffer, max);\n    room[1] = 1;\n}}\n"
        );
    }
    text.push_str("const site_fn bench_sites[] = {\n");
    for index in 0..SITES {
        let _ = writeln!(text, "    site_{index},");
    }
    let _ = writeln!(text, "}};\nconst size_t bench_site_count = {SITES};");
    text
}

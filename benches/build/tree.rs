//! A binary call tree with a capture at each node: the stack changes between any two captures.

use std::fmt::Write;

const LEVELS: usize = 12;

/// Returns the C source of the tree. It has `2^LEVELS - 1` nodes; each level is a separate function with two call
/// sites.
pub(crate) fn source(variant: &str) -> String {
    let mut text = String::new();
    for level in (0..LEVELS).rev() {
        let size = 16 + level * 8;
        let children = if level + 1 == LEVELS {
            String::new()
        } else {
            let child = format!("    {variant}_tree_{}(capture, buffer, max);\n", level + 1);
            format!("{child}    room[1] = 1;\n{child}")
        };
        let _ = writeln!(
            text,
            "__attribute__((noinline)) void {variant}_tree_{level}(capture_fn capture, void **buffer, size_t max)\n{{\n    \
             volatile char room[{size}];\n    room[0] = 1;\n    capture(buffer, max);\n{children}    room[2] = 1;\n}}\n"
        );
    }
    let _ = writeln!(
        text,
        "void {variant}_tree(capture_fn capture, void **buffer, size_t max)\n{{\n    \
         {variant}_tree_0(capture, buffer, max);\n}}\n"
    );
    text
}

//! A chain of distinct functions, each calling the next, with the frame shapes compilers make.

use std::fmt::Write;

const LINKS: usize = 128;

/// Returns the C source of the chain. `frame_pointers` says how the chain will be compiled: a link may use `rbp` freely
/// only without frame pointers.
pub(crate) fn source(variant: &str, frame_pointers: bool) -> String {
    let mut text = String::from("#include <alloca.h>\n\n");
    for index in (0..LINKS).rev() {
        link(&mut text, variant, index, frame_pointers);
    }
    let _ = writeln!(
        text,
        "void {variant}_chain(size_t links, leaf_fn leaf, void *argument)\n{{\n    \
         {variant}_link_0(links - 1, leaf, argument);\n}}\n"
    );
    text
}

/// Appends one function of the chain. Frames take 8 to 240 bytes. The size of every 8th frame is
/// known only at run time, and every 4th saves all callee-saved registers.
fn link(text: &mut String, variant: &str, index: usize, frame_pointers: bool) {
    let size = 8 + (index * 37 % 30) * 8;
    let onward = if index + 1 == LINKS {
        "(void)left;\n    leaf(argument);".to_owned()
    } else {
        format!("left ? {variant}_link_{}(left - 1, leaf, argument) : leaf(argument);", index + 1)
    };
    let dynamic = if index.is_multiple_of(8) {
        "    volatile char *dynamic = alloca(16 + (left & 15));\n    dynamic[0] = 1;\n"
    } else {
        ""
    };
    let registers = match (index % 4 == 1, frame_pointers) {
        (false, _) => "",
        (true, true) => "    __asm__ volatile(\"\" ::: \"rbx\", \"r12\", \"r13\", \"r14\", \"r15\");\n",
        (true, false) => "    __asm__ volatile(\"\" ::: \"rbx\", \"rbp\", \"r12\", \"r13\", \"r14\", \"r15\");\n",
    };
    let _ = writeln!(
        text,
        "__attribute__((noinline)) void {variant}_link_{index}(size_t left, leaf_fn leaf, void *argument)\n{{\n    \
         volatile char room[{size}];\n    room[0] = 1;\n{dynamic}{registers}    {onward}\n    room[1] = 1;\n}}\n"
    );
}

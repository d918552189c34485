//! Compiles the C part of the stack, without frame pointers and always optimised, as most C code is.

fn main() {
    println!("cargo::rerun-if-changed=src/sort.c");
    cc::Build::new().file("src/sort.c").opt_level(2).force_frame_pointer(false).compile("stackweave_demo_sort");
}

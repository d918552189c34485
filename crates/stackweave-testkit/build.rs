//! Compiles the fixtures: static libraries for in-process cases, shared ones for the loader's.
#![expect(clippy::expect_used, reason = "a fixture that does not compile must fail the build, with its reason")]

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// No PLT in the test programs: a linker may leave it without unwind tables, and then no oracle can unwind through
/// it.
const COMMON: &[&str] = &["-O2", "-fPIC", "-fno-plt", "-Wall", "-Wextra", "-Werror"];
const TABLES: &str = "-fasynchronous-unwind-tables";
const NO_FRAME_POINTER: &str = "-fomit-frame-pointer";

fn main() {
    let fixtures = Path::new(&env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo")).join("../../fixtures");
    println!("cargo::rerun-if-changed={}", fixtures.display());
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo"));

    static_library(
        &fixtures,
        "chains",
        &["chains.c", "coroutine.c", "tabled.c", "stepped.c"],
        &[TABLES, NO_FRAME_POINTER, "-falign-functions=1", "-fno-toplevel-reorder"],
    );
    let tree = ["call_tree.c"];
    static_library(&fixtures, "tree_omit", &tree, &[TABLES, NO_FRAME_POINTER, "-DSW_TREE=sw_tree_omit"]);
    static_library(&fixtures, "tree_keep", &tree, &[TABLES, "-fno-omit-frame-pointer", "-DSW_TREE=sw_tree_keep"]);
    let bare = ["-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-fno-exceptions", NO_FRAME_POINTER];
    static_library(&fixtures, "bare", &["bare.c", "assembly.S"], &bare);
    cpp_library(&fixtures);

    let plugin = |name: &str, sizes: [&str; 2]| {
        shared_library(&fixtures, &out, name, "plugin.S", &sizes);
    };
    plugin("plugin_inner", ["-DSW_OUTER=0x148", "-DSW_INNER=0x210"]);
    plugin("plugin_outer", ["-DSW_OUTER=0x210", "-DSW_INNER=0x148"]);
    allocating_libraries(&fixtures, &out);
    shared_library(&fixtures, &out, "known_amounts", "known_amounts.c", &[TABLES, NO_FRAME_POINTER]);
    shared_library(&fixtures, &out, "lazy", "lazy.c", &[TABLES, NO_FRAME_POINTER, "-fplt", "-Wl,-z,lazy"]);
}

/// Builds the libraries whose calls of `malloc` are hooked: one for each way in which such calls are bound.
fn allocating_libraries(fixtures: &Path, out: &Path) {
    let allocating = |name: &str, flags: &[&str]| shared_library(fixtures, out, name, "allocating.c", flags);
    allocating("alloc_now", &["-fplt", "-Wl,-z,now,-z,relro"]);
    allocating("alloc_lazy", &["-fplt", "-Wl,-z,lazy,-z,relro"]);
    allocating("alloc_ibt", &["-fplt", "-fcf-protection=full", "-Wl,-z,lazy,-z,ibtplt"]);
    allocating("alloc_norelro", &["-fplt", "-Wl,-z,now,-z,norelro"]);
    allocating("alloc_noplt", &["-fno-plt", "-Wl,-z,now", "-Wl,--hash-style=sysv"]);
    allocating("alloc_packed", &["-fno-plt", "-Wl,-z,pack-relative-relocs", "-Wl,--hash-style=gnu"]);
    allocating("alloc_later", &["-fplt", "-Wl,-z,now", "-DSW_CONSTRUCTOR"]);
    allocating("alloc_own", &["-fplt", "-Wl,-z,now", "-DSW_OWN_MALLOC", "-fno-builtin"]);
    allocating("alloc_own_lazy", &["-fplt", "-Wl,-z,lazy", "-DSW_OWN_MALLOC", "-fno-builtin"]);
    allocating("alloc_finder", &["-fplt", "-Wl,-z,now", "-Wl,--enable-new-dtags,-rpath,$ORIGIN/nested"]);
    shared_library(fixtures, out, "counter", "counter.c", &["-fno-builtin"]);
    let cpp = [TABLES, "-std=c++17", "-pthread", "-Wl,--no-as-needed", "-lstdc++"];
    shared_library(fixtures, out, "workload", "workload.cpp", &cpp);
    shared_library(fixtures, out, "stress", "stress.cpp", &cpp);
    let nested = out.join("nested");
    std::fs::create_dir_all(&nested).expect("a folder can be made");
    shared_library(fixtures, &nested, "alloc_nested", "allocating.c", &["-fplt", "-Wl,-z,now"]);
}

fn base() -> cc::Build {
    let mut build = cc::Build::new();
    build.no_default_flags(true).warnings(false);
    for flag in COMMON {
        build.flag(flag);
    }
    build
}

fn static_library(fixtures: &Path, name: &str, sources: &[&str], flags: &[&str]) {
    let mut build = base();
    for flag in flags {
        build.flag(flag);
    }
    for source in sources {
        build.file(fixtures.join(source));
    }
    build.compile(&format!("stackweave_fixture_{name}"));
}

fn cpp_library(fixtures: &Path) {
    let mut build = base();
    build.cpp(true).flag("-std=c++17").flag(TABLES).flag(NO_FRAME_POINTER);
    for source in ["exceptions.cpp", "library_callbacks.cpp"] {
        build.file(fixtures.join(source));
    }
    build.compile("stackweave_fixture_cpp");
}

/// Builds `lib{name}.so` and passes its path to the crate as the environment variable `SW_{NAME}`.
fn shared_library(fixtures: &Path, out: &Path, name: &str, source: &str, flags: &[&str]) {
    let library = out.join(format!("lib{name}.so"));
    let compiler = base().get_compiler();
    let status = Command::new(compiler.path())
        .args(COMMON)
        .args(["-shared", "-Wl,--build-id=none"])
        .args(flags)
        .arg(fixtures.join(source))
        .arg("-o")
        .arg(&library)
        .status()
        .expect("the C compiler runs");
    assert!(status.success(), "the C compiler failed on {source}");
    println!("cargo::rustc-env=SW_{}={}", name.to_uppercase(), library.display());
}

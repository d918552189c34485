//! Writes and compiles the C code whose stacks are captured.
#![expect(clippy::print_stdout, reason = "cargo reads a build script's standard output")]

mod chain;
mod sites;
mod tree;

use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// The C side of the `python` area.
const PYTHON: [&str; 4] = ["functions.c", "python_api.c", "torch_itself.c", "torch_way.c"];

const DRIVERS: [&str; 7] =
    ["bodies.c", "check.c", "evicted.c", "frame_pointer.c", "round_robin.c", "sites.c", "threads.c"];

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=c");
    println!("cargo::rerun-if-changed=build");
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("OUT_DIR is not set"))?);

    let without = generate(&out, "nofp.c", &(chain::source("nofp", false) + &tree::source("nofp")))?;
    let with = generate(&out, "fp.c", &(chain::source("fp", true) + &tree::source("fp")))?;
    let sites = generate(&out, "many_sites.c", &sites::source())?;
    compile("bench_nofp", false, &[without, sites]);

    let drivers = DRIVERS.iter().map(|file| Path::new("c").join(file));
    compile("bench_fp", true, &drivers.chain([with]).collect::<Vec<_>>());

    compile("bench_memory", false, &[Path::new("c").join("malloc_churn.c")]);
    compile("bench_python", false, &PYTHON.map(|file| Path::new("c/python").join(file)));
    Ok(())
}

fn generate(out: &Path, name: &str, source: &str) -> io::Result<PathBuf> {
    let path = out.join(name);
    fs::write(&path, format!("#include \"bench.h\"\n\n{source}"))?;
    Ok(path)
}

fn compile(library: &str, frame_pointers: bool, files: &[PathBuf]) {
    cc::Build::new()
        .include("c")
        .files(files)
        .opt_level(2)
        .force_frame_pointer(frame_pointers)
        .flag(if frame_pointers { "-fno-omit-frame-pointer" } else { "-fomit-frame-pointer" })
        .flag("-fno-optimize-sibling-calls")
        .flag("-fasynchronous-unwind-tables")
        .warnings(true)
        .flag("-Wno-unused-but-set-variable")
        .compile(library);
}

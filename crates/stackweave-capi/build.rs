//! Sets the linker arguments of the shared library.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let version = std::env::var("CARGO_PKG_VERSION_MAJOR").unwrap_or_default();
    for argument in [
        // The name that hosts record as a dependency; it changes with each incompatible version.
        format!("-Wl,-soname,libstackweave.so.{version}"),
        // The library calls its own functions, even if a second copy with another name is loaded.
        "-Wl,-Bsymbolic-functions".to_owned(),
        // Threads that captured run code of the library when they end, even after `dlclose`.
        "-Wl,-z,nodelete".to_owned(),
    ] {
        println!("cargo::rustc-cdylib-link-arg={argument}");
    }
}

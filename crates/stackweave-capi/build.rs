//! How the shared library is linked.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let version = std::env::var("CARGO_PKG_VERSION_MAJOR").unwrap_or_default();
    for argument in [
        // What hosts record as needed; it changes when their calls would no longer work.
        format!("-Wl,-soname,libstackweave.so.{version}"),
        // A second copy in the process, under another name, is not called by the first.
        "-Wl,-Bsymbolic-functions".to_owned(),
        // Threads that captured run code of the library when they end, also after a `dlclose`.
        "-Wl,-z,nodelete".to_owned(),
    ] {
        println!("cargo::rustc-cdylib-link-arg={argument}");
    }
}

//! The cost of a block in the example host of `examples/cpp-host`: an allocator that captures while it holds its lock.
//!
//! Each interpreter loads the host, Stackweave's C library and this library, and runs `python/captures/in_host.py`.

mod exports;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::options::Options;
use crate::own_library;
use crate::python::{effort_name, interpreters, lines_of, reported_figure};
use crate::report::Case;

const BENCHES: [&str; 3] = ["host/quiet", "host/with-gil", "host/contended"];
const SCRIPT: &str = "in_host.py";
const ROUNDS: (usize, usize) = (1, 5);

pub(crate) fn run(options: &Options, done: &mut dyn FnMut(Case) -> io::Result<()>) -> io::Result<()> {
    let wanted = BENCHES.into_iter().filter(|bench| bench.contains(&options.only)).collect::<Vec<_>>();
    if wanted.is_empty() {
        return Ok(());
    }
    let Some(libraries) = Libraries::build()? else {
        return writeln!(io::stderr(), "host: this program's library is missing; run the benchmark through cargo");
    };
    for python in interpreters() {
        writeln!(io::stderr(), "host: {}", python.version)?;
        let mut reported = Vec::new();
        for _ in 0..options.effort.pick(ROUNDS.0, ROUNDS.1) {
            let mut command = Command::new(&python.executable);
            command.arg("-B").arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("python/captures").join(SCRIPT));
            command.arg(&libraries.own).arg(effort_name(options.effort)).arg(&libraries.ours).arg(&libraries.host);
            reported.extend(lines_of(&mut command, SCRIPT)?);
        }
        for bench in &wanted {
            reported_figure::cases(bench, &reported).into_iter().try_for_each(&mut *done)?;
        }
    }
    Ok(())
}

/// The libraries that an interpreter loads.
struct Libraries {
    /// The library of this program.
    own: PathBuf,
    /// Stackweave's C library.
    ours: PathBuf,
    host: PathBuf,
}

impl Libraries {
    /// Builds Stackweave's library and the host, so that the figures are of this source tree.
    fn build() -> io::Result<Option<Self>> {
        let Some(own) = own_library::find() else { return Ok(None) };
        let Some(release) = own.parent().and_then(Path::parent) else { return Ok(None) };
        let Some(target) = release.parent() else { return Ok(None) };
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let cargo = ["build", "--quiet", "--release", "--package", "stackweave-capi", "--target-dir"];
        must_run(Command::new("cargo").args(cargo).arg(target).current_dir(&root))?;
        let folder = target.join("host");
        std::fs::create_dir_all(&folder)?;
        for name in ["libstackweave.so", "libstackweave.so.0"] {
            let link = folder.join(name);
            let _ = std::fs::remove_file(&link);
            std::os::unix::fs::symlink(target.join("release/libstackweave.so"), link)?;
        }
        let (ours, host) = (folder.join("libstackweave.so"), folder.join("libhost.so"));
        let mut make = Command::new("make");
        make.args(["-s", "-C", "examples/cpp-host"]).arg(&host).current_dir(&root);
        must_run(make.arg(format!("BUILD={}", folder.display())).arg(format!("LIBRARY={}", folder.display())))?;
        Ok(Some(Self { own, ours, host }))
    }
}

fn must_run(command: &mut Command) -> io::Result<()> {
    let status = command.status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("{command:?}: {status}"))) }
}

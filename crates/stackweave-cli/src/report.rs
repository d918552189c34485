//! `stackweave report`: everything about a recording in one page.

use std::io;
use std::path::{Path, PathBuf};

use stackweave_export::{ExportOptions, Format, is_report};
use stackweave_files::output::is_stream;
use stackweave_profile::AggregateOptions;

use crate::arguments::Report;
use crate::browser;
use crate::export::{beside, export_to};
use crate::failure::Failure;
use crate::opening::open;
use crate::output;
use crate::safe_output::say;

pub(crate) fn run(arguments: &Report) -> Result<(), Failure> {
    let given = arguments.output.as_deref().map(output::place);
    let output = given.unwrap_or_else(|| beside(&arguments.recordings[0], Format::Report));
    if arguments.open && is_stream(&output) {
        return Err(Failure::arguments("--open needs a file: leave it away, or name one with --output"));
    }
    output::check(&output)?;
    let recording = arguments.extent.recording(&arguments.recordings)?;
    let before = arguments.before.as_deref().map(|path| open(&[path])).transpose()?;
    let part = AggregateOptions {
        threads: arguments.extent.thread.clone(),
        range: arguments.extent.range()?,
        ..AggregateOptions::default()
    };
    let options = ExportOptions {
        part,
        title: arguments.title.clone(),
        sources: arguments.sources.chosen(),
        before: before.as_ref(),
        // One that was made before is only made anew.
        overwrite: arguments.force || is_report(&output),
        max_size: arguments.max_size.unwrap_or_default(),
        ..ExportOptions::default()
    };
    let said = export_to(&recording, Format::Report, &output, &options)?;
    let said = if is_too_large(&output) { format!("{said} {TOO_LARGE}") } else { said };
    if is_stream(&output) {
        say(said);
        return Ok(());
    }
    let address =
        address(&output).map_err(|error| Failure::new(format!("can't find {}: {error}", output.display())))?;
    if arguments.open {
        say(said);
        return browser::open(&address);
    }
    say(format_args!("{said} Open it in a browser: {address}"));
    Ok(())
}

/// Pages from here on may be more than a browser takes.
const MANY_BYTES: u64 = 1 << 30;
const TOO_LARGE: &str = "That is much for a browser: --from and --to, --process or --thread make it less.";

fn is_too_large(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.len() >= MANY_BYTES)
}

/// The address of a file for browsers.
fn address(path: &Path) -> io::Result<String> {
    let whole: PathBuf = path.canonicalize()?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte);
    let text = |byte: &u8| if is_plain(*byte) { char::from(*byte).to_string() } else { format!("%{byte:02X}") };
    Ok(["file://".to_owned()].into_iter().chain(whole.as_os_str().as_encoded_bytes().iter().map(text)).collect())
}

#[cfg(test)]
mod tests {
    use stackweave_testkit::folder::Folder;

    use super::*;

    #[test]
    fn an_address_has_only_what_browsers_take() {
        let folder = Folder::new();
        let path = folder.write("a b#\u{e9}%.html", b"");
        let said = address(&path).unwrap_or_default();
        assert!(said.starts_with("file:///") && said.ends_with("/a%20b%23%C3%A9%25.html"), "{said}");
    }
}

//! `stackweave report`: writes one page about a recording.

use std::io;
use std::path::{Path, PathBuf};

use stackweave_export::{ExportOptions, Format, is_report};
use stackweave_files::output::is_stream;
use stackweave_profile::AggregateOptions;

use crate::arguments::ReportArguments;
use crate::browser;
use crate::export::{beside, export_to};
use crate::failure::Failure;
use crate::open_recordings::open;
use crate::output;
use crate::safe_output::say;

pub(crate) fn run(arguments: &ReportArguments) -> Result<(), Failure> {
    let given = arguments.output.as_deref().map(output::path);
    let output = given.unwrap_or_else(|| beside(&arguments.recordings[0], Format::Report));
    if arguments.open && is_stream(&output) {
        return Err(Failure::arguments("--open needs a file: leave it out, or name one with --output"));
    }
    output::check(&output)?;
    let recording = arguments.scope.recording(&arguments.recordings)?;
    let before = arguments.before.as_deref().map(|path| open(&[path])).transpose()?;
    let part = AggregateOptions {
        threads: arguments.scope.thread.clone(),
        range: arguments.scope.range()?,
        ..AggregateOptions::default()
    };
    let options = ExportOptions {
        part,
        title: arguments.title.clone(),
        sources: arguments.sources.chosen(),
        before: before.as_ref(),
        // An older report may be replaced without --overwrite.
        overwrite: arguments.overwrite || is_report(&output),
        max_size: arguments.max_size.unwrap_or_default(),
        ..ExportOptions::default()
    };
    let message = export_to(&recording, Format::Report, &output, &options)?;
    let message = if is_too_large(&output) { format!("{message} {TOO_LARGE}") } else { message };
    if is_stream(&output) {
        say(message);
        return Ok(());
    }
    let address =
        address(&output).map_err(|error| Failure::new(format!("can't find {}: {error}", output.display())))?;
    if arguments.open {
        say(message);
        return browser::open(&address);
    }
    say(format_args!("{message} Open it in a browser: {address}"));
    Ok(())
}

/// Larger pages may be more than a browser can open.
const LARGE_PAGE: u64 = 1 << 30;
const TOO_LARGE: &str = "That is large for a browser: --start and --end, --process or --thread make it smaller.";

fn is_too_large(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.len() >= LARGE_PAGE)
}

/// Returns the URL of a file.
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
    fn characters_that_urls_can_not_contain_are_escaped() {
        let folder = Folder::new();
        let path = folder.write("a b#\u{e9}%.html", b"");
        let url = address(&path).unwrap_or_default();
        assert!(url.starts_with("file:///") && url.ends_with("/a%20b%23%C3%A9%25.html"), "{url}");
    }
}

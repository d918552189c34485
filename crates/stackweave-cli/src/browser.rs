//! Opens a page in the user's browser, without waiting for it.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use crate::failure::Failure;

/// Opens an address with a command of `BROWSER` (commands are separated by colons; the first that exists is used), or
/// with the default program of the desktop.
pub(crate) fn open(address: &str) -> Result<(), Failure> {
    let commands = std::env::var_os("BROWSER").unwrap_or_default();
    let commands = commands.to_string_lossy().into_owned();
    let browsers = commands.split(':').filter(|browser| !browser.trim().is_empty()).chain(["xdg-open"]);
    for browser in browsers {
        match start(&words(browser, address)) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(Failure::new(format!("can't start {browser}: {error}"))),
        }
    }
    Err(Failure::new(format!("there is no browser to open {address} with: BROWSER can name one")))
}

/// Splits a command into words, with the address in place of `%s` or at the end.
fn words(browser: &str, address: &str) -> Vec<String> {
    let mut words: Vec<String> = browser.split_whitespace().map(|word| word.replace("%s", address)).collect();
    if !browser.contains("%s") {
        words.push(address.to_owned());
    }
    words
}

/// Starts a command that outlives this process, with its output discarded.
fn start(words: &[String]) -> io::Result<()> {
    let Some((program, arguments)) = words.split_first() else { return Ok(()) };
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.process_group(0).spawn().map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_replaces_the_placeholder_or_follows_the_command() {
        assert_eq!(words("firefox", "file:///a"), ["firefox", "file:///a"]);
        assert_eq!(words("chromium --app=%s --new", "file:///a"), ["chromium", "--app=file:///a", "--new"]);
    }
}

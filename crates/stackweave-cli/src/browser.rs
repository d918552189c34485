//! Shows a page in the user's browser, and does not wait for that.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use crate::failure::Failure;

/// Opens an address with what `BROWSER` says (several, with colons between them, of which the first that is there counts), or
/// as the desktop does.
pub(crate) fn open(address: &str) -> Result<(), Failure> {
    let said = std::env::var_os("BROWSER").unwrap_or_default();
    let said = said.to_string_lossy().into_owned();
    let browsers = said.split(':').filter(|browser| !browser.trim().is_empty()).chain(["xdg-open"]);
    for browser in browsers {
        match start(&words(browser, address)) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(Failure::new(format!("can't start {browser}: {error}"))),
        }
    }
    Err(Failure::new(format!("there is no browser to open {address} with: BROWSER can name one")))
}

/// A command with the address in the place of `%s`, or behind it.
fn words(browser: &str, address: &str) -> Vec<String> {
    let mut words: Vec<String> = browser.split_whitespace().map(|word| word.replace("%s", address)).collect();
    if !browser.contains("%s") {
        words.push(address.to_owned());
    }
    words
}

/// Starts a command that outlives this one, and says nothing here.
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
    fn the_address_is_where_the_browser_wants_it() {
        assert_eq!(words("firefox", "file:///a"), ["firefox", "file:///a"]);
        assert_eq!(words("chromium --app=%s --new", "file:///a"), ["chromium", "--app=file:///a", "--new"]);
    }
}

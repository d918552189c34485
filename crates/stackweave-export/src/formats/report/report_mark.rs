//! Recognizes files that are reports.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// A mark near the beginning of every report.
const MARK: &str = "<title>Stackweave report</title>";
const MARK_WITHIN: u64 = 4096;

/// Returns whether a file is a report of any version, which can be replaced by a newer one.
pub fn is_report(path: &Path) -> bool {
    if !path.metadata().is_ok_and(|metadata| metadata.is_file()) {
        return false;
    }
    let mut beginning = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MARK_WITHIN).read_to_end(&mut beginning));
    let text = String::from_utf8_lossy(&beginning);
    read.is_ok() && text.starts_with("<!doctype html>") && text.contains(MARK)
}

#[cfg(test)]
mod tests {
    use stackweave_testkit::folder::Folder;

    use super::super::PAGE;
    use super::*;

    #[test]
    fn only_reports_are_recognized() {
        let folder = Folder::new();
        let is_known = |name: &str, text: &str| is_report(&folder.write(name, text.as_bytes()));
        assert!(is_known("a.html", PAGE));
        assert!(!is_known("b.html", "<!doctype html><title>Diary</title>") && !is_known("c.html", MARK));
        assert!(!is_report(folder.path()) && !is_report(&folder.file("none")));
    }
}

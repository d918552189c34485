//! Which source files a report contains, in sentences.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// The number of folders that are named.
const FOLDERS: usize = 3;

/// The source files whose texts are in an export.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IncludedSources {
    /// The number of files of each folder that are in the export.
    pub folders: BTreeMap<PathBuf, usize>,
    /// Whether files were left out because the recording is of another user or machine.
    pub is_foreign: bool,
}

impl IncludedSources {
    /// Returns a sentence about the files in the report; `None` if there are none.
    pub fn included_text(&self) -> Option<String> {
        let files: usize = self.folders.values().sum();
        if files == 0 {
            return None;
        }
        let mut folders: Vec<(&PathBuf, &usize)> = self.folders.iter().collect();
        folders.sort_by(|(a, files), (b, others)| others.cmp(files).then_with(|| a.cmp(b)));
        let mut named: Vec<String> =
            folders.iter().take(FOLDERS).map(|(folder, _)| folder.display().to_string()).collect();
        if let Some(more @ 1..) = folders.len().checked_sub(FOLDERS) {
            named.push(format!("{more} more folder{}", if more == 1 { "" } else { "s" }));
        }
        let last = named.pop().unwrap_or_default();
        let from = if named.is_empty() { last } else { format!("{} and {last}", named.join(", ")) };
        let texts = if files == 1 {
            "the text of 1 source file".to_owned()
        } else {
            format!("the texts of {files} source files")
        };
        Some(format!("The report contains {texts}, from {from}; --no-sources leaves them out."))
    }

    /// Returns a sentence about files that were left out, and how to include them; `None` if none were.
    pub fn left_out_text(&self) -> Option<String> {
        self.is_foreign.then(|| {
            "Source files are left out, because this user has not made the recording on this machine: \
             stackweave report --sources, or sources=True in Python, includes those that exist here."
                .to_owned()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn included(folders: &[(&str, usize)]) -> IncludedSources {
        let folders = folders.iter().map(|(folder, files)| (PathBuf::from(folder), *files)).collect();
        IncludedSources { folders, is_foreign: false }
    }

    #[test]
    fn the_folders_with_most_files_are_named() {
        assert_eq!((included(&[]).included_text(), included(&[]).left_out_text()), (None, None));
        let one = "The report contains the text of 1 source file, from /a; --no-sources leaves them out.";
        assert_eq!(included(&[("/a", 1)]).included_text().as_deref(), Some(one));
        let many =
            included(&[("/a", 1), ("/b", 5), ("/c", 2), ("/d", 2), ("/e", 1)]).included_text().unwrap_or_default();
        assert!(many.contains("11 source files, from /b, /c, /d and 2 more folders;"), "{many}");
    }
}

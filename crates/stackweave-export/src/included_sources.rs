//! Which source files a page has with it, in sentences.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// So many folders are named.
const FOLDERS: usize = 3;

/// The source files whose texts are in an export.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IncludedSources {
    /// How many files of each folder.
    pub folders: BTreeMap<PathBuf, usize>,
    /// Whether files were left out because the recording is not this user's, or not of this machine.
    pub is_foreign: bool,
}

impl IncludedSources {
    /// Returns the sentence that says which files are in it; `None` if there are none.
    pub fn put_in(&self) -> Option<String> {
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

    /// Returns the sentence that says that files were left out, and how to get them; `None` if none were.
    pub fn left_out(&self) -> Option<String> {
        self.is_foreign.then(|| {
            "Source files are left out, as this user has not made the recording on this machine: \
             stackweave report --sources, or sources=True in Python, puts in those that are here."
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
        assert_eq!((included(&[]).put_in(), included(&[]).left_out()), (None, None));
        let one = "The report contains the text of 1 source file, from /a; --no-sources leaves them out.";
        assert_eq!(included(&[("/a", 1)]).put_in().as_deref(), Some(one));
        let many = included(&[("/a", 1), ("/b", 5), ("/c", 2), ("/d", 2), ("/e", 1)]).put_in().unwrap_or_default();
        assert!(many.contains("11 source files, from /b, /c, /d and 2 more folders;"), "{many}");
    }
}

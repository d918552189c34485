//! The processes of the area `report`, in their order: later ones read the files that earlier ones write.

use std::path::PathBuf;

use stackweave_export::Format;

use super::build;
use crate::options::Effort;

/// The names of the recordings, without a suffix.
pub(super) const CALLS: &str = "calls";
pub(super) const MEMORY: &str = "memory";
/// The suffix of the cases that have a target.
pub(super) const TARGET_EVENTS: &str = "10 M events";

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Process {
    /// This program.
    Own(Vec<String>),
    /// The Python that has the peers and our package.
    Python(Vec<String>),
    /// `browser/open.mjs`.
    Browser(Vec<String>),
}

/// The arguments of child processes.
#[derive(Debug)]
pub(super) struct Setting {
    /// The folder for all files.
    pub(super) folder: PathBuf,
    pub(super) python: PathBuf,
    pub(super) package: Option<PathBuf>,
    pub(super) speedscope: Option<PathBuf>,
}

impl Setting {
    fn own(&self, job: &str, arguments: &[&str]) -> Process {
        Process::Own(words(&[&[job, &self.folder.display().to_string()], arguments].concat()))
    }

    fn path(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    /// Opens our page of a recording in both browsers.
    fn open_ours(&self, recording: &str, case: &str) -> [Process; 2] {
        let page = build::output(&self.folder, recording, Format::Report).display().to_string();
        ["Chromium", "Firefox"].map(|browser| {
            let case = format!("{browser}, {case}");
            Process::Browser(words(&[&browser.to_lowercase(), "ours", &case, &page]))
        })
    }
}

fn words(of: &[&str]) -> Vec<String> {
    of.iter().map(|word| (*word).to_owned()).collect()
}

pub(super) fn processes(setting: &Setting, effort: Effort) -> Vec<Process> {
    let sizes = match effort {
        Effort::Quick => &[1_000_000][..],
        Effort::Full => &[1_000_000, 10_000_000],
    };
    sizes.iter().flat_map(|events| [of_calls(setting, *events), of_memory(setting, *events)]).flatten().collect()
}

/// Returns the processes for our page of calls, and for speedscope's page of the same recording.
fn of_calls(setting: &Setting, events: usize) -> Vec<Process> {
    let case = format!("calls, {} M events", events / 1_000_000);
    let mut all = vec![setting.own("record", &[&events.to_string()])];
    all.push(setting.own("build", &[CALLS, Format::Report.name(), "ours", &case]));
    all.extend(setting.open_ours(CALLS, &case));
    if let Some(speedscope) = &setting.speedscope {
        all.push(setting.own("build", &[CALLS, Format::Speedscope.name(), "speedscope", &case]));
        let file = build::output(&setting.folder, CALLS, Format::Speedscope).display().to_string();
        let case = format!("Chromium, {case}");
        let folder = speedscope.display().to_string();
        all.push(Process::Browser(words(&["chromium", "speedscope", &case, &file, &folder])));
    }
    all
}

/// Returns the processes for our page and memray's page of the same program, which allocates and frees `events / 2`
/// times.
fn of_memory(setting: &Setting, events: usize) -> Vec<Process> {
    let case = format!("allocations, {} M events", events / 1_000_000);
    let python = setting.python.display().to_string();
    let program = words(&["pages/allocations.py", &(events / 2).to_string()]);
    let (of_ours, of_memray) = (setting.path("memory.swv"), setting.path("memory.bin"));
    let record = |command: &[&str]| Process::Python([words(command), program.clone()].concat());
    let mut all = vec![record(&["-m", "stackweave", "memory", "--quiet", "--overwrite", "-o", &of_ours])];
    all.push(setting.own("build", &[MEMORY, Format::Report.name(), "ours", &case]));
    all.extend(setting.open_ours(MEMORY, &case));
    all.push(record(&["-m", "memray", "run", "--quiet", "--force", "-o", &of_memray]));
    for peer in ["memray", "memray, temporal"] {
        all.push(setting.own("memray", &[&python, peer, &case]));
        let page = setting.path(&format!("{peer}.html"));
        all.push(Process::Browser(words(&["chromium", peer, &format!("Chromium, {case}"), &page])));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_built_before_they_are_opened() {
        let setting = Setting { folder: "f".into(), python: "p".into(), package: None, speedscope: Some("s".into()) };
        let all = processes(&setting, Effort::Full);
        for (place, process) in all.iter().enumerate() {
            let Process::Browser(open) = process else { continue };
            let case = open[2].split_once(", ").map(|(_, case)| case);
            let is_built = |before: &Process| match before {
                Process::Own(job) => job.contains(&open[1]) && job.last().map(String::as_str) == case,
                Process::Python(_) | Process::Browser(_) => false,
            };
            assert!(all[..place].iter().any(is_built), "{open:?}");
        }
    }
}

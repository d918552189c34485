//! Descriptions of what is missing in a recording.

use core::fmt;
use std::path::PathBuf;

use super::damage::Damage;
use crate::file::LossReason;

/// The missing data, as far as it is known. [`Missing::sentences`] describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Missing {
    /// The recording has no end: its program was killed, or still runs.
    pub is_unclosed: bool,
    /// The number of bytes at the end of the file that are an incomplete block.
    pub cut_bytes: u64,
    /// The ranges of the file that can't be read.
    pub damaged: Damage,
    /// The numbers of events that the recorder lost, by reason.
    pub lost: Vec<(LossReason, u64)>,
    /// The number of blocks of kinds that this version does not know.
    pub unknown_blocks: u64,
    /// Blocks of a later version.
    pub too_new: Damage,
    /// Blocks of processes whose Start is missing.
    pub orphans: Damage,
    /// The files that were ignored, with the reasons.
    pub skipped_files: Vec<String>,
    /// Processes that occur twice.
    pub duplicates: Vec<DuplicateProcess>,
}

/// Two recordings of one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DuplicateProcess {
    /// The process.
    pub pid: u32,
    /// The file with all of its events.
    pub kept: PathBuf,
    /// The file whose recording was ignored, or the other one.
    pub other: PathBuf,
    /// Whether each has events that the other does not have, so that both are read.
    pub both_are_read: bool,
}

impl Missing {
    /// Returns whether nothing is missing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns whether no recorded events are missing. Ignored duplicates do not count.
    pub fn is_complete(&self) -> bool {
        let duplicates: Vec<DuplicateProcess> =
            self.duplicates.iter().filter(|duplicate| duplicate.both_are_read).cloned().collect();
        Self { duplicates, ..self.clone() }.is_empty()
    }

    /// Returns the number of events that the recorder lost.
    pub fn events_lost(&self) -> u64 {
        self.lost.iter().fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }

    /// Returns a sentence for everything that is missing.
    pub fn sentences(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        if self.is_unclosed {
            sentences.push("The recording was not closed: its program was killed, or still runs.".to_owned());
        }
        if self.cut_bytes > 0 {
            sentences.push(format!("The file ends inside a block: its last {} can't be read.", bytes(self.cut_bytes)));
        }
        if !self.damaged.is_empty() {
            sentences.push(format!(
                "The file is damaged: {} can't be read ({}).",
                bytes(self.damaged.bytes()),
                self.damaged
            ));
        }
        for (reason, count) in &self.lost {
            sentences.push(format!("{} lost while recording: {reason}.", events(*count)));
        }
        if self.unknown_blocks > 0 {
            let blocks = counted(self.unknown_blocks, "block");
            sentences.push(format!("A newer Stackweave wrote {blocks} of a kind that this one does not know."));
        }
        if !self.too_new.is_empty() {
            let size = bytes(self.too_new.bytes());
            sentences.push(format!("A newer Stackweave wrote {size} that this one can't read; please update."));
        }
        if !self.orphans.is_empty() {
            let size = bytes(self.orphans.bytes());
            sentences.push(format!("{size} belong to a process whose start can't be read ({}).", self.orphans));
        }
        sentences.extend(self.skipped_files.iter().map(|why| format!("Ignored: {why}.")));
        sentences.extend(self.duplicates.iter().map(DuplicateProcess::to_string));
        sentences
    }

    /// Adds what is missing in another part of the same recording.
    pub fn add_all(&mut self, other: &Self) {
        self.is_unclosed |= other.is_unclosed;
        self.cut_bytes = self.cut_bytes.saturating_add(other.cut_bytes);
        self.damaged.add_all(&other.damaged);
        other.lost.iter().for_each(|(reason, count)| self.add_lost(*reason, *count));
        self.unknown_blocks += other.unknown_blocks;
        self.too_new.add_all(&other.too_new);
        self.orphans.add_all(&other.orphans);
        self.skipped_files.extend_from_slice(&other.skipped_files);
        self.duplicates.extend_from_slice(&other.duplicates);
    }

    pub(crate) fn add_lost(&mut self, reason: LossReason, count: u64) {
        match self.lost.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, sum)) => *sum = sum.saturating_add(count),
            None => self.lost.push((reason, count)),
        }
    }
}

/// Writes the sentences, one in each line.
impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentences().join("\n"))
    }
}

impl fmt::Display for DuplicateProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (pid, kept, other) = (self.pid, self.kept.display(), self.other.display());
        if self.both_are_read {
            return write!(
                f,
                "{kept} and {other} both contain process {pid}, each with different events: events in both count twice."
            );
        }
        write!(f, "{other} contains process {pid}, which {kept} contains, too: it is read once.")
    }
}

fn counted(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

fn bytes(count: u64) -> String {
    counted(count, "byte")
}

fn events(count: u64) -> String {
    if count == 1 { "1 event was".to_owned() } else { format!("{count} events were") }
}

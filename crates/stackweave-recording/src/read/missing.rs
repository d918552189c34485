//! What a recording does not hold, in sentences.

use core::fmt;
use std::path::PathBuf;

use super::damage::Damage;
use crate::file::LossReason;

/// What is missing, as far as that is known. [`Missing::sentences`] says it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Missing {
    /// The recording has no end: its program was killed, or still runs.
    pub is_unclosed: bool,
    /// Bytes at the end of the file that are no whole block.
    pub cut_bytes: u64,
    /// Places in the file that can't be read.
    pub damaged: Damage,
    /// Events that the recorder could not keep, by reason.
    pub lost: Vec<(LossReason, u64)>,
    /// Blocks of kinds that came after this version.
    pub unknown_blocks: u64,
    /// Bytes of blocks of a version that came after this one.
    pub too_new: Damage,
    /// Blocks whose beginning, which tells whose they are, is missing.
    pub orphans: Damage,
    /// Files that were left out, and why.
    pub skipped_files: Vec<String>,
    /// Recordings that are there twice.
    pub twice: Vec<Twice>,
}

/// Two recordings of one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Twice {
    /// The process.
    pub pid: u32,
    /// The file that holds all of it.
    pub kept: PathBuf,
    /// The file whose recording was left out, or the other one.
    pub other: PathBuf,
    /// Each holds something that the other does not, so both are read.
    pub both_are_read: bool,
}

impl Missing {
    /// Whether nothing is missing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns whether nothing that the recorder has seen is missing: of what is there twice, the one is enough.
    pub fn is_complete(&self) -> bool {
        let twice: Vec<Twice> = self.twice.iter().filter(|twice| twice.both_are_read).cloned().collect();
        Self { twice, ..self.clone() }.is_empty()
    }

    /// How many events the recorder could not keep.
    pub fn events_lost(&self) -> u64 {
        self.lost.iter().fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }

    /// Everything that is missing, a sentence each.
    pub fn sentences(&self) -> Vec<String> {
        let mut told = Vec::new();
        if self.is_unclosed {
            told.push("The recording was not closed: its program was killed, or still runs.".to_owned());
        }
        if self.cut_bytes > 0 {
            told.push(format!("The file ends inside a block: its last {} can't be read.", bytes(self.cut_bytes)));
        }
        if !self.damaged.is_empty() {
            told.push(format!(
                "The file is damaged: {} can't be read ({}).",
                bytes(self.damaged.bytes()),
                self.damaged
            ));
        }
        for (reason, count) in &self.lost {
            told.push(format!("{} lost while recording: {reason}.", events(*count)));
        }
        if self.unknown_blocks > 0 {
            let blocks = counted(self.unknown_blocks, "block");
            told.push(format!("A newer Stackweave wrote {blocks} of a kind that this one does not know."));
        }
        if !self.too_new.is_empty() {
            let size = bytes(self.too_new.bytes());
            told.push(format!("A newer Stackweave wrote {size} that this one can't read; please update."));
        }
        if !self.orphans.is_empty() {
            let size = bytes(self.orphans.bytes());
            told.push(format!("{size} belong to a process whose start can't be read ({}).", self.orphans));
        }
        told.extend(self.skipped_files.iter().map(|why| format!("Left out: {why}.")));
        told.extend(self.twice.iter().map(Twice::to_string));
        told
    }

    /// Adds what was missing of another part of the same recording.
    pub fn add_all(&mut self, other: &Self) {
        self.is_unclosed |= other.is_unclosed;
        self.cut_bytes = self.cut_bytes.saturating_add(other.cut_bytes);
        self.damaged.add_all(&other.damaged);
        other.lost.iter().for_each(|(reason, count)| self.add_lost(*reason, *count));
        self.unknown_blocks += other.unknown_blocks;
        self.too_new.add_all(&other.too_new);
        self.orphans.add_all(&other.orphans);
        self.skipped_files.extend_from_slice(&other.skipped_files);
        self.twice.extend_from_slice(&other.twice);
    }

    pub(crate) fn add_lost(&mut self, reason: LossReason, count: u64) {
        match self.lost.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, sum)) => *sum = sum.saturating_add(count),
            None => self.lost.push((reason, count)),
        }
    }
}

/// The sentences, a line each.
impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentences().join("\n"))
    }
}

impl fmt::Display for Twice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (pid, kept, other) = (self.pid, self.kept.display(), self.other.display());
        if self.both_are_read {
            return write!(
                f,
                "{kept} and {other} both tell of process {pid}, each something of its own: events in both count twice."
            );
        }
        write!(f, "{other} holds process {pid} once more, which {kept} holds too: it is read once.")
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

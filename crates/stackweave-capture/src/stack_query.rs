//! The protocol between a process and others that query it for its stacks.
//!
//! A process that replies has a mapping whose name is [`SIGNAL_MAPPING_PREFIX`] and the number of a signal. The
//! querying process creates a memory file whose name is [`QUERY_FILE_PREFIX`] and the id of that process, and
//! sends the signal with a [`StackQuery`] as its value. The handler writes the reply to that file, as lines that
//! begin with a [`ReplyLine`].

/// The beginning of the name of the mapping that advertises a process; the number of the signal follows.
pub const SIGNAL_MAPPING_PREFIX: &str = "stackweave-answers-";

/// The beginning of the name of the file for the reply; the id of the queried process follows.
pub const QUERY_FILE_PREFIX: &str = "stackweave-question-";

/// The version of the replies: the querying process reads only this one.
pub const REPLY_VERSION: u32 = 1;

/// The value of the signal: the descriptor of the file, in the querying process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackQuery {
    /// The number of the descriptor.
    pub descriptor: u32,
}

const MARK: u64 = 0x5377_4173 << 32;

impl StackQuery {
    /// Converts it to the value of a signal.
    pub const fn to_value(self) -> u64 {
        MARK | self.descriptor as u64
    }

    /// Converts the value of a signal back; `None` for a signal that was sent for another purpose.
    #[expect(clippy::cast_possible_truncation, reason = "the other half is the mark")]
    pub const fn from_value(value: u64) -> Option<Self> {
        let descriptor = value as u32;
        if value ^ descriptor as u64 == MARK { Some(Self { descriptor }) } else { None }
    }
}

/// The first word of each line of a reply; the rest of the line follows after a space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyLine {
    /// The first line: the version, and the id of the process.
    Answer,
    /// A thread begins: its id, and its name.
    Thread,
    /// A native frame: the return address, in hexadecimal digits.
    Return,
    /// A native frame: the exact address of an instruction.
    Exact,
    /// A Python frame: the parts of `FrameSource::write_parts`.
    Python,
    /// A frame of another interpreter, as text.
    Script,
    /// A label, as text.
    Label,
    /// Outer frames of the thread are missing: the reason.
    Cut,
    /// The thread has not replied: the reason.
    Silent,
    /// There are more threads: their number.
    More,
    /// There are no stacks: the reason.
    Refused,
    /// The last line.
    End,
}

impl ReplyLine {
    /// All words.
    pub const ALL: [Self; 12] = [
        Self::Answer,
        Self::Thread,
        Self::Return,
        Self::Exact,
        Self::Python,
        Self::Script,
        Self::Label,
        Self::Cut,
        Self::Silent,
        Self::More,
        Self::Refused,
        Self::End,
    ];

    /// Returns the word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Answer => "stackweave-answer",
            Self::Thread => "thread",
            Self::Return => "r",
            Self::Exact => "x",
            Self::Python => "p",
            Self::Script => "s",
            Self::Label => "l",
            Self::Cut => "cut",
            Self::Silent => "silent",
            Self::More => "more",
            Self::Refused => "refused",
            Self::End => "end",
        }
    }

    /// Returns the value for this word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|line| line.as_str() == word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_can_be_restored_from_its_value_and_other_values_are_refused() {
        for descriptor in [0, 3, u32::MAX] {
            let query = StackQuery { descriptor };
            assert_eq!(StackQuery::from_value(query.to_value()), Some(query));
        }
        for value in [0, 3, u64::MAX, MARK ^ 1 << 32, MARK ^ 1 << 63] {
            assert_eq!(StackQuery::from_value(value), None, "{value:#x}");
        }
    }

    #[test]
    fn every_reply_line_is_found_by_its_word() {
        for line in ReplyLine::ALL {
            assert_eq!(ReplyLine::from_word(line.as_str()), Some(line));
        }
        assert_eq!(ReplyLine::from_word("endless"), None);
    }
}

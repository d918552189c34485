//! What a process and those who ask it for its stacks have to agree on.
//!
//! A process that answers has a mapping whose name is [`ANSWERS`] and the number of a signal. Who asks makes a file in memory
//! whose name is [`QUESTION`] and the number of that process, and sends the signal with a [`Question`] for its value. The
//! handler writes the answer into that file, a [`Line`] for each thing it says.

/// How the name of the mapping begins by which a process says that it answers; the number of the signal follows.
pub const ANSWERS: &str = "stackweave-answers-";

/// How the name of the file begins that an answer is written to; the number of the process that is asked follows.
pub const QUESTION: &str = "stackweave-question-";

/// The form of the answers: who asks does not read any other.
pub const ANSWER_FORM: u32 = 1;

/// What comes with the signal: the descriptor of the file, in the process that asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    /// The number of the descriptor.
    pub descriptor: u32,
}

const MARK: u64 = 0x5377_4173 << 32;

impl Question {
    /// As the value of a signal.
    pub const fn to_value(self) -> u64 {
        MARK | self.descriptor as u64
    }

    /// `None` for a signal that somebody else has sent, for another purpose.
    #[expect(clippy::cast_possible_truncation, reason = "the other half is the mark")]
    pub const fn from_value(value: u64) -> Option<Self> {
        let descriptor = value as u32;
        if value ^ descriptor as u64 == MARK { Some(Self { descriptor }) } else { None }
    }
}

/// The first word of each line of an answer; what it says follows after a space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// The first line: the form, and the number of the process.
    Answer,
    /// A thread begins: its number, and its name.
    Thread,
    /// A native frame: the address that a call returns to, in hexadecimal digits.
    Return,
    /// A native frame: the address of the very instruction.
    Exact,
    /// A Python frame: the parts of `FrameSource::write_parts`.
    Python,
    /// A frame of another interpreter, as text.
    Script,
    /// A label, as text.
    Label,
    /// Outer frames of the thread are missing: why.
    Cut,
    /// The thread has not answered: why.
    Silent,
    /// There are more threads: how many.
    More,
    /// There is no answer: why.
    Refused,
    /// The last line.
    End,
}

impl Line {
    /// All of them.
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

    /// The word.
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

    /// The line that begins with this word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|line| line.as_str() == word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_comes_back_from_its_value_and_other_values_are_none() {
        for descriptor in [0, 3, u32::MAX] {
            let question = Question { descriptor };
            assert_eq!(Question::from_value(question.to_value()), Some(question));
        }
        for value in [0, 3, u64::MAX, MARK ^ 1 << 32, MARK ^ 1 << 63] {
            assert_eq!(Question::from_value(value), None, "{value:#x}");
        }
    }

    #[test]
    fn every_line_is_known_by_its_word() {
        for line in Line::ALL {
            assert_eq!(Line::from_word(line.as_str()), Some(line));
        }
        assert_eq!(Line::from_word("endless"), None);
    }
}

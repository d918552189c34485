//! The kinds of named frames.

words! {
    /// The kind of a named frame. Recordings, the C interface and the report page use the same numbers.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[repr(u8)]
    pub enum FrameKind {
        /// A frame of machine code.
        Native = 1 => "native",
        /// A frame of Python code.
        Python = 2 => "python",
        /// A frame of another interpreter's code.
        Script = 3 => "script",
        /// Original code from which the generated code of the Python frame inside it was made.
        Extra = 4 => "extra",
        /// The name of a span or a phase, which the program gave, and which is not code. Instants, counters, tags and
        /// allocators have such names, too.
        Span = 5 => "span",
    }
}

impl FrameKind {
    /// Returns the kind with this number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == number)
    }

    /// Returns the kind of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_found_by_number_and_by_name() {
        for (number, kind) in (1..).zip(FrameKind::ALL) {
            assert_eq!((FrameKind::from_number(number), FrameKind::from_name(kind.as_str())), (Some(kind), Some(kind)));
        }
        assert_eq!(
            (FrameKind::from_number(0), FrameKind::from_number(6), FrameKind::from_name("")),
            (None, None, None)
        );
    }
}

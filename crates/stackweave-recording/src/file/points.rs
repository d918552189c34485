//! Small blocks: where clocks were read together, what was lost, and the end of a section.

use core::fmt;

use super::error::BlockError;
use super::varint::{Cursor, put, put_signed};
use crate::clock::ClockPoint;

/// Events that happened and were not recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// Why.
    pub reason: LossReason,
    /// How many.
    pub count: u64,
    /// The thread that they happened on; 0 if that is not known.
    pub thread: u32,
    /// No earlier than this, as far as it is known.
    pub first_ticks: u64,
    /// No later than this, as far as it is known.
    pub last_ticks: u64,
}

impl Lost {
    /// Returns the ticks from which on events are missing, as far as they are known.
    pub const fn ticks(&self) -> u64 {
        if self.first_ticks == 0 { self.last_ticks } else { self.first_ticks }
    }
}

/// The end of a section, and what was counted until then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// Events that were recorded.
    pub events: u64,
    /// Events that were lost.
    pub lost: u64,
    /// How far the clock points lie off the line through them.
    pub residual_ns: u64,
    /// Why it ends.
    pub reason: EndReason,
}

macro_rules! reasons {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $number:literal $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum $name {
            $($(#[$variant_doc])* $variant = $number,)*
        }

        impl $name {
            /// Every reason.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The reason with this number; one that is not known here is `Unknown`.
            pub fn from_number(number: u64) -> Self {
                Self::ALL.iter().copied().find(|reason| *reason as u64 == number).unwrap_or(Self::Unknown)
            }

            /// The reason in a few words.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

reasons! {
    /// Why events were lost.
    LossReason {
        /// A reason that is not known here.
        Unknown = 0 "for an unknown reason",
        /// The writer was behind, and the recorder was told not to wait for it.
        Full = 1 "the buffers were full",
        /// It happened in a signal handler, while the same thread was recording another event.
        Interrupted = 2 "a signal interrupted the recording of another event",
        /// The file could not be written.
        WriteFailed = 3 "the file could not be written",
        /// There was no memory for a buffer.
        NoMemory = 4 "there was no memory",
        /// What was in the buffer was no event.
        NotUnderstood = 5 "they could not be understood",
        /// A flight recorder has only so much room.
        Ring = 6 "only the last ones were kept",
        /// Too large to be recorded.
        TooLarge = 7 "they were too large",
        /// The thread was recording when its process forked or ended.
        Unfinished = 8 "the thread had not finished them",
    }
}

reasons! {
    /// Why a section ends.
    EndReason {
        /// A reason that is not known here.
        Unknown = 0 "for an unknown reason",
        /// The recording was stopped.
        Stopped = 1 "stopped",
        /// The process ended.
        Exited = 2 "the process ended",
        /// A copy of a recording that goes on.
        Dumped = 3 "dumped",
        /// SIGTERM has ended the process.
        Terminated = 4 "ended by SIGTERM",
        /// SIGHUP has ended the process.
        HungUp = 5 "ended by SIGHUP",
    }
}

impl Lost {
    /// The payload of a Lost block.
    pub fn payload(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for number in [self.reason as u64, self.count, self.thread.into(), self.first_ticks, self.last_ticks] {
            put(&mut out, number);
        }
        out
    }

    /// Reads the payload of a Lost block.
    pub fn parse(payload: &[u8]) -> Result<Self, BlockError> {
        let mut rest = Cursor::new(payload);
        Ok(Self {
            reason: LossReason::from_number(rest.varint()?),
            count: rest.varint()?,
            thread: rest.small()?,
            first_ticks: rest.varint()?,
            last_ticks: rest.varint()?,
        })
    }
}

impl End {
    /// The payload of an End block.
    pub fn payload(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for number in [self.reason as u64, self.events, self.lost, self.residual_ns] {
            put(&mut out, number);
        }
        out
    }

    /// Reads the payload of an End block.
    pub fn parse(payload: &[u8]) -> Result<Self, BlockError> {
        let mut rest = Cursor::new(payload);
        let reason = EndReason::from_number(rest.varint()?);
        Ok(Self { reason, events: rest.varint()?, lost: rest.varint()?, residual_ns: rest.varint()? })
    }
}

impl ClockPoint {
    /// The payload of a Clock block.
    pub fn payload(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put(&mut out, self.ticks);
        put(&mut out, self.monotonic_ns);
        put_signed(&mut out, self.wall_ns);
        put(&mut out, self.width_ns.into());
        out
    }

    /// Reads the payload of a Clock block.
    pub fn parse(payload: &[u8]) -> Result<Self, BlockError> {
        let mut rest = Cursor::new(payload);
        Ok(Self {
            ticks: rest.varint()?,
            monotonic_ns: rest.varint()?,
            wall_ns: rest.signed()?,
            width_ns: rest.small()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_come_back_and_a_cut_one_is_refused() {
        let point = ClockPoint { ticks: 1 << 55, monotonic_ns: 7, wall_ns: i64::MIN, width_ns: u32::MAX };
        let lost = Lost { reason: LossReason::Ring, count: 300, thread: 2, first_ticks: 5, last_ticks: 1 << 40 };
        let end = End { events: u64::MAX, lost: 0, residual_ns: 12, reason: EndReason::Exited };
        assert_eq!(ClockPoint::parse(&point.payload()), Ok(point));
        assert_eq!(Lost::parse(&lost.payload()), Ok(lost));
        assert_eq!(End::parse(&end.payload()), Ok(end));
        let cut = |payload: Vec<u8>| payload[..payload.len() - 1].to_vec();
        assert_eq!(ClockPoint::parse(&cut(point.payload())), Err(BlockError::EndsEarly));
        assert_eq!(Lost::parse(&cut(lost.payload())), Err(BlockError::EndsEarly));
        assert_eq!(End::parse(&cut(end.payload())), Err(BlockError::EndsEarly));
    }

    #[test]
    fn what_a_later_version_appends_is_passed_over() {
        let end = End { events: 1, lost: 2, residual_ns: 3, reason: EndReason::Dumped };
        let longer = [end.payload(), vec![9, 9]].concat();
        assert_eq!(End::parse(&longer), Ok(end));
    }

    #[test]
    fn reasons_have_numbers_of_their_own() {
        assert!(LossReason::ALL.iter().all(|reason| LossReason::from_number(*reason as u64) == *reason));
        assert!(EndReason::ALL.iter().all(|reason| EndReason::from_number(*reason as u64) == *reason));
        assert_eq!(LossReason::from_number(200), LossReason::Unknown);
    }
}

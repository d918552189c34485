//! Blocks with a few numbers: clock points, lost events, and the end of a section.

use core::fmt;

use super::error::BlockError;
use super::varint::{Cursor, put, put_signed};
use crate::clock::ClockPoint;

/// Events that were not recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// The reason why they were lost.
    pub reason: LossReason,
    /// The number of events.
    pub count: u64,
    /// Their thread; 0 if unknown.
    pub thread: u32,
    /// A lower bound of their times, if known.
    pub first_ticks: u64,
    /// An upper bound of their times, if known.
    pub last_ticks: u64,
}

impl Lost {
    /// Returns the ticks from which on events are missing, if known.
    pub const fn ticks(&self) -> u64 {
        if self.first_ticks == 0 { self.last_ticks } else { self.first_ticks }
    }
}

/// The end of a section, with its totals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectionEnd {
    /// The number of recorded events.
    pub events: u64,
    /// The number of lost events.
    pub lost: u64,
    /// The largest distance of a clock point from the line through its neighbours.
    pub residual_ns: u64,
    /// The reason why the section ends.
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
            /// All reasons.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// Returns the reason with this number; `Unknown` for an unknown number.
            pub fn from_number(number: u64) -> Self {
                Self::ALL.iter().copied().find(|reason| *reason as u64 == number).unwrap_or(Self::Unknown)
            }

            /// Returns the reason in a few words.
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
    /// The reason why events were lost.
    LossReason {
        /// An unknown reason.
        Unknown = 0 "for an unknown reason",
        /// The writer was behind, and the recording is configured not to wait for it.
        Full = 1 "the buffers were full",
        /// A signal handler interrupted its thread while that recorded another event.
        Interrupted = 2 "a signal interrupted the recording of another event",
        /// The file could not be written.
        WriteFailed = 3 "the file could not be written",
        /// No memory could be allocated for a buffer.
        NoMemory = 4 "there was no memory",
        /// The buffer contained invalid words.
        NotUnderstood = 5 "they could not be understood",
        /// A flight recorder dropped the oldest events.
        Ring = 6 "only the last ones were kept",
        /// The event was too large.
        TooLarge = 7 "they were too large",
        /// The thread was recording when its process forked or ended.
        Unfinished = 8 "the thread had not finished them",
    }
}

reasons! {
    /// The reason why a section ends.
    EndReason {
        /// An unknown reason.
        Unknown = 0 "for an unknown reason",
        /// The recording was stopped.
        Stopped = 1 "stopped",
        /// The process ended.
        Exited = 2 "the process ended",
        /// The section is a dump of a recording that continues.
        Dumped = 3 "dumped",
        /// SIGTERM ended the process.
        Terminated = 4 "ended by SIGTERM",
        /// SIGHUP ended the process.
        HungUp = 5 "ended by SIGHUP",
    }
}

impl Lost {
    /// Returns the payload of a Lost block.
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

impl SectionEnd {
    /// Returns the payload of an End block.
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
    /// Returns the payload of a Clock block.
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
    fn payloads_round_trip_and_truncated_ones_are_rejected() {
        let point = ClockPoint { ticks: 1 << 55, monotonic_ns: 7, wall_ns: i64::MIN, width_ns: u32::MAX };
        let lost = Lost { reason: LossReason::Ring, count: 300, thread: 2, first_ticks: 5, last_ticks: 1 << 40 };
        let end = SectionEnd { events: u64::MAX, lost: 0, residual_ns: 12, reason: EndReason::Exited };
        assert_eq!(ClockPoint::parse(&point.payload()), Ok(point));
        assert_eq!(Lost::parse(&lost.payload()), Ok(lost));
        assert_eq!(SectionEnd::parse(&end.payload()), Ok(end));
        let cut = |payload: Vec<u8>| payload[..payload.len() - 1].to_vec();
        assert_eq!(ClockPoint::parse(&cut(point.payload())), Err(BlockError::EndsEarly));
        assert_eq!(Lost::parse(&cut(lost.payload())), Err(BlockError::EndsEarly));
        assert_eq!(SectionEnd::parse(&cut(end.payload())), Err(BlockError::EndsEarly));
    }

    #[test]
    fn additions_of_later_versions_are_skipped() {
        let end = SectionEnd { events: 1, lost: 2, residual_ns: 3, reason: EndReason::Dumped };
        let longer = [end.payload(), vec![9, 9]].concat();
        assert_eq!(SectionEnd::parse(&longer), Ok(end));
    }

    #[test]
    fn reasons_have_distinct_numbers() {
        assert!(LossReason::ALL.iter().all(|reason| LossReason::from_number(*reason as u64) == *reason));
        assert!(EndReason::ALL.iter().all(|reason| EndReason::from_number(*reason as u64) == *reason));
        assert_eq!(LossReason::from_number(200), LossReason::Unknown);
    }
}

//! Single steps over any readable memory: that of this process, or of another, stopped process.
//!
//! A walk of this process takes most of its steps by compact rules. Other rows are handled here, as is every frame
//! of another process.

use stackweave_core::{CodeAddress, StopReason};

pub use crate::platform::arch::Registers;
use crate::platform::cfi::{Cie, Malformed, Table, TableSection};
use crate::platform::dwarf_step::{self, StepFailure};
pub use crate::platform::step_without_entry::step as step_without_entry;

/// The memory of the process whose frames are walked.
pub trait ReadMemory {
    /// Returns the word of a stack at `address`; `None` if it cannot be read.
    fn word(&mut self, address: u64) -> Option<u64>;

    /// Returns the bytes of code at `address`, at most a page of them; `None` if not all of them can be read.
    fn code<const N: usize>(&mut self, address: u64) -> Option<[u8; N]>;
}

/// A step to the caller of a frame.
#[derive(Clone, Copy, Debug)]
pub struct Stepped {
    /// The caller's registers.
    pub registers: Registers,
    /// Whether the frame was a signal trampoline: its caller was interrupted, and did not call.
    pub is_signal_frame: bool,
}

impl Stepped {
    /// Returns the address of the caller.
    pub fn address(&self) -> CodeAddress {
        let pc = self.registers.pc();
        if self.is_signal_frame { CodeAddress::instruction_pointer(pc) } else { CodeAddress::return_address(pc) }
    }
}

/// The unwind entries of a module. Their addresses are those that the module's file states.
#[derive(Clone, Copy, Debug)]
pub struct UnwindTable<'a>(Table<'a>);

impl<'a> UnwindTable<'a> {
    /// Reads the entries to which the `.eh_frame_hdr` at `header` points; `None` if it is malformed. `segment`
    /// contains both, and begins at `address`.
    pub fn new(segment: &'a [u8], address: u64, header: u64) -> Option<Self> {
        Table::from_header(TableSection { bytes: segment, address }, header).ok().map(Self)
    }

    /// Returns the end of the entry that covers `pc`, if there is one.
    pub fn end_of_entry(&self, pc: u64) -> Option<u64> {
        self.0.end_of_entry(pc, &mut { Cie::NONE })
    }

    /// Takes a step from a frame at `pc` with these registers, by the entry that covers it.
    ///
    /// # Errors
    /// The reason why there is no caller, or why it cannot be determined; [`StopReason::NoUnwindEntry`] if no
    /// entry covers `pc`.
    pub fn step(&self, pc: u64, registers: &Registers, memory: &mut impl ReadMemory) -> Result<Stepped, StopReason> {
        let entry = self.0.find(pc, &mut { Cie::NONE }).map_err(|Malformed| StopReason::UnsupportedRule)?;
        let entry = entry.ok_or(StopReason::NoUnwindEntry)?;
        dwarf_step::step(&self.0.section, entry.offset, pc, registers, memory).map_err(|failure| match failure {
            StepFailure::MissingRegister => StopReason::UnsupportedRule,
            StepFailure::Stop(reason) => reason,
        })
    }
}

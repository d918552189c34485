//! The contenders that can step from a made-up frame.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr;

use framehop::x86_64::UnwindRegsX86_64;
use framehop::{FrameAddress, Module, Unwinder as _};
use stackweave_unwind::CodeAddress;

use super::by_gimli::{self, Tables};
use super::made_up_stack::MadeUpStack;
use crate::peers::framehop::{Cache, Walker};
use crate::peers::unwind_tables::Bytes;

/// The result of one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    ReturnAddress(u64),
    /// Only the start of the function: the contender searches for it, and does no more.
    Function(u64),
    Nothing,
}

/// The data that a contender keeps from a visit for the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Memory {
    Nothing,
    /// Rules, of which it does not report the number.
    Uncounted,
    /// Rules, and how many it has read so far.
    Counted(u64),
}

pub(super) trait Contender {
    /// Steps out of the made-up frame, as if a signal had interrupted it at `pc`.
    fn step(&mut self, pc: u64) -> Found;
    fn memory(&self) -> Memory;
}

/// Stackweave: captures two frames from a signal context.
pub(super) struct Ours {
    context: Box<libc::ucontext_t>,
}

impl Ours {
    pub(super) fn new(stack: &MadeUpStack<'_>) -> Self {
        Self { context: context(stack) }
    }
}

impl Contender for Ours {
    fn step(&mut self, pc: u64) -> Found {
        set_instruction(&mut self.context, pc);
        let mut frames = [CodeAddress::default(); 2];
        let context = ptr::from_ref(&*self.context).cast();
        // SAFETY: the context is complete, and laid out as the kernel does it.
        let captured = unsafe { stackweave_unwind::capture_from_context(context, &mut frames, None, 0) };
        if captured.len == 2 { Found::ReturnAddress(frames[1].address()) } else { Found::Nothing }
    }

    fn memory(&self) -> Memory {
        Memory::Counted(stackweave_unwind::stats().misses)
    }
}

/// framehop, which knows only the module under test.
pub(super) struct Framehop<'a> {
    walker: Walker,
    cache: Cache,
    stack: &'a MadeUpStack<'a>,
}

impl<'a> Framehop<'a> {
    pub(super) fn new(stack: &'a MadeUpStack<'a>, module: Module<Bytes>) -> Self {
        let mut walker = Walker::new();
        walker.add_module(module);
        Self { walker, cache: Cache::new_in(), stack }
    }
}

impl Contender for Framehop<'_> {
    fn step(&mut self, pc: u64) -> Found {
        let (sp, fp) = (self.stack.stack_pointer(), self.stack.frame_pointer());
        let mut registers = UnwindRegsX86_64::new(pc, sp, fp);
        let mut read = |address| self.stack.read(address).ok_or(());
        let address = FrameAddress::from_instruction_pointer(pc);
        match self.walker.unwind_frame(address, &mut registers, &mut self.cache, &mut read) {
            Ok(Some(return_address)) => Found::ReturnAddress(return_address),
            _ => Found::Nothing,
        }
    }

    fn memory(&self) -> Memory {
        Memory::Counted(self.cache.stats().misses())
    }
}

/// gimli without an unwinder: finds index, entry and row, and computes the return address from the row.
pub(super) struct Gimli<'a> {
    pub(super) tables: Tables,
    pub(super) stack: &'a MadeUpStack<'a>,
}

impl Contender for Gimli<'_> {
    fn step(&mut self, pc: u64) -> Found {
        let slot = self.tables.row(pc).ok().and_then(|row| by_gimli::return_address_slot(row, self.stack));
        slot.and_then(|slot| self.stack.read(slot)).map_or(Found::Nothing, Found::ReturnAddress)
    }

    fn memory(&self) -> Memory {
        Memory::Nothing
    }
}

/// libgcc's search for the entry, which is only the first part of its step.
pub(super) struct LibgccSearch;

unsafe extern "C" {
    /// Fills in the bases for text and data, and the start of the function.
    fn _Unwind_Find_FDE(pc: *const c_void, bases: *mut [*const c_void; 3]) -> *const c_void;
}

impl Contender for LibgccSearch {
    fn step(&mut self, pc: u64) -> Found {
        let mut bases = [ptr::null(); 3];
        // SAFETY: the address is only compared, and `bases` holds the three pointers.
        let entry = unsafe { _Unwind_Find_FDE(pc as *const c_void, &raw mut bases) };
        if entry.is_null() { Found::Nothing } else { Found::Function(bases[2].addr() as u64) }
    }

    fn memory(&self) -> Memory {
        Memory::Nothing
    }
}

/// Returns a signal context that has the made-up frame's registers, and zero in all others.
pub(super) fn context(stack: &MadeUpStack<'_>) -> Box<libc::ucontext_t> {
    // SAFETY: the type has only integers and pointers, for which zero is a valid value.
    let mut context = Box::new(unsafe { MaybeUninit::<libc::ucontext_t>::zeroed().assume_init() });
    set(&mut context, libc::REG_RSP, stack.stack_pointer());
    set(&mut context, libc::REG_RBP, stack.frame_pointer());
    context
}

pub(super) fn set_instruction(context: &mut libc::ucontext_t, pc: u64) {
    set(context, libc::REG_RIP, pc);
}

fn set(context: &mut libc::ucontext_t, register: libc::c_int, value: u64) {
    if let Some(word) = usize::try_from(register).ok().and_then(|index| context.uc_mcontext.gregs.get_mut(index)) {
        *word = value.cast_signed();
    }
}

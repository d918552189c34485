//! nongnu libunwind: creates a cursor from a signal context, and steps once.

use std::ffi::{c_int, c_void};
use std::mem;

use super::contenders::{self, Contender, Found, Memory};
use super::made_up_stack::MadeUpStack;
use crate::peers::shared_library;

/// The size of `unw_cursor_t` on x86-64, in words.
const CURSOR_WORDS: usize = 127;
const INIT_SIGNAL_FRAME: c_int = 1;
const REGISTER_RIP: c_int = 16;

type Cursor = [u64; CURSOR_WORDS];
type InitLocal = unsafe extern "C" fn(*mut Cursor, *mut libc::ucontext_t, c_int) -> c_int;
type Step = unsafe extern "C" fn(*mut Cursor) -> c_int;
type GetRegister = unsafe extern "C" fn(*mut Cursor, c_int, *mut u64) -> c_int;

pub(super) struct Libunwind {
    init_local: InitLocal,
    step: Step,
    get_register: GetRegister,
    context: Box<libc::ucontext_t>,
}

impl Libunwind {
    pub(super) fn load(stack: &MadeUpStack<'_>) -> Option<Self> {
        let library = shared_library::open(c"libunwind.so.8").ok()?;
        let symbol = |name| library.symbol(name).ok();
        let (init_local, step) = (symbol(c"_ULx86_64_init_local2")?, symbol(c"_ULx86_64_step")?);
        let get_register = symbol(c"_ULx86_64_get_reg")?;
        // SAFETY: libunwind's functions of these names have these signatures; its context is a `ucontext_t`.
        unsafe {
            Some(Self {
                init_local: mem::transmute::<*const c_void, InitLocal>(init_local),
                step: mem::transmute::<*const c_void, Step>(step),
                get_register: mem::transmute::<*const c_void, GetRegister>(get_register),
                context: contenders::context(stack),
            })
        }
    }
}

impl Contender for Libunwind {
    fn step(&mut self, pc: u64) -> Found {
        contenders::set_instruction(&mut self.context, pc);
        let mut cursor = [0; CURSOR_WORDS];
        let mut return_address = 0;
        // SAFETY: the cursor has the size that libunwind requires, the context outlives it, and the rules of the picked
        // addresses lead only to words of the made-up stack.
        let results = unsafe {
            [
                (self.init_local)(&raw mut cursor, &raw mut *self.context, INIT_SIGNAL_FRAME),
                (self.step)(&raw mut cursor),
                (self.get_register)(&raw mut cursor, REGISTER_RIP, &raw mut return_address),
            ]
        };
        if results.iter().all(|result| *result >= 0) { Found::ReturnAddress(return_address) } else { Found::Nothing }
    }

    fn memory(&self) -> Memory {
        Memory::Uncounted
    }
}

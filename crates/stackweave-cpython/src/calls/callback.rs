//! Objects that the interpreter calls, and that lead directly to a function of ours, without the overhead of a
//! `builtin_function`.

use core::ffi::{c_char, c_int, c_uint, c_void};
use core::ptr;

use super::api::{HookApi, ObjectReference};
use super::error::HookError;
use crate::interpreter::{Interpreter, first_of};
use crate::public_api::ObjectPointer;

/// `vectorcallfunc`: the callee, the arguments, their number, the names of keywords. A thread that releases the GIL
/// inside, and can't get it back because the interpreter shuts down, is unwound by force.
pub(super) type Vectorcall =
    unsafe extern "C-unwind" fn(ObjectPointer, *const ObjectPointer, usize, ObjectPointer) -> ObjectPointer;

/// The size of an object: its header of two words, and the function.
const SIZE: c_int = 24;
const FUNCTION: usize = 16;

const CALL_SLOT: c_int = 50;
const MEMBERS_SLOT: c_int = 72;
const SIZE_MEMBER: c_int = 19;
const READ_ONLY: c_int = 1;
/// It has a vectorcall function; Python code can't create instances; it has a version tag, as all types.
const FLAGS: c_uint = 1 << 11 | 1 << 7 | 1 << 18;

/// `PyMemberDef`.
#[repr(C)]
struct Member {
    name: *const c_char,
    kind: c_int,
    offset: usize,
    flags: c_int,
    doc: *const c_char,
}

/// `PyType_Slot`.
#[repr(C)]
struct PyTypeSlot {
    slot: c_int,
    value: *mut c_void,
}

/// `PyType_Spec`.
#[repr(C)]
struct Spec {
    name: *const c_char,
    size: c_int,
    item_size: c_int,
    flags: c_uint,
    slots: *mut PyTypeSlot,
}

/// The members of the type, which keeps a pointer to them up to 3.10.
#[expect(dead_code, reason = "only the interpreter reads it")]
struct Members([Member; 2]);

// SAFETY: constant.
unsafe impl Sync for Members {}

static MEMBERS: Members = Members([
    Member {
        name: c"__vectorcalloffset__".as_ptr(),
        kind: SIZE_MEMBER,
        offset: FUNCTION,
        flags: READ_ONLY,
        doc: ptr::null(),
    },
    Member { name: ptr::null(), kind: 0, offset: 0, flags: 0, doc: ptr::null() },
]);

/// The type of the callback objects.
#[derive(Debug)]
pub(super) struct CallbackType {
    type_object: ObjectReference,
    allocate: unsafe extern "C" fn(ObjectPointer, isize) -> ObjectPointer,
    api: &'static HookApi,
}

impl CallbackType {
    /// # Safety
    /// The GIL is held.
    pub(super) unsafe fn new(interpreter: &Interpreter, api: &'static HookApi) -> Result<Self, HookError> {
        let symbols = interpreter.symbols;
        // SAFETY: the signatures are those of the documentation; the type copies the description.
        unsafe {
            let create: unsafe extern "C" fn(*mut Spec) -> ObjectPointer = first_of(symbols, &[c"PyType_FromSpec"])?;
            let call: unsafe extern "C" fn(ObjectPointer, ObjectPointer, ObjectPointer) -> ObjectPointer =
                first_of(symbols, &[c"PyVectorcall_Call"])?;
            let mut slots = [
                PyTypeSlot { slot: CALL_SLOT, value: call as *mut c_void },
                PyTypeSlot { slot: MEMBERS_SLOT, value: (&raw const MEMBERS).cast_mut().cast() },
                PyTypeSlot { slot: 0, value: ptr::null_mut() },
            ];
            let mut spec = Spec {
                name: c"stackweave.callback".as_ptr(),
                size: SIZE,
                item_size: 0,
                flags: FLAGS,
                slots: slots.as_mut_ptr(),
            };
            let type_object = api.own(create(&raw mut spec))?;
            Ok(Self { type_object, allocate: first_of(symbols, &[c"PyType_GenericAlloc"])?, api })
        }
    }

    /// Returns an object that calls this function.
    ///
    /// # Safety
    /// The GIL is held.
    pub(super) unsafe fn callback(&self, function: Vectorcall) -> Result<ObjectReference, HookError> {
        // SAFETY: the GIL is held; the object is new, and large enough for the word behind its header.
        unsafe {
            let callback = self.api.own((self.allocate)(self.type_object.object(), 0))?;
            callback.object().byte_add(FUNCTION).cast::<Vectorcall>().write(function);
            Ok(callback)
        }
    }
}

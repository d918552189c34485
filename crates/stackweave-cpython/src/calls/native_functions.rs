//! Native functions: how they are identified and named.
//!
//! Nothing here calls methods of a receiver: its type, and the C fields of the type, are sufficient.

use core::ffi::{CStr, c_char};
use core::sync::atomic::{AtomicU64, Ordering};

use super::api::HookApi;
use super::live_frame::field;
use crate::interpreter::Interpreter;
use crate::public_api::ObjectPointer;
use crate::source::PythonSource;
use crate::text::{StrText, text};
use crate::unavailable::Unavailable;

pub(super) const OBJECT_TYPE: usize = 8;
/// Offsets in `PyCFunctionObject`; the class only in a `PyCMethodObject`.
const FUNCTION_DEFINITION: usize = 16;
const FUNCTION_SELF: usize = 24;
const FUNCTION_MODULE: usize = 32;
const FUNCTION_CLASS: usize = 56;
/// Offsets in `PyMethodDescrObject`.
const DESCRIPTOR_TYPE: usize = 16;
const DESCRIPTOR_DEFINITION: usize = 40;
/// Offsets in `PyMethodDef`.
const DEFINITION_NAME: usize = 0;
const DEFINITION_SIZE: u64 = 32;
/// Offsets in `PyTypeObject`.
const TYPE_NAME: usize = 24;
const TYPE_FLAGS: usize = 168;
const TYPE_METHODS: usize = 232;
const TYPE_ORDER: usize = 344;
const IS_TYPE: u64 = 1 << 31;
/// The largest number of methods that is searched.
const MAX_METHODS: u64 = 1 << 16;

static FUNCTIONS: AtomicU64 = AtomicU64::new(0);
static METHODS: AtomicU64 = AtomicU64::new(0);
static DESCRIPTORS: AtomicU64 = AtomicU64::new(0);

/// Looks up the types of native functions.
pub(super) fn prepare(interpreter: &Interpreter) -> Result<(), Unavailable> {
    for (slot, name) in
        [(&FUNCTIONS, c"PyCFunction_Type"), (&METHODS, c"PyCMethod_Type"), (&DESCRIPTORS, c"PyMethodDescr_Type")]
    {
        let missing = Unavailable::MissingFunction("PyCFunction_Type");
        slot.store(interpreter.symbols.address(name).ok_or(missing)? as u64, Ordering::Relaxed);
    }
    Ok(())
}

/// Returns whether this is the type of functions in C.
#[inline(always)]
pub(super) fn is_function(kind: u64) -> bool {
    kind == FUNCTIONS.load(Ordering::Relaxed) || kind == METHODS.load(Ordering::Relaxed)
}

/// Returns whether this is the type of unbound methods in C.
#[inline(always)]
pub(super) fn is_descriptor(kind: u64) -> bool {
    kind == DESCRIPTORS.load(Ordering::Relaxed)
}

/// Returns what identifies a native function: the address of its `PyMethodDef`, which is the same for all receivers,
/// and lives as long as its library. A hot function: three loads.
///
/// # Safety
/// `callable` is the argument of [`CallObserver::enter_native`](super::CallObserver::enter_native), during that call.
#[inline(always)]
pub unsafe fn native_definition(callable: u64) -> u64 {
    // SAFETY: passed on to the caller.
    unsafe {
        let offset =
            if is_descriptor(field(callable, OBJECT_TYPE)) { DESCRIPTOR_DEFINITION } else { FUNCTION_DEFINITION };
        field(callable, offset)
    }
}

impl PythonSource {
    /// Returns the full name of a native function: `list.append`, whatever the receiver is; `builtins.len`. A function
    /// without information about its origin has its bare name.
    ///
    /// # Safety
    /// The GIL is held, and `callable` is the argument of
    /// [`CallObserver::enter_native`](super::CallObserver::enter_native), during that call.
    pub unsafe fn native_name(&self, callable: u64) -> Option<String> {
        let interpreter = self.interpreter()?;
        let api = HookApi::find(interpreter).ok()?;
        // SAFETY: passed on to the caller. The C fields of an object live as long as the object.
        unsafe {
            let kind: u64 = field(callable, OBJECT_TYPE);
            let definition = native_definition(callable);
            let name = c_text(field(definition, DEFINITION_NAME))?;
            let owner = if is_descriptor(kind) {
                type_name(field(callable, DESCRIPTOR_TYPE))
            } else if kind == METHODS.load(Ordering::Relaxed) && field::<u64>(callable, FUNCTION_CLASS) != 0 {
                type_name(field(callable, FUNCTION_CLASS))
            } else {
                owner_of(interpreter, api, callable, definition)
            };
            Some(owner.map_or_else(|| name.clone(), |owner| format!("{owner}.{name}")))
        }
    }
}

/// Returns the type that defines a bound function; else the function's module.
///
/// # Safety
/// The GIL is held, and the function is alive.
unsafe fn owner_of(interpreter: &Interpreter, api: &HookApi, function: u64, definition: u64) -> Option<String> {
    // SAFETY: passed on to the caller; a function keeps alive what it is bound to, and that its type.
    unsafe {
        let bound: u64 = field(function, FUNCTION_SELF);
        if bound != 0 {
            let kind: u64 = field(bound, OBJECT_TYPE);
            // A class method is bound to a type, which also has methods of its own type.
            let is_type = field::<u64>(kind, TYPE_FLAGS) & IS_TYPE != 0;
            for holder in [is_type.then_some(bound), Some(kind)].into_iter().flatten() {
                if let Some(name) = defining_type(api, holder, definition) {
                    return Some(name);
                }
            }
        }
        let module: u64 = field(function, FUNCTION_MODULE);
        let text_type = interpreter.symbols.address(c"PyUnicode_Type")? as u64;
        if module == 0 || field::<u64>(module, OBJECT_TYPE) != text_type {
            return None;
        }
        text(&interpreter.layout.text, module).map(StrText::decode)
    }
}

/// Returns the name of the type, among a type and its bases, whose table of methods has the definition.
///
/// # Safety
/// The GIL is held, and `kind` is a live type.
unsafe fn defining_type(api: &HookApi, kind: u64, definition: u64) -> Option<String> {
    // SAFETY: passed on to the caller; a type keeps alive the tuple of its bases, and that the bases.
    unsafe {
        let order: u64 = field(kind, TYPE_ORDER);
        if order == 0 {
            return None;
        }
        let mut types = api.items(order as usize as ObjectPointer).map(|object| object as u64);
        types.find(|kind| has_method(*kind, definition)).and_then(|kind| type_name(kind))
    }
}

/// # Safety
/// `kind` is a live type.
unsafe fn has_method(kind: u64, definition: u64) -> bool {
    // SAFETY: a type's methods are an array of definitions; the last has no name.
    unsafe {
        let first: u64 = field(kind, TYPE_METHODS);
        first != 0
            && (0..MAX_METHODS)
                .map(|index| first + index * DEFINITION_SIZE)
                .take_while(|method| field::<u64>(*method, DEFINITION_NAME) != 0)
                .any(|method| method == definition)
    }
}

/// # Safety
/// `kind` is a live type.
unsafe fn type_name(kind: u64) -> Option<String> {
    // SAFETY: a type has a name.
    unsafe { c_text(field(kind, TYPE_NAME)) }
}

/// # Safety
/// The address is 0 or that of a C string.
unsafe fn c_text(address: u64) -> Option<String> {
    let pointer = address as usize as *const c_char;
    // SAFETY: passed on to the caller.
    (address != 0).then(|| unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned())
}

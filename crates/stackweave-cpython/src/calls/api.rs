//! The public functions with which hooks are installed. All need the GIL.

use core::ffi::{CStr, c_char, c_int, c_long, c_void};
use core::ptr;
use std::sync::OnceLock;

use super::error::HookError;
use crate::interpreter::{Interpreter, first_of};
use crate::public_api::ObjectPointer;
use crate::unavailable::Unavailable;

#[derive(Clone, Copy, Debug)]
pub(super) struct HookApi {
    pub(super) system_object: unsafe extern "C" fn(*const c_char) -> ObjectPointer,
    pub(super) attribute: unsafe extern "C" fn(ObjectPointer, *const c_char) -> ObjectPointer,
    call: unsafe extern "C" fn(ObjectPointer, ObjectPointer) -> ObjectPointer,
    new_tuple: unsafe extern "C" fn(isize) -> ObjectPointer,
    set_item: unsafe extern "C" fn(ObjectPointer, isize, ObjectPointer) -> c_int,
    tuple_size: unsafe extern "C" fn(ObjectPointer) -> isize,
    tuple_item: unsafe extern "C" fn(ObjectPointer, isize) -> ObjectPointer,
    new_number: unsafe extern "C" fn(c_long) -> ObjectPointer,
    as_number: unsafe extern "C" fn(ObjectPointer) -> c_long,
    new_text: unsafe extern "C" fn(*const c_char) -> ObjectPointer,
    as_text: unsafe extern "C" fn(ObjectPointer, *mut isize) -> *const c_char,
    to_text: unsafe extern "C" fn(ObjectPointer) -> ObjectPointer,
    pub(super) dict_item: unsafe extern "C" fn(ObjectPointer, *const c_char) -> ObjectPointer,
    import: unsafe extern "C" fn(*const c_char) -> ObjectPointer,
    increment: unsafe extern "C" fn(ObjectPointer),
    decrement: unsafe extern "C" fn(ObjectPointer),
    fetch_error: unsafe extern "C" fn(*mut ObjectPointer, *mut ObjectPointer, *mut ObjectPointer),
    restore_error: unsafe extern "C" fn(ObjectPointer, ObjectPointer, ObjectPointer),
    pub(super) none: ObjectPointer,
}

// SAFETY: functions, and the address of an object that lives forever.
unsafe impl Send for HookApi {}
// SAFETY: as above.
unsafe impl Sync for HookApi {}

static FOUND: OnceLock<HookApi> = OnceLock::new();

/// Returns the functions, if they were looked up before.
pub(super) fn cached() -> Option<&'static HookApi> {
    FOUND.get()
}

impl HookApi {
    pub(super) fn find(interpreter: &Interpreter) -> Result<&'static Self, Unavailable> {
        if let Some(api) = FOUND.get() {
            return Ok(api);
        }
        let symbols = interpreter.symbols;
        // SAFETY: the signatures are those of the documentation, the same in every version.
        let api = unsafe {
            Self {
                system_object: first_of(symbols, &[c"PySys_GetObject"])?,
                attribute: first_of(symbols, &[c"PyObject_GetAttrString"])?,
                call: first_of(symbols, &[c"PyObject_CallObject"])?,
                new_tuple: first_of(symbols, &[c"PyTuple_New"])?,
                set_item: first_of(symbols, &[c"PyTuple_SetItem"])?,
                tuple_size: first_of(symbols, &[c"PyTuple_Size"])?,
                tuple_item: first_of(symbols, &[c"PyTuple_GetItem"])?,
                new_number: first_of(symbols, &[c"PyLong_FromLong"])?,
                as_number: first_of(symbols, &[c"PyLong_AsLong"])?,
                new_text: first_of(symbols, &[c"PyUnicode_FromString"])?,
                as_text: first_of(symbols, &[c"PyUnicode_AsUTF8AndSize"])?,
                to_text: first_of(symbols, &[c"PyObject_Str"])?,
                dict_item: first_of(symbols, &[c"PyDict_GetItemString"])?,
                import: first_of(symbols, &[c"PyImport_ImportModule"])?,
                increment: first_of(symbols, &[c"Py_IncRef"])?,
                decrement: first_of(symbols, &[c"Py_DecRef"])?,
                fetch_error: first_of(symbols, &[c"PyErr_Fetch"])?,
                restore_error: first_of(symbols, &[c"PyErr_Restore"])?,
                none: symbols.address(c"_Py_NoneStruct").ok_or(Unavailable::MissingFunction("_Py_NoneStruct"))?,
            }
        };
        Ok(FOUND.get_or_init(|| api))
    }

    /// Takes over a reference, or returns the exception that the interpreter raised instead.
    ///
    /// # Safety
    /// The GIL is held; `object` is null, with an exception set, or a new reference.
    pub(super) unsafe fn own(&'static self, object: ObjectPointer) -> Result<ObjectReference, HookError> {
        if object.is_null() {
            // SAFETY: the GIL is held.
            return Err(HookError::Raised(unsafe { self.take_error() }));
        }
        Ok(ObjectReference { object, api: self })
    }

    /// Creates a reference to a borrowed object.
    ///
    /// # Safety
    /// The GIL is held, the object is alive.
    pub(super) unsafe fn borrow(&'static self, object: ObjectPointer) -> ObjectReference {
        // SAFETY: passed on to the caller.
        unsafe { (self.increment)(object) };
        ObjectReference { object, api: self }
    }

    /// # Safety
    /// The GIL is held.
    pub(super) unsafe fn number(&'static self, number: c_long) -> Result<ObjectReference, HookError> {
        // SAFETY: passed on to the caller.
        unsafe { self.own((self.new_number)(number)) }
    }

    /// # Safety
    /// The GIL is held.
    pub(super) unsafe fn text(&'static self, text: &CStr) -> Result<ObjectReference, HookError> {
        // SAFETY: passed on to the caller.
        unsafe { self.own((self.new_text)(text.as_ptr())) }
    }

    /// # Safety
    /// The GIL is held.
    pub(super) unsafe fn module(&'static self, name: &CStr) -> Result<ObjectReference, HookError> {
        // SAFETY: passed on to the caller.
        unsafe { self.own((self.import)(name.as_ptr())) }
    }

    /// Returns the text of the current exception, and clears it.
    ///
    /// # Safety
    /// The GIL is held.
    unsafe fn take_error(&'static self) -> String {
        // SAFETY: the GIL is held; each reference is ours or null.
        unsafe {
            let [kind, value, traceback] = self.fetch();
            let text = if value.is_null() { ptr::null_mut() } else { (self.to_text)(value) };
            let message = self.read_text(text).unwrap_or_else(|| "an exception".to_owned());
            for object in [text, kind, value, traceback] {
                (self.decrement)(object);
            }
            (self.restore_error)(ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
            message
        }
    }

    /// # Safety
    /// The GIL is held, `object` is null or alive.
    pub(super) unsafe fn read_text(&self, object: ObjectPointer) -> Option<String> {
        if object.is_null() {
            return None;
        }
        let mut length = 0;
        // SAFETY: passed on to the caller; an object that is not a `str` is rejected with an exception. The text lives
        // as long as the object.
        unsafe {
            let text = (self.as_text)(object, &raw mut length);
            if text.is_null() {
                (self.restore_error)(ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
                return None;
            }
            let bytes = core::slice::from_raw_parts(text.cast::<u8>(), usize::try_from(length).unwrap_or(0));
            Some(String::from_utf8_lossy(bytes).into_owned())
        }
    }

    /// Returns the items of a tuple, borrowed.
    ///
    /// # Safety
    /// The GIL is held, `tuple` is a live tuple.
    pub(super) unsafe fn items(&self, tuple: ObjectPointer) -> impl Iterator<Item = ObjectPointer> {
        // SAFETY: passed on to the caller.
        let length = unsafe { (self.tuple_size)(tuple) };
        // SAFETY: as above; the index is within the tuple.
        (0..length).map(move |index| unsafe { (self.tuple_item)(tuple, index) })
    }

    /// Runs `work` while no exception is set, and restores the one that was.
    ///
    /// # Safety
    /// The GIL is held.
    pub(super) unsafe fn without_error<R>(&self, work: impl FnOnce() -> R) -> R {
        // SAFETY: the GIL is held; the exception that was fetched is restored.
        unsafe {
            let [kind, value, traceback] = self.fetch();
            let result = work();
            (self.restore_error)(kind, value, traceback);
            result
        }
    }

    /// # Safety
    /// The GIL is held.
    unsafe fn fetch(&self) -> [ObjectPointer; 3] {
        let mut error = [ptr::null_mut::<c_void>(); 3];
        let [kind, value, traceback] = &mut error;
        // SAFETY: passed on to the caller.
        unsafe { (self.fetch_error)(kind, value, traceback) };
        error
    }
}

/// A reference of ours. Created and dropped with the GIL held.
#[derive(Debug)]
pub(super) struct ObjectReference {
    object: ObjectPointer,
    api: &'static HookApi,
}

impl ObjectReference {
    pub(super) fn object(&self) -> ObjectPointer {
        self.object
    }

    /// # Safety
    /// The GIL is held.
    pub(super) unsafe fn attribute(&self, name: &CStr) -> Result<Self, HookError> {
        // SAFETY: passed on to the caller; the object is alive.
        unsafe { self.api.own((self.api.attribute)(self.object, name.as_ptr())) }
    }

    /// # Safety
    /// The GIL is held.
    pub(super) unsafe fn call(&self, name: &CStr, arguments: &[&Self]) -> Result<Self, HookError> {
        let api = self.api;
        // SAFETY: the GIL is held; a tuple takes over a reference to each of its items.
        unsafe {
            let method = self.attribute(name)?;
            let tuple = api.own((api.new_tuple)(arguments.len().cast_signed()))?;
            for (index, argument) in arguments.iter().enumerate() {
                (api.increment)(argument.object);
                (api.set_item)(tuple.object, index.cast_signed(), argument.object);
            }
            api.own((api.call)(method.object, tuple.object))
        }
    }

    /// # Safety
    /// The GIL is held, the object is a number.
    pub(super) unsafe fn as_number(&self) -> c_long {
        // SAFETY: passed on to the caller.
        unsafe { (self.api.as_number)(self.object) }
    }

    /// Passes the reference on to other code.
    pub(super) fn into_object(self) -> ObjectPointer {
        let object = self.object;
        core::mem::forget(self);
        object
    }
}

impl Drop for ObjectReference {
    fn drop(&mut self) {
        // SAFETY: the reference is ours, and the GIL is held as long as it lives.
        unsafe { (self.api.decrement)(self.object) };
    }
}

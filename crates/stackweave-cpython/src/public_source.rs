//! Frames and code objects by the public API alone, for interpreters whose structures are unknown.
//!
//! Needs the GIL. Code objects that were seen are kept alive forever, because nothing detects their death.

use core::cell::Cell;
use core::ffi::{CStr, c_char, c_int, c_long, c_void};
use core::ptr;
use core::slice;

use stackweave_core::{CodeId, RawFrame, SourceStop, SourceWalkResult, StackPointer};

use crate::code::CodeContents;
use crate::code_table::CODES;
use crate::frame::PythonFrame;
use crate::interpreter::first_of;
use crate::line_table::LineTableFormat;
use crate::public_api::{ObjectPointer, PublicApi};
use crate::symbols::SymbolLookup;
use crate::text::StrText;
use crate::thread_state::ThreadStatePointer;
use crate::unavailable::Unavailable;
use crate::version::VersionLayout;
use crate::walk::FrameBuffers;

thread_local! {
    /// Whether this thread is walking: reading a frame may allocate, and a hook of that would walk again.
    static IS_WALKING: Cell<bool> = const { Cell::new(false) };
}

/// The public functions for code objects.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PublicSource {
    api: &'static PublicApi,
    thread_frame: unsafe extern "C" fn(*mut c_void) -> ObjectPointer,
    attribute: unsafe extern "C" fn(ObjectPointer, *const c_char) -> ObjectPointer,
    as_long: unsafe extern "C" fn(ObjectPointer) -> c_long,
    text_length: unsafe extern "C" fn(ObjectPointer) -> isize,
    text_copy: unsafe extern "C" fn(ObjectPointer) -> *mut u32,
    bytes: unsafe extern "C" fn(ObjectPointer, *mut *mut c_char, *mut isize) -> c_int,
    free: unsafe extern "C" fn(*mut c_void),
    decrement: unsafe extern "C" fn(ObjectPointer),
    fetch_error: unsafe extern "C" fn(*mut ObjectPointer, *mut ObjectPointer, *mut ObjectPointer),
    restore_error: unsafe extern "C" fn(ObjectPointer, ObjectPointer, ObjectPointer),
    clear_error: unsafe extern "C" fn(),
    format: LineTableFormat,
}

impl PublicSource {
    pub(crate) fn new(api: &'static PublicApi) -> Result<Self, Unavailable> {
        let symbols = SymbolLookup::find().ok_or(Unavailable::NoInterpreter)?;
        let format = match crate::interpreter::version(symbols)? {
            (3, 9) => LineTableFormat::Steps,
            (3, minor) => VersionLayout::of_minor(minor).map_or(LineTableFormat::Unknown, |layout| layout.line_table),
            _ => LineTableFormat::Unknown,
        };
        // SAFETY: the signatures are those of the documentation, the same in every version from 3.9 on.
        unsafe {
            Ok(Self {
                api,
                thread_frame: first_of(symbols, &[c"PyThreadState_GetFrame"])?,
                attribute: first_of(symbols, &[c"PyObject_GetAttrString"])?,
                as_long: first_of(symbols, &[c"PyLong_AsLong"])?,
                text_length: first_of(symbols, &[c"PyUnicode_GetLength"])?,
                text_copy: first_of(symbols, &[c"PyUnicode_AsUCS4Copy"])?,
                bytes: first_of(symbols, &[c"PyBytes_AsStringAndSize"])?,
                free: first_of(symbols, &[c"PyMem_Free"])?,
                decrement: first_of(symbols, &[c"Py_DecRef"])?,
                fetch_error: first_of(symbols, &[c"PyErr_Fetch"])?,
                restore_error: first_of(symbols, &[c"PyErr_Restore"])?,
                clear_error: first_of(symbols, &[c"PyErr_Clear"])?,
                format,
            })
        }
    }

    /// Walks the frames of this thread. In a signal handler, and while this thread is walking already, there are none.
    pub(crate) fn walk(&self, buffers: FrameBuffers<'_>, in_signal_handler: bool) -> SourceWalkResult {
        if in_signal_handler || IS_WALKING.replace(true) {
            return SourceWalkResult { stop: SourceStop::Interrupted, ..SourceWalkResult::default() };
        }
        let walked = match self.api.current_frame() {
            // SAFETY: the GIL is held, and the frame is a reference of ours.
            Ok(frame) => unsafe { self.write(frame, buffers) },
            Err(stop) => SourceWalkResult { stop, ..SourceWalkResult::default() },
        };
        IS_WALKING.set(false);
        walked
    }

    /// Walks the frames of another thread.
    ///
    /// # Safety
    /// The GIL is held, the state is alive.
    pub(crate) unsafe fn walk_thread(&self, state: ThreadStatePointer, buffers: FrameBuffers<'_>) -> SourceWalkResult {
        // SAFETY: passed on to the caller; the function returns a reference of ours, or null.
        unsafe { self.write((self.thread_frame)(state.address() as usize as *mut c_void), buffers) }
    }

    /// # Safety
    /// The GIL is held; `first` is null or a reference to a frame that this function may release.
    unsafe fn write(&self, first: ObjectPointer, buffers: FrameBuffers<'_>) -> SourceWalkResult {
        let FrameBuffers { frames, activations } = buffers;
        let mut len = 0;
        let write = &mut |frame: PythonFrame| {
            let slot = frames.get_mut(len).ok_or(SourceStop::DepthLimit)?;
            // SAFETY: the GIL is held, and the frame keeps its code object alive.
            let code = unsafe { self.id_of(frame.code.address()) }?;
            *slot = RawFrame::python(code, frame.instruction, false);
            if let Some(activation) = activations.get_mut(len) {
                *activation = StackPointer(0);
            }
            len += 1;
            Ok(())
        };
        // SAFETY: passed on to the caller.
        let stop = unsafe { self.api.visit(first, write) };
        SourceWalkResult { len, stop, ..SourceWalkResult::default() }
    }

    /// Returns the id of a code object, which is kept alive from then on.
    ///
    /// # Safety
    /// The GIL is held, the code object is alive.
    pub(crate) unsafe fn id_of(&self, address: u64) -> Result<CodeId, SourceStop> {
        if let Some(id) = CODES.id_at(address) {
            return Ok(id);
        }
        let code = address as usize as ObjectPointer;
        let mut error = [ptr::null_mut(); 3];
        let [kind, value, traceback] = &mut error;
        // SAFETY: the GIL is held. An exception that is propagating is restored.
        unsafe {
            (self.fetch_error)(kind, value, traceback);
            let id = self.intern(code);
            (self.clear_error)();
            (self.restore_error)(error[0], error[1], error[2]);
            let id = id.ok_or(SourceStop::NoMemory)?;
            self.api.another_reference(code);
            CODES.insert(address, id).ok_or(SourceStop::NoMemory)
        }
    }

    /// # Safety
    /// The GIL is held, no exception is set, the code object is alive.
    unsafe fn intern(&self, code: ObjectPointer) -> Option<CodeId> {
        // SAFETY: passed on to the caller; each copy is used before it is dropped.
        unsafe {
            let name = self.text(code, c"co_name")?;
            let filename = self.text(code, c"co_filename")?;
            let qualname = self.text(code, c"co_qualname");
            (self.clear_error)();
            let first_line = self.get(code, c"co_firstlineno")?;
            let first_line = i32::try_from((self.as_long)(first_line.object)).unwrap_or(-1);
            let table_name = if self.format == LineTableFormat::Steps { c"co_lnotab" } else { c"co_linetable" };
            let line_table = self.get(code, table_name);
            CODES.intern(&CodeContents {
                name: name.text(),
                qualname: qualname.as_ref().map(CopiedText::text),
                filename: filename.text(),
                first_line,
                line_table: line_table.as_ref().and_then(|table| self.contents(table)).unwrap_or_default(),
                format: self.format,
            })
        }
    }

    /// # Safety
    /// The GIL is held, the object is alive.
    unsafe fn get(&self, object: ObjectPointer, name: &CStr) -> Option<Reference<'_>> {
        // SAFETY: passed on to the caller.
        let object = unsafe { (self.attribute)(object, name.as_ptr()) };
        (!object.is_null()).then_some(Reference { object, source: self })
    }

    /// # Safety
    /// As for `get`.
    unsafe fn text(&self, object: ObjectPointer, name: &CStr) -> Option<CopiedText<'_>> {
        // SAFETY: passed on to the caller. The functions themselves reject an object that is not a `str`.
        unsafe {
            let text = self.get(object, name)?;
            let length = usize::try_from((self.text_length)(text.object)).ok()?;
            let data = (self.text_copy)(text.object);
            (!data.is_null()).then_some(CopiedText { data, length, source: self })
        }
    }

    /// # Safety
    /// The GIL is held.
    unsafe fn contents<'a>(&self, object: &'a Reference<'_>) -> Option<&'a [u8]> {
        let (mut data, mut length) = (ptr::null_mut(), 0);
        // SAFETY: an object that is not a `bytes` is rejected; else the data lives as long as the object.
        unsafe {
            let is_bytes = (self.bytes)(object.object, &raw mut data, &raw mut length) == 0;
            is_bytes.then(|| slice::from_raw_parts(data.cast_const().cast(), usize::try_from(length).unwrap_or(0)))
        }
    }
}

/// A reference of ours. Dropped with the GIL held.
struct Reference<'a> {
    object: ObjectPointer,
    source: &'a PublicSource,
}

impl Drop for Reference<'_> {
    fn drop(&mut self) {
        // SAFETY: the reference is ours, and the GIL is held as long as it lives.
        unsafe { (self.source.decrement)(self.object) };
    }
}

/// The characters of a `str`, four bytes each.
struct CopiedText<'a> {
    data: *mut u32,
    length: usize,
    source: &'a PublicSource,
}

impl CopiedText<'_> {
    fn text(&self) -> StrText<'_> {
        // SAFETY: the interpreter has written this many characters, and they are ours.
        let bytes = unsafe { slice::from_raw_parts(self.data.cast_const().cast(), self.length * size_of::<u32>()) };
        StrText { width: 4, bytes }
    }
}

impl Drop for CopiedText<'_> {
    fn drop(&mut self) {
        // SAFETY: the copy is ours, and the GIL is held as long as it lives.
        unsafe { (self.source.free)(self.data.cast()) };
    }
}

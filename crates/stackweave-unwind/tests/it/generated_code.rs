//! Code generated at run time: with frame pointers, with unwind entries registered here or with libgcc, or without
//! both.

use std::ffi::c_void;

use stackweave_unwind::{CodeAddress, StopReason, capture, register_code};

/// Machine code in mapped memory: `code(callback, argument)` calls `callback(argument)`.
struct GeneratedCode {
    memory: *mut u8,
}

const PAGE: usize = 4096;

/// `push %rbp; mov %rsp, %rbp; mov %rdi, %rax; mov %rsi, %rdi; call *%rax; pop %rbp; ret`
const WITH_FRAME_POINTER: &[u8] = &[0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0xf8, 0x48, 0x89, 0xf7, 0xff, 0xd0, 0x5d, 0xc3];
/// `sub $40, %rsp; mov %rdi, %rax; mov %rsi, %rdi; xor %ebp, %ebp` (after saving it at 8(%rsp))
/// `call *%rax; mov 8(%rsp), %rbp; add $40, %rsp; ret`
const WITHOUT_FRAME_POINTER: &[u8] = &[
    0x48, 0x83, 0xec, 0x28, 0x48, 0x89, 0x6c, 0x24, 0x08, 0x48, 0x89, 0xf8, 0x48, 0x89, 0xf7, 0x31, 0xed, 0xff, 0xd0,
    0x48, 0x8b, 0x6c, 0x24, 0x08, 0x48, 0x83, 0xc4, 0x28, 0xc3,
];

type Callback = unsafe extern "C" fn(*mut c_void);

impl GeneratedCode {
    fn new(bytes: &[u8]) -> Self {
        Self::at(std::ptr::null_mut(), bytes).expect("memory for a page of code")
    }

    /// Maps code at the given address, unless another thread has just used it; anywhere if it is null.
    fn at(place: *mut u8, bytes: &[u8]) -> Option<Self> {
        // SAFETY: a fresh mapping, which is filled with code and then made executable.
        unsafe {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let fixed = if place.is_null() { 0 } else { libc::MAP_FIXED_NOREPLACE };
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | fixed;
            let memory = libc::mmap(place.cast(), PAGE, access, flags, -1, 0);
            if memory == libc::MAP_FAILED {
                return None;
            }
            let memory = memory.cast::<u8>();
            memory.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            assert_eq!(libc::mprotect(memory.cast(), PAGE, libc::PROT_READ | libc::PROT_EXEC), 0);
            Some(Self { memory })
        }
    }

    fn call(&self, callback: Callback, argument: *mut c_void) {
        // SAFETY: the code has this signature.
        unsafe {
            let code: unsafe extern "C" fn(Callback, *mut c_void) = std::mem::transmute(self.memory);
            code(callback, argument);
        }
    }

    fn holds(&self, address: u64) -> bool {
        address.wrapping_sub(self.memory as u64) < PAGE as u64
    }

    /// Returns an `.eh_frame` for `WITHOUT_FRAME_POINTER` here: CIE, FDE, terminator.
    fn entries(&self) -> Vec<u8> {
        // No augmentation; alignments 1 and -8; column 16. CFA is rsp + 8, return address at CFA - 8.
        let mut table = entry(&[&[0; 4], &[1, 0, 1, 0x78, 16], &[0x0c, 7, 8, 0x90, 1]]);
        let distance = u32::try_from(table.len() + 4).unwrap();
        // advance 4; CFA is rsp + 48; advance 5; rbp at CFA - 40; advance 19; CFA is rsp + 8
        let program = [0x44, 0x0e, 48, 0x45, 0x86, 5, 0x53, 0x0e, 8];
        let start = (self.memory as u64).to_le_bytes();
        table.extend(entry(&[&distance.to_le_bytes(), &start, &(PAGE as u64).to_le_bytes(), &program]));
        table.extend([0; 4]);
        table
    }
}

impl Drop for GeneratedCode {
    fn drop(&mut self) {
        // SAFETY: mapped in `new`.
        unsafe { libc::munmap(self.memory.cast(), PAGE) };
    }
}

/// Returns an entry: a length, then the parts, padded to eight bytes.
fn entry(parts: &[&[u8]]) -> Vec<u8> {
    let mut body = parts.concat();
    body.resize(body.len().next_multiple_of(8) + 4, 0);
    let length = u32::try_from(body.len()).unwrap();
    [&length.to_le_bytes()[..], &body].concat()
}

/// The stack that was captured inside the callback.
#[derive(Default)]
struct CallbackCapture {
    frames: Vec<u64>,
    stop: Option<StopReason>,
}

unsafe extern "C" fn capture_in_callback(captured_inside: *mut c_void) {
    let mut frames = [CodeAddress::default(); 256];
    let captured = capture(&mut frames, 0);
    // SAFETY: `capture_under` passes a `CallbackCapture`.
    let captured_inside = unsafe { &mut *captured_inside.cast::<CallbackCapture>() };
    captured_inside.frames = frames[..captured.len].iter().map(|frame| frame.address()).collect();
    captured_inside.stop = Some(captured.stop);
}

#[inline(never)]
fn capture_under(code: &GeneratedCode) -> CallbackCapture {
    let mut captured_inside = CallbackCapture::default();
    code.call(capture_in_callback, (&raw mut captured_inside).cast());
    captured_inside
}

/// Returns the stack of the caller of `capture_under`, with which each of its results continues.
#[inline(never)]
fn outer_frames() -> Vec<u64> {
    let mut frames = [CodeAddress::default(); 256];
    let captured = capture(&mut frames, 1);
    assert_eq!(captured.stop, StopReason::EndOfStack);
    frames[..captured.len].iter().map(|frame| frame.address()).collect()
}

/// Asserts that the stack is complete: through the generated frame to the caller and everything outside it. The
/// innermost common frame differs only in its call site.
fn assert_complete(captured_inside: &CallbackCapture, code: &GeneratedCode, outer: &[u64]) {
    assert_eq!(captured_inside.stop, Some(StopReason::EndOfStack), "{:x?}", captured_inside.frames);
    assert_eq!(
        captured_inside.frames.iter().filter(|address| code.holds(**address)).count(),
        1,
        "{:x?}",
        captured_inside.frames
    );
    assert!(captured_inside.frames.ends_with(&outer[1..]), "{:x?}\n{outer:x?}", captured_inside.frames);
}

/// Asserts that the stack ends cleanly at the generated frame.
fn assert_cut(captured_inside: &CallbackCapture, code: &GeneratedCode) {
    assert_eq!(captured_inside.stop, Some(StopReason::NoModule), "{:x?}", captured_inside.frames);
    assert!(captured_inside.frames.last().is_some_and(|address| code.holds(*address)));
}

#[test]
fn unknown_code_with_a_frame_pointer_is_walked_through() {
    let code = GeneratedCode::new(WITH_FRAME_POINTER);
    let outer = outer_frames();
    for _ in 0..3 {
        assert_complete(&capture_under(&code), &code, &outer);
    }
}

#[test]
fn unknown_code_without_a_frame_pointer_ends_the_walk() {
    let code = GeneratedCode::new(WITHOUT_FRAME_POINTER);
    for _ in 0..3 {
        assert_cut(&capture_under(&code), &code);
    }
}

#[test]
fn registered_code_is_walked_through_until_it_is_dropped() {
    let code = GeneratedCode::new(WITHOUT_FRAME_POINTER);
    let outer = outer_frames();
    for _ in 0..3 {
        assert_cut(&capture_under(&code), &code);
        let registered = register_code(code.memory, PAGE, &code.entries());
        for _ in 0..3 {
            assert_complete(&capture_under(&code), &code, &outer);
        }
        drop(registered);
    }
    assert_cut(&capture_under(&code), &code);
}

#[test]
fn code_registered_as_keeping_frame_pointers_is_walked_by_them() {
    let code = GeneratedCode::new(WITH_FRAME_POINTER);
    let outer = outer_frames();
    let registered = register_code(code.memory, PAGE, &[]);
    for _ in 0..3 {
        assert_complete(&capture_under(&code), &code, &outer);
    }
    drop(registered);
}

#[test]
fn code_registered_with_libgcc_is_walked_through_until_it_is_deregistered() {
    unsafe extern "C" {
        fn __register_frame(entries: *const u8);
        fn __deregister_frame(entries: *const u8);
    }
    let code = GeneratedCode::new(WITHOUT_FRAME_POINTER);
    let outer = outer_frames();
    let entries = code.entries();
    for _ in 0..3 {
        // SAFETY: a complete table with its terminator, which outlives its registration.
        unsafe { __register_frame(entries.as_ptr()) };
        for _ in 0..3 {
            assert_complete(&capture_under(&code), &code, &outer);
        }
        // SAFETY: registered above.
        unsafe { __deregister_frame(entries.as_ptr()) };
        assert_cut(&capture_under(&code), &code);
    }
}

#[test]
fn different_code_at_the_same_address_gets_its_own_rules() {
    let outer = outer_frames();
    let mut place = std::ptr::null_mut();
    let mut at_the_same_place = 0;
    for round in 0..40 {
        let keeps_fp = round % 2 == 0;
        let bytes = if keeps_fp { WITH_FRAME_POINTER } else { WITHOUT_FRAME_POINTER };
        let code = GeneratedCode::at(place, bytes).unwrap_or_else(|| GeneratedCode::new(bytes));
        at_the_same_place += u32::from(code.memory == place);
        place = code.memory;
        let entries = if keeps_fp { Vec::new() } else { code.entries() };
        let registered = register_code(code.memory, PAGE, &entries);
        assert_complete(&capture_under(&code), &code, &outer);
        drop(registered);
    }
    assert!(at_the_same_place > 0, "another thread used the address every time");
}

#[test]
fn registering_while_others_capture_is_safe() {
    let code = GeneratedCode::new(WITHOUT_FRAME_POINTER);
    let entries = code.entries();
    let code = &code;
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(move || {
                for _ in 0..3_000 {
                    let captured_inside = capture_under(code);
                    assert!(captured_inside.frames.iter().any(|address| code.holds(*address)));
                    assert!(matches!(captured_inside.stop, Some(StopReason::EndOfStack | StopReason::NoModule)));
                }
            });
        }
        for _ in 0..300 {
            drop(register_code(code.memory, PAGE, &entries));
        }
    });
}

// SAFETY: the code is only read and run.
unsafe impl Sync for GeneratedCode {}

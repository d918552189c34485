//! x86-64: what a walk can derive from machine code that has no unwind entry.

/// Returns the target of the call instruction that ends at a return address, if the bytes there can be one.
/// `before` contains the seven bytes before the return address.
pub(crate) fn call_before(before: [u8; 7], return_address: u64) -> Option<CallTarget> {
    if before[2] == 0xe8 {
        let distance = i32::from_le_bytes([before[3], before[4], before[5], before[6]]);
        return Some(CallTarget::Direct(return_address.wrapping_add(i64::from(distance).cast_unsigned())));
    }
    // FF /2: the length follows from the ModRM byte (and SIB, displacement).
    let indirect = (2..=7).any(|length| {
        let at = 7 - length;
        before[at] == 0xff
            && before[at + 1] >> 3 & 7 == 2
            && indirect_call_length(before[at + 1], before.get(at + 2)) == length
    });
    indirect.then_some(CallTarget::Indirect)
}

/// The target of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallTarget {
    /// To this address.
    Direct(u64),
    /// A target in a register or in memory.
    Indirect,
}

/// Returns the length of `FF /2` with this `ModRM` byte and, if it has one, SIB byte.
fn indirect_call_length(modrm: u8, sib: Option<&u8>) -> usize {
    let (mode, rm) = (modrm >> 6, modrm & 7);
    let has_sib = mode != 3 && rm == 4;
    let displacement = match mode {
        0 if rm == 5 => 4,
        0 if has_sib && sib.is_some_and(|sib| sib & 7 == 5) => 4,
        1 => 1,
        2 => 4,
        _ => 0,
    };
    2 + usize::from(has_sib) + displacement
}

/// Returns the slot through which a linkage stub at `address` jumps: an optional `endbr64`, then `jmp
/// *slot(%rip)`, with or without a `bnd` prefix.
pub(crate) fn linkage_slot(code: &[u8; 11], address: u64) -> Option<u64> {
    let start = if code.starts_with(&[0xf3, 0x0f, 0x1e, 0xfa]) { 4 } else { 0 };
    let start = start + usize::from(code[start] == 0xf2);
    let jump = code.get(start..start + 6)?.first_chunk::<6>()?;
    let [0xff, 0x25, distance @ ..] = jump else { return None };
    let next = address.wrapping_add(start as u64 + 6);
    Some(next.wrapping_add(i64::from(i32::from_le_bytes(*distance)).cast_unsigned()))
}

/// Returns whether the code begins with `endbr64`, as functions do that are called through pointers.
pub(crate) fn is_landing_pad(code: [u8; 8]) -> bool {
    code.starts_with(&[0xf3, 0x0f, 0x1e, 0xfa])
}

/// Returns whether the code begins with `push %rbp`.
pub(crate) fn is_push_of_frame_pointer(code: [u8; 8]) -> bool {
    code[0] == 0x55
}

/// Returns whether `push %rbp; mov %rsp, %rbp` is somewhere in the code, in either encoding.
pub(crate) fn sets_up_frame_pointer(code: &[u8]) -> bool {
    code.windows(4).any(|code| matches!(code, [0x55, 0x48, 0x89, 0xe5] | [0x55, 0x48, 0x8b, 0xec]))
}

/// Returns whether the code is the kernel's signal trampoline without unwind information (musl, Go): `mov $15,
/// %rax; syscall`, or its shorter form with `%eax`.
pub(crate) fn is_signal_return(code: &[u8; 9]) -> bool {
    *code == [0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05] || code[..7] == [0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_recognised_by_their_bytes() {
        assert_eq!(call_before([0, 0, 0xe8, 0x10, 0, 0, 0], 0x1000), Some(CallTarget::Direct(0x1010)));
        // call *%rax; call *8(%rax); call *0x10(%rip); call *%r12; call *(%rsp); call *0x100(%rax,%rbx,8)
        for tail in [
            &[0xff, 0xd0][..],
            &[0xff, 0x50, 8],
            &[0xff, 0x15, 0x10, 0, 0, 0],
            &[0x41, 0xff, 0xd4],
            &[0xff, 0x14, 0x24],
            &[0xff, 0x94, 0xd8, 0, 1, 0, 0],
        ] {
            let mut before = [0; 7];
            before[7 - tail.len()..].copy_from_slice(tail);
            assert_eq!(call_before(before, 0x1000), Some(CallTarget::Indirect), "{tail:x?}");
        }
        assert_eq!(call_before([0x90; 7], 0x1000), None);
        // jmp *%rax is FF /4
        assert_eq!(call_before([0, 0, 0, 0, 0, 0xff, 0xe0], 0x1000), None);
    }

    #[test]
    fn linkage_stubs_lead_through_their_slot() {
        let plain = [0xff, 0x25, 0x10, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(linkage_slot(&plain, 0x1000), Some(0x1016));
        let with_endbr = [0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 0x10, 0, 0, 0];
        assert_eq!(linkage_slot(&with_endbr, 0x1000), Some(0x101b));
        assert_eq!(linkage_slot(&[0x90; 11], 0x1000), None);
    }
}

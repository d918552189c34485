//! One row of an unwind table, reduced to the registers of a compact rule.

use core::ops::RangeInclusive;

use super::entry::{Cie, Fde};
use super::pointer;
use super::reader::{ByteReader, TableSection};
use super::{Malformed, Result};
use crate::platform::arch::dwarf;
use crate::platform::rule::{Rule, RuleKind};

/// The rule for the canonical frame address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cfa {
    /// `register + offset`
    Register(u64, i64),
    /// `*(register + offset)`
    Deref(u64, i64),
    /// A rule that only the general evaluator supports.
    Other,
}

/// The rule for a register's value in the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SavedRegister {
    Same,
    Undefined,
    /// `*(cfa + offset)`
    AtCfa(i64),
    /// `*(register + offset)`
    AtRegister(u64, i64),
    Other,
}

/// The row, as far as it has been built.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnwindRow {
    cfa: Cfa,
    fp: SavedRegister,
    /// Whether the row has a rule for the stack pointer. Almost no row has one: by default, it is the CFA.
    says_sp: bool,
    return_address: SavedRegister,
}

/// The number of rows that `remember_state` may nest; compilers nest one or two.
const REMEMBERED: usize = 8;

/// Compiles the row of `fde` for `pc`.
pub(super) fn compile(section: &TableSection<'_>, fde: &Fde<'_>, cie: &Cie, pc: u64) -> Result<Rule> {
    let mut row = cie.initial;
    let mut instructions = fde.instructions;
    row.run(section, &mut instructions, cie, fde.start..=pc)?;
    Ok(if cie.is_signal_frame { Rule::of(RuleKind::General) } else { row.rule() })
}

impl UnwindRow {
    pub(super) const UNSET: Self =
        Self { cfa: Cfa::Other, fp: SavedRegister::Same, says_sp: false, return_address: SavedRegister::Same };

    fn rule(&self) -> Rule {
        let rbp = dwarf::FRAME_POINTER;
        match (self.return_address, self.cfa, self.fp) {
            (SavedRegister::Undefined, ..) => Rule::of(RuleKind::End),
            _ if self.says_sp => Rule::of(RuleKind::General),
            (SavedRegister::AtCfa(-8), Cfa::Register(register, offset), fp) => {
                let kind = match register {
                    dwarf::STACK_POINTER => RuleKind::Sp,
                    dwarf::FRAME_POINTER => RuleKind::Fp,
                    _ => return Rule::of(RuleKind::General),
                };
                match fp {
                    SavedRegister::Same | SavedRegister::Undefined => Rule::with_offsets(kind, offset, 0),
                    SavedRegister::AtCfa(at) if at != 0 => Rule::with_offsets(kind, offset, at),
                    SavedRegister::AtCfa(_) | SavedRegister::AtRegister(..) | SavedRegister::Other => {
                        Rule::of(RuleKind::General)
                    }
                }
            }
            (SavedRegister::AtCfa(-8), Cfa::Deref(base, offset), SavedRegister::AtRegister(at, fp))
                if base == rbp && at == rbp =>
            {
                Rule::with_offsets(RuleKind::FpDeref, offset, fp)
            }
            _ => Rule::of(RuleKind::General),
        }
    }

    /// Runs instructions, beginning at the first address of `span`, until the row for its last address is
    /// complete.
    pub(super) fn run(
        &mut self,
        section: &TableSection<'_>,
        reader: &mut ByteReader<'_>,
        cie: &Cie,
        span: RangeInclusive<u64>,
    ) -> Result<()> {
        let (mut location, pc) = span.into_inner();
        let mut remembered = [Self::UNSET; REMEMBERED];
        let mut depth = 0;
        while !reader.is_empty() {
            let byte = reader.u8()?;
            let low = u64::from(byte & 0x3f);
            let advance = match byte {
                0x40..=0x7f => low,
                0x02 => u64::from(reader.u8()?),
                0x03 => u64::from(reader.u16()?),
                0x04 => u64::from(reader.u32()?),
                0x01 => {
                    let next = pointer::read(section, reader, cie.pointer_encoding, 0)?;
                    if next > pc {
                        return Ok(());
                    }
                    location = next;
                    continue;
                }
                0x0a => {
                    *remembered.get_mut(depth).ok_or(Malformed)? = *self;
                    depth += 1;
                    continue;
                }
                0x0b => {
                    depth = depth.checked_sub(1).ok_or(Malformed)?;
                    *self = remembered[depth];
                    continue;
                }
                _ => {
                    self.apply(byte, low, reader, cie)?;
                    continue;
                }
            };
            location = location.wrapping_add(advance.wrapping_mul(cie.code_alignment));
            if location > pc {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Applies one instruction that changes the row.
    #[inline]
    fn apply(&mut self, byte: u8, low: u64, reader: &mut ByteReader<'_>, cie: &Cie) -> Result<()> {
        let factored = |value: u64| value.cast_signed().wrapping_mul(cie.data_alignment);
        let factored_signed = |value: i64| value.wrapping_mul(cie.data_alignment);
        match byte {
            0x80..=0xbf => self.save(low, SavedRegister::AtCfa(factored(reader.uleb()?))),
            0xc0..=0xff => self.restore(low, cie),
            0x00 => {}
            0x05 => {
                let register = reader.uleb()?;
                self.save(register, SavedRegister::AtCfa(factored(reader.uleb()?)));
            }
            0x06 => self.restore(reader.uleb()?, cie),
            0x07 => self.save(reader.uleb()?, SavedRegister::Undefined),
            0x08 => self.save(reader.uleb()?, SavedRegister::Same),
            // register, val_offset, GNU_negative_offset_extended
            0x09 | 0x14 | 0x2f => {
                let register = reader.uleb()?;
                reader.uleb()?;
                self.save(register, SavedRegister::Other);
            }
            0x15 => {
                let register = reader.uleb()?;
                reader.sleb()?;
                self.save(register, SavedRegister::Other);
            }
            0x0c => self.cfa = Cfa::Register(reader.uleb()?, reader.uleb()?.cast_signed()),
            0x0d => {
                let register = reader.uleb()?;
                let Cfa::Register(_, offset) = self.cfa else { return Err(Malformed) };
                self.cfa = Cfa::Register(register, offset);
            }
            0x0e => self.set_cfa_offset(reader.uleb()?.cast_signed())?,
            0x12 => self.cfa = Cfa::Register(reader.uleb()?, factored_signed(reader.sleb()?)),
            0x13 => self.set_cfa_offset(factored_signed(reader.sleb()?))?,
            0x0f => {
                let length = reader.uleb()?;
                self.cfa = match base_and_offset(reader.take(length)?) {
                    Some((register, offset, true)) => Cfa::Deref(register, offset),
                    Some((register, offset, false)) => Cfa::Register(register, offset),
                    None => Cfa::Other,
                };
            }
            0x10 => {
                let (register, length) = (reader.uleb()?, reader.uleb()?);
                let saved = match base_and_offset(reader.take(length)?) {
                    Some((base, offset, false)) => SavedRegister::AtRegister(base, offset),
                    _ => SavedRegister::Other,
                };
                self.save(register, saved);
            }
            0x11 => {
                let register = reader.uleb()?;
                self.save(register, SavedRegister::AtCfa(factored_signed(reader.sleb()?)));
            }
            0x16 => {
                let (register, length) = (reader.uleb()?, reader.uleb()?);
                reader.skip(length)?;
                self.save(register, SavedRegister::Other);
            }
            // GNU_args_size
            0x2e => {
                reader.uleb()?;
            }
            _ => return Err(Malformed),
        }
        Ok(())
    }

    fn set_cfa_offset(&mut self, offset: i64) -> Result<()> {
        let Cfa::Register(register, _) = self.cfa else { return Err(Malformed) };
        self.cfa = Cfa::Register(register, offset);
        Ok(())
    }

    #[inline]
    fn save(&mut self, register: u64, saved: SavedRegister) {
        match register {
            dwarf::FRAME_POINTER => self.fp = saved,
            dwarf::STACK_POINTER => self.says_sp = true,
            dwarf::RETURN_ADDRESS => self.return_address = saved,
            _ => {}
        }
    }

    #[inline]
    fn restore(&mut self, register: u64, cie: &Cie) {
        match register {
            dwarf::FRAME_POINTER => self.fp = cie.initial.fp,
            dwarf::STACK_POINTER => self.says_sp = cie.initial.says_sp,
            dwarf::RETURN_ADDRESS => self.return_address = cie.initial.return_address,
            _ => {}
        }
    }
}

/// Parses the expressions of realigned frames: a register plus an offset, and whether the sum is dereferenced.
fn base_and_offset(mut expression: ByteReader<'_>) -> Option<(u64, i64, bool)> {
    let operation = expression.u8().ok()?;
    let register = operation.checked_sub(0x70).filter(|register| *register < 32)?;
    let offset = expression.sleb().ok()?;
    if expression.is_empty() {
        return Some((u64::from(register), offset, false));
    }
    let dereferenced = expression.u8().ok()? == 0x06 && expression.is_empty();
    dereferenced.then_some((u64::from(register), offset, true))
}

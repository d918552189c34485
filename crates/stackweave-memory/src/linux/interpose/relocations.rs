//! The relocation entries by which a module declares what its slots hold.

use crate::platform::interpose::arch;
use crate::platform::interpose::module::InterposedModule;

/// An entry of `DT_RELA` or `DT_JMPREL`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Relocation {
    offset: u64,
    info: u64,
    addend: i64,
}

/// The time at which the loader fills a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Binding {
    /// When the module is loaded, or at the first call through the slot.
    ByCall,
    /// When the module is loaded.
    AtLoad,
    /// When the module is loaded; the slot is a variable that the program itself may change.
    InVariable,
}

/// A slot for a function of a known name.
#[derive(Clone, Copy, Debug)]
pub(super) struct FunctionSlot {
    pub(super) address: u64,
    pub(super) binding: Binding,
    /// The address of the function, if the module itself defines it.
    pub(super) own_definition: Option<u64>,
}

/// Calls `visit` with each slot of the module whose symbol `find` knows, and with the result of `find`, which gets the
/// module's strings from the name's first byte on.
pub(super) fn visit_slots<T: Copy>(
    module: &InterposedModule<'_>,
    mut find: impl FnMut(&[u8]) -> Option<T>,
    mut visit: impl FnMut(FunctionSlot, T),
) {
    // Adjacent entries often name the same symbol.
    let mut last: (u32, Option<(Option<u64>, T)>) = (0, None);
    for relocation in module.relocations() {
        let (number, kind) = ((relocation.info >> 32) as u32, relocation.info as u32);
        if number == 0 || relocation.addend != 0 {
            continue;
        }
        let Some(binding) = arch::binding(kind) else { continue };
        if number != last.0 {
            last = (number, lookup(module, number, &mut find));
        }
        let Some((own_definition, function)) = last.1 else { continue };
        let address = module.loaded.base.wrapping_add(relocation.offset);
        if module.is_slot(address) {
            visit(FunctionSlot { address, binding, own_definition }, function);
        }
    }
}

fn lookup<T>(
    module: &InterposedModule<'_>,
    number: u32,
    find: &mut impl FnMut(&[u8]) -> Option<T>,
) -> Option<(Option<u64>, T)> {
    const UNDEFINED: u16 = 0;
    let symbol = module.symbol(number)?;
    let function = find(module.name(&symbol)?)?;
    let own = (symbol.st_shndx != UNDEFINED).then(|| module.loaded.base.wrapping_add(symbol.st_value));
    Some((own, function))
}

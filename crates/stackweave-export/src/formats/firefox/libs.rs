//! The libraries of all processes.

use std::collections::HashMap;
use std::fmt::Write;

use serde_json::{Value, json};
use stackweave_core::{BuildId, Module};

use crate::activity::NamedProcess;

/// Modules by path and build id, without duplicates.
#[derive(Debug, Default)]
pub(super) struct Libs {
    names: Vec<String>,
    values: Vec<Value>,
    by_module: HashMap<(String, Option<BuildId>), usize>,
}

impl Libs {
    pub(super) fn of(processes: &[NamedProcess<'_>]) -> Self {
        let mut libs = Self::default();
        for (_, module) in processes.iter().flat_map(|process| process.recording.dictionary().modules()) {
            libs.add(module);
        }
        libs
    }

    fn add(&mut self, module: &Module) {
        if self.by_module.contains_key(&key(module)) {
            return;
        }
        let path = module.path.to_string_lossy();
        let name = path.rsplit('/').next().unwrap_or(&path).to_owned();
        self.by_module.insert(key(module), self.values.len());
        self.values.push(json!({
            "name": name,
            "path": path,
            "debugName": name,
            "debugPath": path,
            "breakpadId": module.build_id.as_ref().map_or_else(|| "0".repeat(33), breakpad_id),
            "codeId": module.build_id.as_ref().map(BuildId::to_string),
            "arch": Value::Null,
        }));
        self.names.push(name);
    }

    pub(super) fn find(&self, module: &Module) -> Option<usize> {
        self.by_module.get(&key(module)).copied()
    }

    pub(super) fn name(&self, lib: usize) -> &str {
        self.names.get(lib).map_or("", String::as_str)
    }

    pub(super) fn values(&self) -> Value {
        json!(self.values)
    }
}

fn key(module: &Module) -> (String, Option<BuildId>) {
    (module.path.to_string_lossy().into_owned(), module.build_id.clone())
}

/// Returns Breakpad's form of a build id: the first 16 bytes as a GUID, whose first three numbers are little-endian,
/// and an age of 0.
fn breakpad_id(id: &BuildId) -> String {
    let mut bytes = [0; 16];
    let length = id.as_bytes().len().min(16);
    bytes[..length].copy_from_slice(&id.as_bytes()[..length]);
    bytes[..4].reverse();
    bytes[4..6].reverse();
    bytes[6..8].reverse();
    let mut text = String::with_capacity(33);
    for byte in bytes {
        let written = write!(text, "{byte:02X}");
        debug_assert!(written.is_ok(), "writing to memory can't fail");
    }
    text.push('0');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_id_becomes_a_guid() {
        let id = BuildId::new(&(0x10..0x24).collect::<Vec<u8>>()).unwrap();
        assert_eq!(breakpad_id(&id), "131211101514171618191A1B1C1D1E1F0");
        assert_eq!(breakpad_id(&BuildId::new(&[1]).unwrap()), "000000010000000000000000000000000");
    }
}

//! Objects of the interpreter: types, texts and bytes.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use stackweave_cpython::layout::{Characters, StrText, VersionLayout, is_plausible};

use super::snapshot::PageSnapshot;

/// The offset of an object's type.
const OBJECT_TYPE: usize = 8;
/// The offset of a type's name.
const TYPE_NAME: usize = 24;
/// The number of bytes that are read of a type's name: enough for the types that are compared.
const TYPE_NAME_LENGTH: usize = 5;
/// The maximum length of a text; longer ones are cut.
const MAX_TEXT: usize = 1 << 14;
/// The maximum length of a line table.
const MAX_BYTES: u64 = 1 << 24;

/// Reads objects.
pub(super) struct Objects<'a> {
    pub(super) snapshot: &'a PageSnapshot<'a>,
    pub(super) layout: &'a VersionLayout,
    texts: RefCell<HashMap<u64, Option<Arc<str>>>>,
    /// The beginnings of the names of types.
    types: RefCell<HashMap<u64, Option<[u8; TYPE_NAME_LENGTH]>>>,
}

impl<'a> Objects<'a> {
    pub(super) fn new(snapshot: &'a PageSnapshot<'a>, layout: &'a VersionLayout) -> Self {
        Self { snapshot, layout, texts: RefCell::default(), types: RefCell::default() }
    }

    /// Returns the type of an object.
    pub(super) fn type_of(&self, object: u64) -> Option<u64> {
        is_plausible(object).then(|| self.snapshot.word(object, OBJECT_TYPE)).flatten().filter(|at| is_plausible(*at))
    }

    /// Returns whether an object's type has this name, which ends in a zero byte. Comparing names avoids looking
    /// up the addresses of types by symbols.
    pub(super) fn is_a(&self, object: u64, name: &[u8]) -> bool {
        let Some(address) = self.type_of(object) else { return false };
        let read = || {
            let mut name = [0; TYPE_NAME_LENGTH];
            self.snapshot.read(self.snapshot.word(address, TYPE_NAME)?, &mut name)?;
            Some(name)
        };
        let known = *self.types.borrow_mut().entry(address).or_insert_with(read);
        known.is_some_and(|known| known.starts_with(name))
    }

    /// Reads a `str`.
    pub(super) fn text(&self, address: u64) -> Option<Arc<str>> {
        if let Some(known) = self.texts.borrow().get(&address) {
            return known.clone();
        }
        let text = self.read_text(address).map(Arc::from);
        self.texts.borrow_mut().insert(address, text.clone());
        text
    }

    fn read_text(&self, address: u64) -> Option<String> {
        let characters = self.characters(address)?;
        let mut bytes = vec![0; characters.length.min(MAX_TEXT)];
        self.snapshot.read(self.start_of(address, &characters)?, &mut bytes)?;
        let mut text = StrText { width: characters.width, bytes: &bytes }.decode();
        if bytes.len() < characters.length {
            text.push('\u{2026}');
        }
        Some(text)
    }

    /// Returns whether a `str` equals this ASCII text.
    pub(super) fn equals(&self, address: u64, text: &str) -> bool {
        let read = || {
            let characters = self.characters(address).filter(|found| found.width == 1 && found.length == text.len())?;
            let mut bytes = vec![0; text.len()];
            self.snapshot.read(self.start_of(address, &characters)?, &mut bytes)?;
            Some(bytes == text.as_bytes())
        };
        read().unwrap_or(false)
    }

    fn characters(&self, address: u64) -> Option<Characters> {
        let layout = &self.layout.text;
        let length = is_plausible(address).then(|| self.snapshot.word(address, layout.length)).flatten()?;
        let state = self.snapshot.half_word(address, layout.state)?;
        layout.characters(usize::try_from(length).ok()?, state)
    }

    fn start_of(&self, address: u64, characters: &Characters) -> Option<u64> {
        if characters.is_compact {
            address.checked_add(characters.start as u64)
        } else {
            self.snapshot.word(address, characters.start)
        }
    }

    /// Reads a `bytes` object.
    pub(super) fn bytes(&self, address: u64) -> Option<Vec<u8>> {
        let layout = &self.layout.text;
        let length = is_plausible(address).then(|| self.snapshot.word(address, layout.bytes_length)).flatten()?;
        if length > MAX_BYTES {
            return None;
        }
        let mut bytes = vec![0; usize::try_from(length).ok()?];
        self.snapshot.read(address.checked_add(layout.bytes as u64)?, &mut bytes)?;
        Some(bytes)
    }
}

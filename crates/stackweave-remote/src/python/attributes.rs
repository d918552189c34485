//! Dictionaries and attributes. Malformed objects have no values.

use std::collections::HashMap;

use stackweave_cpython::layout::{InstanceLayout, KeysLayout, is_plausible};

use super::objects::Objects;

/// Offsets in a type, in all versions: `tp_basicsize`, `tp_flags`, `tp_dictoffset`.
const TYPE_SIZE: usize = 32;
const TYPE_FLAGS: usize = 168;
const TYPE_DICTIONARY: usize = 288;
/// A type flag, from 3.13 on: values are behind the object.
const INLINE_VALUES: u64 = 1 << 2;
/// A type flag, from 3.11 on: the pointer to its attributes is before the object.
const MANAGED_DICTIONARY: u64 = 1 << 4;
/// Offsets in a dictionary, in all versions: `ma_keys`, `ma_values`.
const KEYS: usize = 32;
const VALUES: usize = 40;
/// The maximum size of an object.
const MAX_OBJECT_SIZE: u64 = 1 << 20;
/// The maximum number of entries of a dictionary that is read here.
const MAX_ENTRIES: u64 = 1 << 16;
const MAX_INDEX_SIZE: u64 = 1 << 20;
const WORD: u64 = 8;

/// The entries of a dictionary.
struct DictionaryEntries {
    start: u64,
    count: u64,
    /// Whether an entry begins with the hash of its key.
    have_hash: bool,
}

impl DictionaryEntries {
    /// Returns the address of an entry's key. Its value follows.
    fn key(&self, index: u64) -> Option<u64> {
        let (size, key) = if self.have_hash { (3 * WORD, WORD) } else { (2 * WORD, 0) };
        self.start.checked_add(index.checked_mul(size)?)?.checked_add(key)
    }
}

impl Objects<'_> {
    /// Returns the value that a dictionary has for this text.
    pub(super) fn item(&self, dictionary: u64, name: &str) -> Option<u64> {
        let (keys, values) = self.tables(dictionary)?;
        self.value(keys, values, name)
    }

    /// Returns the entries of a dictionary whose keys are numbers. They are smaller than 2^61 - 1, and such
    /// numbers are their own hash.
    pub(super) fn items_of_numbers(&self, dictionary: u64) -> Option<HashMap<u64, u64>> {
        let (keys, None) = self.tables(dictionary)? else { return None };
        let entries = self.entries(keys).filter(|entries| entries.have_hash)?;
        let mut items = HashMap::new();
        for index in 0..entries.count {
            let key = entries.key(index)?;
            // A deleted entry has no key.
            if self.word(key)? != 0 {
                items.insert(self.word(key.checked_sub(WORD)?)?, self.word(key.checked_add(WORD)?)?);
            }
        }
        Some(items)
    }

    /// Returns an attribute of the instance itself.
    pub(super) fn attribute(&self, object: u64, name: &str) -> Option<u64> {
        let of_type = self.type_of(object)?;
        let flags = self.snapshot.word(of_type, TYPE_FLAGS)?;
        let before = |distance: usize| self.word(object.checked_sub(distance as u64)?);
        let cached = |keys: usize| self.snapshot.word(of_type, keys);
        if flags & MANAGED_DICTIONARY == 0 {
            return self.attribute_as_of_others(object, of_type, name);
        }
        match self.layout.attributes.instance {
            InstanceLayout::AsOthers => self.attribute_as_of_others(object, of_type, name),
            InstanceLayout::ValuesOrDictionary { values_before, dictionary_before, cached_keys } => {
                match before(values_before)? {
                    0 => self.item(before(dictionary_before)?, name),
                    values => self.value(cached(cached_keys)?, Some(values), name),
                }
            }
            InstanceLayout::Tagged { word_before, cached_keys } => match before(word_before)? {
                values if values & 1 == 1 => self.value(cached(cached_keys)?, values.checked_add(1), name),
                dictionary => self.item(dictionary, name),
            },
            InstanceLayout::Inline { dictionary_before, first_value, is_valid, cached_keys } => {
                let dictionary = before(dictionary_before)?;
                if dictionary != 0 {
                    return self.item(dictionary, name);
                }
                let size = self.snapshot.word(of_type, TYPE_SIZE).filter(|size| *size <= MAX_OBJECT_SIZE)?;
                let values = object.checked_add(size)?;
                let is_used = flags & INLINE_VALUES != 0 && self.byte(values, is_valid)? == 1;
                let first = values.checked_add(first_value as u64)?;
                if is_used { self.value(cached(cached_keys)?, Some(first), name) } else { None }
            }
        }
    }

    fn attribute_as_of_others(&self, object: u64, of_type: u64, name: &str) -> Option<u64> {
        let offset = self.snapshot.word(of_type, TYPE_DICTIONARY).filter(|at| (WORD..MAX_OBJECT_SIZE).contains(at))?;
        self.item(self.word(object.checked_add(offset)?)?, name)
    }

    /// Returns the keys of a dictionary, and its separate values, if it has them.
    fn tables(&self, dictionary: u64) -> Option<(u64, Option<u64>)> {
        if !self.is_a(dictionary, b"dict\0") {
            return None;
        }
        let first = match self.layout.attributes.instance {
            InstanceLayout::Inline { first_value, .. } => first_value as u64,
            _ => 0,
        };
        let keys = self.snapshot.word(dictionary, KEYS)?;
        match self.snapshot.word(dictionary, VALUES)? {
            0 => Some((keys, None)),
            values => Some((keys, Some(values.checked_add(first)?))),
        }
    }

    /// Returns the value for the key with this text.
    fn value(&self, keys: u64, values: Option<u64>, name: &str) -> Option<u64> {
        let entries = self.entries(keys)?;
        for index in 0..entries.count {
            let key = entries.key(index)?;
            if self.equals(self.word(key)?, name) {
                let place = match values {
                    Some(values) => values.checked_add(index * WORD)?,
                    None => key.checked_add(WORD)?,
                };
                return self.word(place).filter(|value| is_plausible(*value));
            }
        }
        None
    }

    fn entries(&self, keys: u64) -> Option<DictionaryEntries> {
        if !is_plausible(keys) {
            return None;
        }
        let (index, index_bytes, count, have_hash) = match self.layout.attributes.keys {
            KeysLayout::OneKind { size, count, index } => {
                let size = self.snapshot.word(keys, size)?;
                let each = match size {
                    0..=0xff => 1,
                    0x100..=0xffff => 2,
                    _ => 4,
                };
                (index, size.checked_mul(each)?, count, true)
            }
            KeysLayout::Kinds { log2_index_bytes, kind, count, index } => {
                let bytes = 1_u64.checked_shl(self.byte(keys, log2_index_bytes)?.into())?;
                (index, bytes, count, self.byte(keys, kind)? == 0)
            }
        };
        let count = self.snapshot.word(keys, count).filter(|count| *count <= MAX_ENTRIES)?;
        let start = keys.checked_add(index as u64)?.checked_add(index_bytes)?;
        (index_bytes <= MAX_INDEX_SIZE).then_some(DictionaryEntries { start, count, have_hash })
    }

    fn word(&self, address: u64) -> Option<u64> {
        self.snapshot.word(address, 0)
    }

    fn byte(&self, address: u64, offset: usize) -> Option<u8> {
        let mut byte = [0];
        self.snapshot.read(address.checked_add(offset as u64)?, &mut byte)?;
        Some(byte[0])
    }
}

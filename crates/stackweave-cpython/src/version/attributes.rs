//! Offsets of the attributes of objects, for readers of other processes. In this process, the interpreter is called.

/// Dictionaries, and how an instance points to its attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttributesLayout {
    /// The table of a dictionary.
    pub keys: KeysLayout,
    /// Instances of classes that are written in Python. Others have a pointer to their dictionary at `tp_dictoffset`.
    pub instance: InstanceLayout,
}

/// `PyDictKeysObject`: a header, the index, and then the entries in the order of their insertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeysLayout {
    /// 3.10: all entries have hash, key and value.
    OneKind {
        /// The size of the index: one byte per slot for up to 255 slots, two for up to 65,535, and so on.
        size: usize,
        /// The number of entries that are used.
        count: usize,
        /// The offset of the index.
        index: usize,
    },
    /// 3.11 and later.
    Kinds {
        /// The binary logarithm of the index's size in bytes, as one byte.
        log2_index_bytes: usize,
        /// The contents of an entry, as one byte: 0 for hash, key and value; else key and value.
        kind: usize,
        /// The number of entries that are used.
        count: usize,
        /// The offset of the index.
        index: usize,
    },
}

/// The way in which an instance points to its attributes. `cached_keys` is, in the class, the table for the values of
/// instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstanceLayout {
    /// 3.10: as for all other objects.
    AsOthers,
    /// 3.11: before the object, a pointer to its values, or one to its dictionary.
    ValuesOrDictionary {
        /// The distance from the object back to the pointer to the values.
        values_before: usize,
        /// The distance from the object back to the pointer to the dictionary.
        dictionary_before: usize,
        /// See above.
        cached_keys: usize,
    },
    /// 3.12: one word before the object for both. A pointer to values has the lowest bit set;
    /// the values begin one byte after it.
    Tagged {
        /// The distance from the object back to the word.
        word_before: usize,
        /// See above.
        cached_keys: usize,
    },
    /// 3.13 and later: a pointer to a dictionary before the object; without one, the values follow the object.
    Inline {
        /// The distance from the object back to the pointer.
        dictionary_before: usize,
        /// In values, also those of dictionaries: the offset of the first.
        first_value: usize,
        /// In values: whether they are in use, as one byte.
        is_valid: usize,
        /// See above.
        cached_keys: usize,
    },
}

const KEYS_3_11: KeysLayout = KeysLayout::Kinds { log2_index_bytes: 9, kind: 10, count: 24, index: 32 };

pub(super) const ATTRIBUTES_3_10: AttributesLayout = AttributesLayout {
    keys: KeysLayout::OneKind { size: 8, count: 32, index: 40 },
    instance: InstanceLayout::AsOthers,
};

pub(super) const ATTRIBUTES_3_11: AttributesLayout = AttributesLayout {
    keys: KEYS_3_11,
    instance: InstanceLayout::ValuesOrDictionary { values_before: 32, dictionary_before: 24, cached_keys: 872 },
};

pub(super) const ATTRIBUTES_3_12: AttributesLayout =
    AttributesLayout { keys: KEYS_3_11, instance: InstanceLayout::Tagged { word_before: 24, cached_keys: 880 } };

pub(super) const ATTRIBUTES_3_13: AttributesLayout = inline(880);
pub(super) const ATTRIBUTES_3_15: AttributesLayout = inline(888);

const fn inline(cached_keys: usize) -> AttributesLayout {
    AttributesLayout {
        keys: KEYS_3_11,
        instance: InstanceLayout::Inline { dictionary_before: 24, first_value: 8, is_valid: 3, cached_keys },
    }
}

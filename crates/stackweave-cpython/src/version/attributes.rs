//! Where objects keep their attributes: for who reads another process. In the own one they are asked for.

/// Dictionaries, and what leads to the attributes of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttributesLayout {
    /// The table of a dictionary.
    pub keys: KeysLayout,
    /// Instances of classes that are written in Python. Those of other classes have a pointer to their dictionary where
    /// `tp_dictoffset` says.
    pub instance: InstanceLayout,
}

/// `PyDictKeysObject`: a header, the index, and then the entries in the order in which they were made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeysLayout {
    /// 3.10: all entries have hash, key and value.
    OneKind {
        /// How many places the index has: one byte each for up to 255, two for up to 65,535, and so on.
        size: usize,
        /// How many entries are used.
        count: usize,
        /// Where the index begins.
        index: usize,
    },
    /// 3.11 and later.
    Kinds {
        /// The binary logarithm of how many bytes the index takes, as one byte.
        log2_index_bytes: usize,
        /// What an entry has, as one byte: 0 for hash, key and value; else key and value.
        kind: usize,
        /// How many entries are used.
        count: usize,
        /// Where the index begins.
        index: usize,
    },
}

/// How an instance leads to its attributes. `cached_keys` is, in the class, the table whose values instances have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstanceLayout {
    /// 3.10: as all objects.
    AsOthers,
    /// 3.11: before the object, a pointer to its values, or one to its dictionary.
    ValuesOrDictionary {
        /// How far before the object the first is.
        values_before: usize,
        /// How far before the object the second is.
        dictionary_before: usize,
        /// See above.
        cached_keys: usize,
    },
    /// 3.12: one word before the object for both. Values have the lowest bit set, and begin one byte later.
    Tagged {
        /// How far before the object it is.
        word_before: usize,
        /// See above.
        cached_keys: usize,
    },
    /// 3.13 and later: a pointer to a dictionary before the object, and without one, values behind it.
    Inline {
        /// How far before the object the pointer is.
        dictionary_before: usize,
        /// Of values, those of dictionaries too: where the first is.
        first_value: usize,
        /// Of values: whether they are in use, as one byte.
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

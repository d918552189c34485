//! The numbers of the fields of `profile.proto`.

pub(super) mod profile {
    pub(in super::super) const SAMPLE_TYPE: u32 = 1;
    pub(in super::super) const SAMPLE: u32 = 2;
    pub(in super::super) const MAPPING: u32 = 3;
    pub(in super::super) const LOCATION: u32 = 4;
    pub(in super::super) const FUNCTION: u32 = 5;
    pub(in super::super) const STRING_TABLE: u32 = 6;
    pub(in super::super) const TIME_NANOS: u32 = 9;
    pub(in super::super) const DURATION_NANOS: u32 = 10;
    pub(in super::super) const PERIOD_TYPE: u32 = 11;
    pub(in super::super) const PERIOD: u32 = 12;
    pub(in super::super) const COMMENT: u32 = 13;
    pub(in super::super) const DEFAULT_SAMPLE_TYPE: u32 = 14;
}

pub(super) mod value_type {
    pub(in super::super) const TYPE: u32 = 1;
    pub(in super::super) const UNIT: u32 = 2;
}

pub(super) mod sample {
    pub(in super::super) const LOCATION_ID: u32 = 1;
    pub(in super::super) const VALUE: u32 = 2;
    pub(in super::super) const LABEL: u32 = 3;
}

pub(super) mod label {
    pub(in super::super) const KEY: u32 = 1;
    pub(in super::super) const STR: u32 = 2;
    pub(in super::super) const NUM: u32 = 3;
}

pub(super) mod mapping {
    pub(in super::super) const ID: u32 = 1;
    pub(in super::super) const MEMORY_START: u32 = 2;
    pub(in super::super) const MEMORY_LIMIT: u32 = 3;
    pub(in super::super) const FILENAME: u32 = 5;
    pub(in super::super) const BUILD_ID: u32 = 6;
    pub(in super::super) const HAS_FUNCTIONS: u32 = 7;
    pub(in super::super) const HAS_FILENAMES: u32 = 8;
    pub(in super::super) const HAS_LINE_NUMBERS: u32 = 9;
    pub(in super::super) const HAS_INLINE_FRAMES: u32 = 10;
}

pub(super) mod location {
    pub(in super::super) const ID: u32 = 1;
    pub(in super::super) const MAPPING_ID: u32 = 2;
    pub(in super::super) const ADDRESS: u32 = 3;
    pub(in super::super) const LINE: u32 = 4;
}

pub(super) mod line {
    pub(in super::super) const FUNCTION_ID: u32 = 1;
    pub(in super::super) const LINE: u32 = 2;
    pub(in super::super) const COLUMN: u32 = 3;
}

pub(super) mod function {
    pub(in super::super) const ID: u32 = 1;
    pub(in super::super) const NAME: u32 = 2;
    pub(in super::super) const SYSTEM_NAME: u32 = 3;
    pub(in super::super) const FILENAME: u32 = 4;
    pub(in super::super) const START_LINE: u32 = 5;
}

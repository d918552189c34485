//! The numbers of the fields, as in Perfetto's `perfetto_trace.proto`. A module is a message.

pub(super) mod trace {
    pub(in super::super) const PACKET: u32 = 1;
}

pub(super) mod packet {
    pub(in super::super) const CLOCK_SNAPSHOT: u32 = 6;
    pub(in super::super) const TIMESTAMP: u32 = 8;
    pub(in super::super) const SEQUENCE_ID: u32 = 10;
    pub(in super::super) const TRACK_EVENT: u32 = 11;
    pub(in super::super) const INTERNED_DATA: u32 = 12;
    pub(in super::super) const SEQUENCE_FLAGS: u32 = 13;
    pub(in super::super) const TRACK_DESCRIPTOR: u32 = 60;
    pub(in super::super) const PERF_SAMPLE: u32 = 66;

    /// The sequence begins, and nothing is interned yet.
    pub(in super::super) const STATE_CLEARED: u64 = 1;
    /// Interned data is needed to read it.
    pub(in super::super) const NEEDS_STATE: u64 = 2;
}

pub(super) mod clock_snapshot {
    pub(in super::super) const CLOCKS: u32 = 1;
    pub(in super::super) const PRIMARY: u32 = 2;
    pub(in super::super) const CLOCK_ID: u32 = 1;
    pub(in super::super) const CLOCK_TIMESTAMP: u32 = 2;

    pub(in super::super) const REALTIME: u64 = 1;
    pub(in super::super) const MONOTONIC: u64 = 3;
    pub(in super::super) const BOOTTIME: u64 = 6;
}

pub(super) mod track {
    pub(in super::super) const UUID: u32 = 1;
    pub(in super::super) const NAME: u32 = 2;
    pub(in super::super) const PROCESS: u32 = 3;
    pub(in super::super) const THREAD: u32 = 4;
    pub(in super::super) const PARENT_UUID: u32 = 5;
    pub(in super::super) const COUNTER: u32 = 8;

    pub(in super::super) const PROCESS_PID: u32 = 1;
    pub(in super::super) const PROCESS_COMMAND_LINE: u32 = 2;
    pub(in super::super) const PROCESS_SORT_INDEX: u32 = 3;
    pub(in super::super) const PROCESS_NAME: u32 = 6;
    pub(in super::super) const PROCESS_LABELS: u32 = 8;
    pub(in super::super) const THREAD_PID: u32 = 1;
    pub(in super::super) const THREAD_TID: u32 = 2;
    pub(in super::super) const THREAD_SORT_INDEX: u32 = 3;
    pub(in super::super) const THREAD_NAME: u32 = 5;
    pub(in super::super) const COUNTER_UNIT: u32 = 3;

    pub(in super::super) const UNIT_COUNT: u64 = 2;
    pub(in super::super) const UNIT_BYTES: u64 = 3;
}

pub(super) mod event {
    pub(in super::super) const CATEGORY_IIDS: u32 = 3;
    pub(in super::super) const DEBUG_ANNOTATIONS: u32 = 4;
    pub(in super::super) const TYPE: u32 = 9;
    pub(in super::super) const NAME_IID: u32 = 10;
    pub(in super::super) const TRACK_UUID: u32 = 11;
    pub(in super::super) const COUNTER_VALUE: u32 = 30;
    pub(in super::super) const SOURCE_LOCATION_IID: u32 = 34;
    pub(in super::super) const DOUBLE_COUNTER_VALUE: u32 = 44;
    pub(in super::super) const FLOW_IDS: u32 = 47;
    pub(in super::super) const CALLSTACK_IID: u32 = 56;

    pub(in super::super) const SLICE_BEGIN: u64 = 1;
    pub(in super::super) const SLICE_END: u64 = 2;
    pub(in super::super) const INSTANT: u64 = 3;
    pub(in super::super) const COUNTER: u64 = 4;
}

pub(super) mod perf_sample {
    pub(in super::super) const PID: u32 = 2;
    pub(in super::super) const TID: u32 = 3;
    pub(in super::super) const CALLSTACK_IID: u32 = 4;
    pub(in super::super) const CPU_MODE: u32 = 5;

    pub(in super::super) const MODE_USER: u64 = 2;
}

pub(super) mod interned {
    pub(in super::super) const CATEGORIES: u32 = 1;
    pub(in super::super) const EVENT_NAMES: u32 = 2;
    pub(in super::super) const ANNOTATION_NAMES: u32 = 3;
    pub(in super::super) const SOURCE_LOCATIONS: u32 = 4;
    pub(in super::super) const FUNCTION_NAMES: u32 = 5;
    pub(in super::super) const FRAMES: u32 = 6;
    pub(in super::super) const CALLSTACKS: u32 = 7;
    pub(in super::super) const BUILD_IDS: u32 = 16;
    pub(in super::super) const MAPPING_PATHS: u32 = 17;
    pub(in super::super) const SOURCE_PATHS: u32 = 18;
    pub(in super::super) const MAPPINGS: u32 = 19;
    pub(in super::super) const ANNOTATION_TEXTS: u32 = 29;

    /// In all interned messages.
    pub(in super::super) const IID: u32 = 1;
    /// In interned strings.
    pub(in super::super) const TEXT: u32 = 2;
}

pub(super) mod source_location {
    pub(in super::super) const FILE: u32 = 2;
    pub(in super::super) const FUNCTION: u32 = 3;
    pub(in super::super) const LINE: u32 = 4;
}

pub(super) mod frame {
    pub(in super::super) const FUNCTION_NAME_ID: u32 = 2;
    pub(in super::super) const MAPPING_ID: u32 = 3;
    pub(in super::super) const RELATIVE_PC: u32 = 4;
    pub(in super::super) const SOURCE_PATH_IID: u32 = 5;
    pub(in super::super) const LINE: u32 = 6;
}

pub(super) mod callstack {
    pub(in super::super) const FRAME_IDS: u32 = 2;
}

pub(super) mod mapping {
    pub(in super::super) const BUILD_ID: u32 = 2;
    pub(in super::super) const START: u32 = 4;
    pub(in super::super) const END: u32 = 5;
    pub(in super::super) const LOAD_BIAS: u32 = 6;
    pub(in super::super) const PATH_STRING_IDS: u32 = 7;
}

pub(super) mod annotation {
    pub(in super::super) const NAME_IID: u32 = 1;
    pub(in super::super) const BOOL: u32 = 2;
    pub(in super::super) const UNSIGNED: u32 = 3;
    pub(in super::super) const SIGNED: u32 = 4;
    pub(in super::super) const DOUBLE: u32 = 5;
    pub(in super::super) const TEXT: u32 = 6;
    pub(in super::super) const NAME: u32 = 10;
    pub(in super::super) const ENTRIES: u32 = 11;
    pub(in super::super) const VALUES: u32 = 12;
    pub(in super::super) const TEXT_IID: u32 = 17;
}

//! The recorder's three words of each thread: the lane that was used last, the list of all, and how often it must not wait.

pub(super) use stackweave_store::thread_words::{
    RECORDING_LANE as LANE, RECORDING_LANES as LIST, RECORDING_UNWAITING as UNWAITING,
};

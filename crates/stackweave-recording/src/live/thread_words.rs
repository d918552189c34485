//! The recorder's three words of each thread: the lane that was used last, the list of all lanes, and the number of its guards
//! against blocking.

pub(super) use stackweave_store::thread_words::{
    RECORDING_LANE as LANE, RECORDING_LANES as LIST, RECORDING_NEVER_BLOCK as NEVER_BLOCK,
};

//! The structures by which threads pass events to the writer of a recording.

mod chunk {
    include!(concat!(env!("OUT_DIR"), "/chunk.rs"));
}
mod futex {
    use std::time::Duration;

    use crate::atomic::{AtomicU32, Ordering};
    pub(crate) use crate::kernel::{wait, wake_all};
    include!(concat!(env!("OUT_DIR"), "/futex.rs"));
}
mod lane {
    include!(concat!(env!("OUT_DIR"), "/lane.rs"));
}
mod loss_counter {
    include!(concat!(env!("OUT_DIR"), "/loss_counter.rs"));
}
mod pool {
    include!(concat!(env!("OUT_DIR"), "/pool.rs"));
}
mod chunk_start;
mod gaps;
pub(crate) mod models;
mod new_chunk;
mod session;

//! Dumps on Linux. The platform's contract (see `unsupported.rs` for its twin): `prepare_dumps`, `dump_all_threads`,
//! `dump_all_threads_from_context` and `WatchThread`.

mod all_threads;
mod answers;
mod dump_signal;
mod fd_writer;
mod mapped_modules;
mod raw_files;
mod tasks;
mod thread_text;
mod turn;
mod watch_thread;

pub(crate) use all_threads::{dump_all_threads, dump_all_threads_from_context};
pub(crate) use dump_signal::prepare_dumps;
pub(crate) use watch_thread::WatchThread;

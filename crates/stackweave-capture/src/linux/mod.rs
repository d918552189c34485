//! Dumps on Linux. Each platform (see also `unsupported.rs`) provides `prepare_dumps`, `dump_all_threads`,
//! `dump_all_threads_from_context`, `prepare_answers`, `signal` and `WatchThread`.

mod advertisement;
mod all_threads;
mod dump_lock;
mod dump_signal;
mod fd_writer;
mod handler_stack;
mod mapped_modules;
mod raw_files;
mod signalled_threads;
mod stack_queries;
mod tasks;
mod thread_lines;
mod thread_text;
mod watch_thread;

pub(crate) use all_threads::{dump_all_threads, dump_all_threads_from_context};
pub(crate) use dump_signal::{prepare_answers, prepare_dumps, signal};
pub(crate) use watch_thread::WatchThread;

//! The thread that takes the events of all other threads, and writes them.
//!
//! It needs no lock that another thread holds for long, so no thread waits long for it, unless the file itself blocks.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use std::{mem, ptr};

use super::drain::Drain;
use super::error::{FlushError, StartError};
use super::lanes;
use super::output::RecordingOutput;
use super::process;
use super::requests::WriterRequest;
use super::session::{RecorderConfig, RecordingSession};
use super::termination;
use super::writer_state::WriterState;
use crate::file::{Encoder, EndReason};

const STACK: usize = 512 * 1024;

/// Starts the writer, and waits until it has created the file.
pub(super) fn spawn(
    session: &Arc<RecordingSession>,
    config: &RecorderConfig,
    forked_from: Option<u32>,
) -> Result<JoinHandle<()>, StartError> {
    let (sender, started): (Sender<Result<(), StartError>>, Receiver<_>) = channel();
    let (slot, handles_signals) = (session.doorbell_slot, config.options.handle_signals);
    let (session, config) = (Arc::clone(session), config.clone());
    let builder = thread::Builder::new().name("stackweave-writer".to_owned()).stack_size(STACK);
    let run = move || {
        lanes::never();
        let begun = catch_unwind(AssertUnwindSafe(|| Writer::begin(&session, &config, forked_from)));
        let ended = begun.and_then(|begun| match begun {
            Ok(writer) => {
                if handles_signals {
                    session.doorbell_slot.handle_signals_here();
                    termination::watch();
                }
                let _ = sender.send(Ok(()));
                catch_unwind(AssertUnwindSafe(|| writer.run()))
            }
            Err(error) => {
                let _ = sender.send(Err(error));
                Ok(())
            }
        });
        if ended.is_err() {
            session.counts.set_error("the writer failed".to_owned());
        }
        session.close();
        session.doorbell_slot.release();
        termination::unwatch();
        termination::handled();
    };
    let writer = without_signals(|| builder.spawn(run)).map_err(|error| {
        slot.release();
        StartError::System(error)
    })?;
    match started.recv() {
        Ok(Ok(())) => Ok(writer),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(StartError::System(std::io::Error::other("the writer failed"))),
    }
}

/// Runs `spawn` with all signals blocked, which the new thread inherits.
fn without_signals<T>(spawn: impl FnOnce() -> T) -> T {
    // SAFETY: zeros are a valid set.
    let (mut all, mut old): (libc::sigset_t, libc::sigset_t) = unsafe { (mem::zeroed(), mem::zeroed()) };
    // SAFETY: both pointers are valid.
    unsafe {
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut old);
    }
    let spawned = spawn();
    // SAFETY: restores the previous mask.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const old, ptr::null_mut()) };
    spawned
}

struct Writer {
    session: Arc<RecordingSession>,
    drain: Drain,
    path: PathBuf,
    dump_at_exit: bool,
    flush_every: Duration,
}

impl Writer {
    fn begin(
        session: &Arc<RecordingSession>,
        config: &RecorderConfig,
        forked_from: Option<u32>,
    ) -> Result<Self, StartError> {
        let start = process::start(&config.options, &session.clock, &session.first_point, forked_from);
        let (mut encoder, mut bytes) = (Encoder::new(config.stacks), Vec::new());
        encoder.start(&start, &mut bytes);
        if config.options.ring.is_none() {
            encoder.clock(&session.first_point, &mut bytes);
        } else {
            encoder.enable_nesting();
        }
        let (output, path) = RecordingOutput::begin(session, config, (bytes, start.ticks_per_second))?;
        let _ = session.path.set(path.clone());
        Ok(Self {
            session: Arc::clone(session),
            drain: Drain::new(session, config, encoder, output),
            path,
            dump_at_exit: config.options.dump_at_exit,
            flush_every: config.options.flush_interval(),
        })
    }

    fn run(mut self) {
        let mut next_flush = Instant::now() + self.flush_every;
        loop {
            let flush_in = next_flush.saturating_duration_since(Instant::now());
            let timeout = self.drain.observer.interval().map_or(flush_in, |interval| interval.min(flush_in));
            self.session.writer_state.during(WriterState::Sleeping, || self.session.doorbell.sleep(timeout));
            if let Some(signal) = self.signal() {
                if !termination::has_no_effect() {
                    return self.end_by(signal);
                }
                self.drain.dump_now(&self.path);
                termination::handled();
            }
            let requests = self.session.requests.take();
            if requests.is_empty() && Instant::now() < next_flush {
                self.drain.full_chunks();
                self.drain.dump_if_requested(&self.path);
                continue;
            }
            let mut flushed = self.drain.all();
            self.drain.dump_if_requested(&self.path);
            next_flush = Instant::now() + self.flush_every;
            if self.session.doorbell_slot.handles_signals() {
                termination::watch();
            }
            for request in requests {
                match request {
                    WriterRequest::Flush(reply) => {
                        let _ = reply.send((self.drain.take_pending(), flushed.clone()));
                    }
                    WriterRequest::WriteNames(resolved, reply) => {
                        flushed = self.drain.write_names(resolved);
                        let _ = reply.send(flushed.clone());
                    }
                    WriterRequest::Name(tid, name) => self.drain.name(tid, name),
                    WriterRequest::RecordFor(tid, words, reply) => {
                        self.drain.record_for_thread(tid, &words);
                        let _ = reply.send(());
                    }
                    WriterRequest::Dump(path, reply) => {
                        let _ = reply.send(self.dump(path));
                    }
                    WriterRequest::Publish(reply) => {
                        let _ = reply.send(self.drain.publish(&self.path));
                    }
                    WriterRequest::QueryObserver(query, reply) => {
                        self.drain.query_observer(query);
                        let _ = reply.send(());
                    }
                    WriterRequest::Stop(reason, reply) => {
                        self.stop(reason);
                        let _ = reply.send(());
                        return;
                    }
                }
            }
        }
    }

    /// Returns the signal that the process received, if this writer handles signals.
    fn signal(&self) -> Option<libc::c_int> {
        termination::received().filter(|_| self.session.doorbell_slot.handles_signals())
    }

    /// Writes everything and closes the recording, because a signal ends the process.
    fn end_by(mut self, signal: libc::c_int) {
        let reason = termination::reason(signal);
        let session = Arc::clone(&self.session);
        // An error is kept as the recording's error.
        let _ = self.drain.all();
        self.stop(reason);
        session.announce(reason);
    }

    fn dump(&mut self, path: Option<PathBuf>) -> Result<PathBuf, FlushError> {
        let path = path.unwrap_or_else(|| self.path.clone());
        self.drain.dump(&path, EndReason::Dumped)
    }

    fn stop(mut self, reason: EndReason) {
        self.drain.end(reason);
        if self.dump_at_exit && self.drain.is_ring() {
            // An error is kept as the recording's error.
            let _ = self.drain.dump(&self.path, reason);
        }
        let session = Arc::clone(&self.session);
        self.drain.keep_observer();
        session.close();
        self.drain.release();
    }
}

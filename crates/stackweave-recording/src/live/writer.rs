//! The thread that takes what all others record, and writes it.
//!
//! It needs nobody else's lock: who waits for it never waits for long, unless the file itself blocks.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use std::{mem, ptr};

use super::activity::Doing;
use super::drain::Drain;
use super::lanes;
use super::orders::Order;
use super::outcome::{FlushError, StartError};
use super::output::Output;
use super::process;
use super::session::{Session, Setting};
use super::termination;
use crate::file::{Encoder, EndReason};

const STACK: usize = 512 * 1024;

/// Starts the writer, and waits until the file is there.
pub(super) fn spawn(
    session: &Arc<Session>,
    setting: &Setting,
    forked_from: Option<u32>,
) -> Result<JoinHandle<()>, StartError> {
    let (told, tell): (Sender<Result<(), StartError>>, Receiver<_>) = channel();
    let (place, handles_signals) = (session.place, setting.options.handle_signals);
    let (session, setting) = (Arc::clone(session), setting.clone());
    let builder = thread::Builder::new().name("stackweave-writer".to_owned()).stack_size(STACK);
    let run = move || {
        lanes::never();
        let begun = catch_unwind(AssertUnwindSafe(|| Writer::begin(&session, &setting, forked_from)));
        let ended = begun.and_then(|begun| match begun {
            Ok(writer) => {
                if handles_signals {
                    session.place.answer_signals();
                    termination::watch();
                }
                let _ = told.send(Ok(()));
                catch_unwind(AssertUnwindSafe(|| writer.run()))
            }
            Err(error) => {
                let _ = told.send(Err(error));
                Ok(())
            }
        });
        if ended.is_err() {
            session.counts.set_error("the writer failed".to_owned());
        }
        session.close();
        session.place.give_back();
        termination::unwatch();
        termination::answered();
    };
    let writer = without_signals(|| builder.spawn(run)).map_err(|error| {
        place.give_back();
        StartError::System(error)
    })?;
    match tell.recv() {
        Ok(Ok(())) => Ok(writer),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(StartError::System(std::io::Error::other("the writer failed"))),
    }
}

/// Runs `spawn` with all signals blocked, which its thread inherits.
fn without_signals<T>(spawn: impl FnOnce() -> T) -> T {
    // SAFETY: an all-zero set is a place for one.
    let (mut all, mut old): (libc::sigset_t, libc::sigset_t) = unsafe { (mem::zeroed(), mem::zeroed()) };
    // SAFETY: both sets are valid places.
    unsafe {
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut old);
    }
    let spawned = spawn();
    // SAFETY: puts back what was there.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const old, ptr::null_mut()) };
    spawned
}

struct Writer {
    session: Arc<Session>,
    drain: Drain,
    path: PathBuf,
    dump_at_exit: bool,
    flush_every: Duration,
}

impl Writer {
    fn begin(session: &Arc<Session>, setting: &Setting, forked_from: Option<u32>) -> Result<Self, StartError> {
        let start = process::start(&setting.options, &session.clock, &session.first_point, forked_from);
        let (mut encoder, mut bytes) = (Encoder::new(setting.stacks), Vec::new());
        encoder.start(&start, &mut bytes);
        if setting.options.ring.is_none() {
            encoder.clock(&session.first_point, &mut bytes);
        } else {
            encoder.tell_nesting();
        }
        let (output, path) = Output::begin(session, setting, (bytes, start.ticks_per_second))?;
        let _ = session.path.set(path.clone());
        Ok(Self {
            session: Arc::clone(session),
            drain: Drain::new(session, setting, encoder, output),
            path,
            dump_at_exit: setting.options.dump_at_exit,
            flush_every: setting.options.flush_interval(),
        })
    }

    fn run(mut self) {
        let mut next_flush = Instant::now() + self.flush_every;
        loop {
            let flush_in = next_flush.saturating_duration_since(Instant::now());
            let most = self.drain.observing.interval().map_or(flush_in, |interval| interval.min(flush_in));
            self.session.activity.during(Doing::Sleeping, || self.session.doorbell.sleep(most));
            if let Some(signal) = self.signal() {
                if !termination::has_no_effect() {
                    return self.end_by(signal);
                }
                self.drain.dump_now(&self.path);
                termination::answered();
            }
            let orders = self.session.orders.take();
            if orders.is_empty() && Instant::now() < next_flush {
                self.drain.full_chunks();
                self.drain.dump_if_asked(&self.path);
                continue;
            }
            let mut flushed = self.drain.all();
            self.drain.dump_if_asked(&self.path);
            next_flush = Instant::now() + self.flush_every;
            if self.session.place.answers_signals() {
                termination::watch();
            }
            for order in orders {
                match order {
                    Order::Flush(reply) => {
                        let _ = reply.send((self.drain.take_pending(), flushed.clone()));
                    }
                    Order::Tell(answered, reply) => {
                        flushed = self.drain.tell(answered);
                        let _ = reply.send(flushed.clone());
                    }
                    Order::Name(tid, name) => self.drain.name(tid, name),
                    Order::RecordFor(tid, words, reply) => {
                        self.drain.record_for(tid, &words);
                        let _ = reply.send(());
                    }
                    Order::Dump(path, reply) => {
                        let _ = reply.send(self.dump(path));
                    }
                    Order::Publish(reply) => {
                        let _ = reply.send(self.drain.publish(&self.path));
                    }
                    Order::Ask(question, reply) => {
                        self.drain.ask(question);
                        let _ = reply.send(());
                    }
                    Order::Stop(reason, reply) => {
                        self.stop(reason);
                        let _ = reply.send(());
                        return;
                    }
                }
            }
        }
    }

    /// The signal that the process has got, if this writer answers signals.
    fn signal(&self) -> Option<libc::c_int> {
        termination::received().filter(|_| self.session.place.answers_signals())
    }

    /// A signal ends the process: writes what is there, and closes the recording.
    fn end_by(mut self, signal: libc::c_int) {
        let reason = termination::reason(signal);
        let session = Arc::clone(&self.session);
        // What goes wrong is kept as the recording's error.
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
            // What goes wrong is kept as the recording's error.
            let _ = self.drain.dump(&self.path, reason);
        }
        let session = Arc::clone(&self.session);
        self.drain.keep_observer();
        session.close();
        self.drain.release();
    }
}

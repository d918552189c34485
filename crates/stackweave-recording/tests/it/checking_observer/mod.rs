//! An observer that checks the guarantees of its recording.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use stackweave_core::NoNames;
use stackweave_recording::live::{KindNumber, Recorder, RecorderOptions};
use stackweave_recording::{MakeObserver, Notes, Observer};

use crate::recorded::STACKS;

/// The events that the observers of one recorder have received, with three words each: a producer, an index, and the time after the
/// producer recorded the previous event.
#[derive(Debug, Default)]
pub(crate) struct Received {
    pub(crate) events: u64,
    /// By producer: the next index.
    pub(crate) next: BTreeMap<u64, u64>,
    pub(crate) settled: u64,
    pub(crate) ended: bool,
    /// Violated guarantees.
    pub(crate) wrong: Vec<String>,
    pub(crate) note_at_end: Option<KindNumber>,
    pub(crate) note_at_dump: Option<KindNumber>,
    dumps: u64,
    /// A kind with two words, which is ignored.
    pub(crate) mark: Option<KindNumber>,
    /// The time that the observer takes for each batch of events.
    pub(crate) delay: Duration,
}

/// Checks events of three words.
pub(crate) struct CheckingObserver {
    received: Arc<Mutex<Received>>,
    settled: u64,
    /// By producer: the last index, and the settled ticks when it was received.
    last: BTreeMap<u64, (u64, u64)>,
}

impl Observer for CheckingObserver {
    fn events(&mut self, _: u32, words: &[u64]) {
        let mut received = self.received.lock().unwrap();
        let mut rest = words;
        while let [head, producer, index, ref behind @ ..] = *rest {
            if received.mark.is_some_and(|mark| u64::from(mark.get()) == head & 0xff) {
                rest = behind;
                continue;
            }
            let [before, ref behind @ ..] = *behind else { break };
            rest = behind;
            let next = received.next.entry(producer).or_default();
            let expected = std::mem::replace(next, index + 1);
            if index != expected {
                received.wrong.push(format!("{index} of {producer} in place of {expected}"));
            }
            if let Some((_, settled)) = self.last.insert(producer, (index, self.settled))
                && before != 0
                && before < settled
            {
                received.wrong.push(format!(
                    "{index} of {producer}: the one before was recorded at {before}, settled at {settled}"
                ));
            }
            if head >> 8 == 0 {
                received.wrong.push("an event without a time".to_owned());
            }
            received.events += 1;
        }
        if !rest.is_empty() {
            received.wrong.push(format!("{} words are left", rest.len()));
        }
        let delay = received.delay;
        drop(received);
        thread::sleep(delay);
    }

    fn settle(&mut self, ticks: u64, _: &mut Notes) {
        let mut received = self.received.lock().unwrap();
        if ticks < self.settled || received.ended {
            received.wrong.push(format!("{ticks} after {}", self.settled));
        }
        self.settled = ticks;
        received.settled += 1;
    }

    fn end(&mut self, ticks: u64, notes: &mut Notes) {
        let mut received = self.received.lock().unwrap();
        received.ended = true;
        if let Some(kind) = received.note_at_end {
            notes.record_at(ticks, kind, &[2, 0]);
        }
    }

    fn dump(&mut self, ticks: u64, notes: &mut Notes) {
        let mut received = self.received.lock().unwrap();
        if let Some(kind) = received.note_at_dump {
            notes.record_at(ticks, kind, &[3, received.dumps]);
        }
        received.dumps += 1;
    }

    fn interval(&self) -> Duration {
        Duration::from_millis(1)
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}

pub(crate) fn make_checking_observer(received: &Arc<Mutex<Received>>) -> MakeObserver {
    let received = Arc::clone(received);
    Arc::new(move || Box::new(CheckingObserver { received: Arc::clone(&received), settled: 0, last: BTreeMap::new() }))
}

pub(crate) fn start_checked(options: RecorderOptions) -> (Recorder, Arc<Mutex<Received>>) {
    let received: Arc<Mutex<Received>> = Arc::default();
    let recorder =
        Recorder::start_observed(options, &STACKS, Arc::new(NoNames), Some(make_checking_observer(&received))).unwrap();
    (recorder, received)
}

/// Returns the last index of a producer that the observer received.
pub(crate) fn last_of(recorder: &Recorder, producer: u64) -> Option<u64> {
    recorder
        .query_observer(move |observer| {
            observer.downcast_ref::<CheckingObserver>().unwrap().last.get(&producer).map(|last| last.0)
        })
        .unwrap()
}

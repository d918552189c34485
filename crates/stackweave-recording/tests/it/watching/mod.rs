//! An observer that holds its recording to what it promises.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use stackweave_core::NoNames;
use stackweave_recording::live::{KindNumber, Options, Recorder};
use stackweave_recording::{MakeObserver, Notes, Observer};

use crate::recorded::STACKS;

/// What observers of one recorder were told so far, of events with three words: who, which, and when the one before it was
/// recorded.
#[derive(Debug, Default)]
pub(crate) struct Told {
    pub(crate) events: u64,
    /// By who: which comes next.
    pub(crate) next: BTreeMap<u64, u64>,
    pub(crate) settled: u64,
    pub(crate) ended: bool,
    /// Promises that were not kept.
    pub(crate) wrong: Vec<String>,
    pub(crate) note_at_end: Option<KindNumber>,
    pub(crate) note_at_dump: Option<KindNumber>,
    dumps: u64,
    /// A kind with two words, which is passed over.
    pub(crate) mark: Option<KindNumber>,
    /// How long it takes to look at events.
    pub(crate) delay: Duration,
}

/// Looks at events of three words.
pub(crate) struct Watching {
    told: Arc<Mutex<Told>>,
    settled: u64,
    /// By who: which was last, and what was settled when it was told.
    last: BTreeMap<u64, (u64, u64)>,
}

impl Observer for Watching {
    fn events(&mut self, _: u32, words: &[u64]) {
        let mut told = self.told.lock().unwrap();
        let mut rest = words;
        while let [head, who, which, ref behind @ ..] = *rest {
            if told.mark.is_some_and(|mark| u64::from(mark.get()) == head & 0xff) {
                rest = behind;
                continue;
            }
            let [before, ref behind @ ..] = *behind else { break };
            rest = behind;
            let next = told.next.entry(who).or_default();
            let expected = std::mem::replace(next, which + 1);
            if which != expected {
                told.wrong.push(format!("{which} of {who} in place of {expected}"));
            }
            if let Some((_, settled)) = self.last.insert(who, (which, self.settled))
                && before != 0
                && before < settled
            {
                told.wrong
                    .push(format!("{which} of {who}: the one before was recorded at {before}, settled at {settled}"));
            }
            if head >> 8 == 0 {
                told.wrong.push("an event without a time".to_owned());
            }
            told.events += 1;
        }
        if !rest.is_empty() {
            told.wrong.push(format!("{} words are left", rest.len()));
        }
        let delay = told.delay;
        drop(told);
        thread::sleep(delay);
    }

    fn settle(&mut self, ticks: u64, _: &mut Notes) {
        let mut told = self.told.lock().unwrap();
        if ticks < self.settled || told.ended {
            told.wrong.push(format!("{ticks} after {}", self.settled));
        }
        self.settled = ticks;
        told.settled += 1;
    }

    fn end(&mut self, ticks: u64, notes: &mut Notes) {
        let mut told = self.told.lock().unwrap();
        told.ended = true;
        if let Some(kind) = told.note_at_end {
            notes.record_at(ticks, kind, &[2, 0]);
        }
    }

    fn dump(&mut self, ticks: u64, notes: &mut Notes) {
        let mut told = self.told.lock().unwrap();
        if let Some(kind) = told.note_at_dump {
            notes.record_at(ticks, kind, &[3, told.dumps]);
        }
        told.dumps += 1;
    }

    fn interval(&self) -> Duration {
        Duration::from_millis(1)
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}

pub(crate) fn watched(told: &Arc<Mutex<Told>>) -> MakeObserver {
    let told = Arc::clone(told);
    Arc::new(move || Box::new(Watching { told: Arc::clone(&told), settled: 0, last: BTreeMap::new() }))
}

pub(crate) fn start_watched(options: Options) -> (Recorder, Arc<Mutex<Told>>) {
    let told: Arc<Mutex<Told>> = Arc::default();
    let recorder = Recorder::start_observed(options, &STACKS, Arc::new(NoNames), Some(watched(&told))).unwrap();
    (recorder, told)
}

/// Which of this who the observer was told of last.
pub(crate) fn last_of(recorder: &Recorder, who: u64) -> Option<u64> {
    recorder
        .ask(move |observer| observer.downcast_ref::<Watching>().unwrap().last.get(&who).map(|last| last.0))
        .unwrap()
}

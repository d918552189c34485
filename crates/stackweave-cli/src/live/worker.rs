//! A thread that reads and counts events and makes snapshots, so that the screen never blocks.

use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::thread;
use std::time::{Duration, Instant};

use super::figures::snapshot;
use super::followed_files::Files;
use super::native_naming::NativeNaming;
use super::processes;
use super::snapshot::{LiveSnapshot, ViewOptions};
use crate::failure::Failure;

/// At most one part in this many of the time is spent on snapshots.
const SHARE_OF_TIME: u32 = 10;
/// The interval at which a missing file is looked for.
const WAITING: Duration = Duration::from_millis(200);

/// The handle of the worker thread.
#[derive(Debug)]
pub(super) struct Worker {
    options: Sender<ViewOptions>,
    snapshots: Receiver<Result<LiveSnapshot, Failure>>,
}

impl Worker {
    pub(super) fn start(path: &Path, old: Option<(u64, u64)>, refresh: Duration) -> Result<Self, Failure> {
        let (options, changes) = channel();
        let (show, snapshots) = channel();
        let work = Work {
            files: Files::instead_of(path, old),
            naming: NativeNaming::start()?,
            refresh,
            options: ViewOptions::default(),
            behind: false,
        };
        let run = move || {
            processes::yield_to_others();
            work.run(&changes, &show);
        };
        thread::Builder::new().name("stackweave-live".into()).spawn(run).map_err(Failure::new)?;
        Ok(Self { options, snapshots })
    }

    /// Changes the options of the view.
    pub(super) fn set_options(&self, options: ViewOptions) {
        // A worker that failed has reported it already.
        let _ = self.options.send(options);
    }

    /// Returns the newest snapshot, if there is a new one.
    pub(super) fn newest(&self) -> Result<Option<LiveSnapshot>, Failure> {
        let mut newest = None;
        loop {
            match self.snapshots.try_recv() {
                Ok(snapshot) => newest = Some(snapshot?),
                Err(TryRecvError::Empty) => return Ok(newest),
                Err(TryRecvError::Disconnected) => {
                    return Err(Failure::new("the recording can't be read any more"));
                }
            }
        }
    }
}

struct Work {
    files: Files,
    naming: NativeNaming,
    refresh: Duration,
    options: ViewOptions,
    /// Whether there was more to read than time.
    behind: bool,
}

impl Work {
    fn run(mut self, changes: &Receiver<ViewOptions>, show: &Sender<Result<LiveSnapshot, Failure>>) {
        loop {
            let made = self.round();
            let has_failed = made.is_err();
            let (pause, snapshot) = match made {
                Ok((pause, snapshot)) => (pause, snapshot.map(Ok)),
                Err(failure) => (Duration::ZERO, Some(Err(failure))),
            };
            let is_gone = snapshot.is_some_and(|snapshot| show.send(snapshot).is_err());
            if has_failed || is_gone || !self.wait(changes, pause) {
                return;
            }
        }
    }

    /// Reads new events, for at most one refresh interval, and makes a snapshot. Returns how long to pause, and the
    /// snapshot.
    fn round(&mut self) -> Result<(Duration, Option<LiveSnapshot>), Failure> {
        let began = Instant::now();
        self.files.read_new()?;
        let refresh = self.refresh;
        let mut goes_on = || began.elapsed() < refresh;
        for file in &mut self.files.followed {
            let is_still = file.is_still();
            for (process, figures) in file.processes_mut() {
                figures.update(process, is_still, &mut goes_on).map_err(Failure::new)?;
            }
        }
        self.behind = !goes_on();
        self.take_names();
        if self.options.is_paused {
            return Ok((self.refresh, None));
        }
        let drawing = Instant::now();
        let (snapshot, nameless) = snapshot(&self.files, self.options, self.behind).map_err(Failure::new)?;
        for ((process, _), frames) in self.files.processes().zip(nameless) {
            self.naming.request(process, frames);
        }
        let rest = drawing.elapsed() * SHARE_OF_TIME;
        let pause = match snapshot.processes {
            0 => WAITING,
            _ if self.behind => Duration::ZERO,
            _ => self.refresh.saturating_sub(began.elapsed()).max(rest),
        };
        Ok((pause, Some(snapshot)))
    }

    fn take_names(&mut self) {
        while let Some((start, names)) = self.naming.reply() {
            if let Some(figures) = self.files.figures_of(&start) {
                figures.names.add(names);
            }
        }
    }

    /// Waits for the next round, or for changed options. Returns whether the view is still open.
    fn wait(&mut self, changes: &Receiver<ViewOptions>, pause: Duration) -> bool {
        match changes.recv_timeout(pause) {
            Ok(options) => self.options = options,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return false,
        }
        self.options = changes.try_iter().last().unwrap_or(self.options);
        true
    }
}

//! Reads, counts and makes pictures, so that the screen never waits.

use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::thread;
use std::time::{Duration, Instant};

use super::figures::picture;
use super::follow::Files;
use super::naming::Naming;
use super::picture::{Picture, Wanted};
use super::processes;
use crate::failure::Failure;

/// A picture may take this part of the time, not more.
const SHARE_OF_TIME: u32 = 10;
/// While nothing is there, it is looked for so often.
const WAITING: Duration = Duration::from_millis(200);

/// A thread of its own.
#[derive(Debug)]
pub(super) struct Worker {
    wanted: Sender<Wanted>,
    pictures: Receiver<Result<Picture, Failure>>,
}

impl Worker {
    pub(super) fn start(path: &Path, old: Option<(u64, u64)>, refresh: Duration) -> Result<Self, Failure> {
        let (wanted, asked) = channel();
        let (show, pictures) = channel();
        let work = Work {
            files: Files::instead_of(path, old),
            naming: Naming::start()?,
            refresh,
            wanted: Wanted::default(),
            behind: false,
        };
        let run = move || {
            processes::yield_to_others();
            work.run(&asked, &show);
        };
        thread::Builder::new().name("stackweave-live".into()).spawn(run).map_err(Failure::new)?;
        Ok(Self { wanted, pictures })
    }

    /// Says what is shown from now on.
    pub(super) fn ask(&self, wanted: Wanted) {
        // A worker that has failed has said so.
        let _ = self.wanted.send(wanted);
    }

    /// The newest picture, if there is a new one.
    pub(super) fn newest(&self) -> Result<Option<Picture>, Failure> {
        let mut newest = None;
        loop {
            match self.pictures.try_recv() {
                Ok(picture) => newest = Some(picture?),
                Err(TryRecvError::Empty) => return Ok(newest),
                Err(TryRecvError::Disconnected) => {
                    return Err(Failure::new("the recording can't be followed any more"));
                }
            }
        }
    }
}

struct Work {
    files: Files,
    naming: Naming,
    refresh: Duration,
    wanted: Wanted,
    /// Whether there was more to read than there was time.
    behind: bool,
}

impl Work {
    fn run(mut self, asked: &Receiver<Wanted>, show: &Sender<Result<Picture, Failure>>) {
        loop {
            let made = self.round();
            let has_failed = made.is_err();
            let (pause, picture) = match made {
                Ok((pause, picture)) => (pause, picture.map(Ok)),
                Err(failure) => (Duration::ZERO, Some(Err(failure))),
            };
            let is_gone = picture.is_some_and(|picture| show.send(picture).is_err());
            if has_failed || is_gone || !self.wait(asked, pause) {
                return;
            }
        }
    }

    /// Reads what is new, for no longer than a refresh, and makes a picture. Gives how long to rest then.
    fn round(&mut self) -> Result<(Duration, Option<Picture>), Failure> {
        let began = Instant::now();
        self.files.look()?;
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
        if self.wanted.is_paused {
            return Ok((self.refresh, None));
        }
        let drawing = Instant::now();
        let (picture, nameless) = picture(&self.files, self.wanted, self.behind).map_err(Failure::new)?;
        for ((process, _), frames) in self.files.processes().zip(nameless) {
            self.naming.ask(process, frames);
        }
        let rest = drawing.elapsed() * SHARE_OF_TIME;
        let pause = match picture.processes {
            0 => WAITING,
            _ if self.behind => Duration::ZERO,
            _ => self.refresh.saturating_sub(began.elapsed()).max(rest),
        };
        Ok((pause, Some(picture)))
    }

    fn take_names(&mut self) {
        while let Some((start, names)) = self.naming.answer() {
            if let Some(figures) = self.files.figures_of(&start) {
                figures.names.add(names);
            }
        }
    }

    /// Until it is time for the next round, or something else is wanted. Says whether somebody still looks.
    fn wait(&mut self, asked: &Receiver<Wanted>, pause: Duration) -> bool {
        match asked.recv_timeout(pause) {
            Ok(wanted) => self.wanted = wanted,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return false,
        }
        self.wanted = asked.try_iter().last().unwrap_or(self.wanted);
        true
    }
}

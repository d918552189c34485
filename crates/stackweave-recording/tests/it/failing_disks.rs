//! A failing disk is an error with one sentence; a damaged recording is not an error.

use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use stackweave_recording::read::RecordingSource;
use stackweave_recording::{OpenError, Recording, merge};

use crate::recording_builder::busy;

/// A disk that can fail.
#[derive(Debug)]
struct FailingDisk {
    bytes: Vec<u8>,
    is_broken: AtomicBool,
}

impl FailingDisk {
    fn check(&self) -> io::Result<()> {
        if self.is_broken.load(Ordering::Relaxed) { Err(io::Error::other("broken disk")) } else { Ok(()) }
    }
}

impl RecordingSource for FailingDisk {
    fn size(&self) -> io::Result<u64> {
        self.check().map(|()| self.bytes.len() as u64)
    }

    fn read_at(&self, at: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.check()?;
        let rest = &self.bytes[usize::try_from(at).unwrap().min(self.bytes.len())..];
        let len = rest.len().min(buffer.len());
        buffer[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }
}

fn disk() -> Arc<FailingDisk> {
    Arc::new(FailingDisk { bytes: busy(7, 1, 2, 9).end().bytes, is_broken: AtomicBool::new(false) })
}

fn open(disk: &Arc<FailingDisk>) -> Result<Recording, OpenError> {
    let source: Arc<dyn RecordingSource> = Arc::<FailingDisk>::clone(disk);
    Recording::from_source(&source, Path::new("a.swv"))
}

#[test]
fn a_failed_open_reports_the_error() {
    let disk = disk();
    disk.is_broken.store(true, Ordering::Relaxed);
    assert_eq!(open(&disk).unwrap_err().to_string(), "a.swv: it can't be read (broken disk)");
}

#[test]
fn a_failed_read_reports_the_error() {
    let disk = disk();
    let recording = open(&disk).unwrap();
    disk.is_broken.store(true, Ordering::Relaxed);
    let sentence = "a.swv: it can't be read any more (broken disk)";
    let process = &recording.processes()[0];
    let visit = process.visit(None, &mut |_| (), &mut |_| ControlFlow::Continue(()));
    assert_eq!(visit.unwrap_err().to_string(), sentence);
    let visit = process.visit_in_time_order(None, &mut |_| (), &mut |_| ControlFlow::Continue(()));
    assert_eq!(visit.unwrap_err().to_string(), sentence);
    let visit = recording.visit_in_time_order(None, &mut |_| (), &mut |_| ControlFlow::Continue(()));
    assert_eq!(visit.unwrap_err().to_string(), sentence);
    assert_eq!(merge(&recording, &mut io::sink(), &mut |_| ()).unwrap_err().to_string(), sentence);
}

#[test]
fn reading_continues_after_the_disk_recovers() {
    let disk = disk();
    let recording = open(&disk).unwrap();
    let mut order = recording.in_time_order(None);
    let mut seen = 0;
    disk.is_broken.store(true, Ordering::Relaxed);
    assert!(order.next_event().is_err());
    disk.is_broken.store(false, Ordering::Relaxed);
    while order.next_event().unwrap().is_some() {
        seen += 1;
    }
    assert_eq!(seen, recording.event_count());
}

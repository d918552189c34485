//! Arbitrary bytes as a recording: whatever they are, they are read to the end, and what is read twice is the same.
#![no_main]

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use stackweave_recording::file::{BlockHeader, SYNC};
use stackweave_recording::read::Source;
use stackweave_recording::{Recording, merge};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    read(data);
    read(&with_right_checksums(data));
});

fn open(bytes: &[u8]) -> Option<Recording> {
    let source: Arc<dyn Source> = Arc::new(Arc::<[u8]>::from(bytes));
    let opened = Recording::from_source(&source, Path::new("input"));
    opened.map_err(|error| assert!(!error.to_string().is_empty())).ok()
}

fn read(bytes: &[u8]) {
    let Some(recording) = open(bytes) else { return };
    let events = visited(&recording);
    assert_eq!(in_time_order(&recording), events);
    recording.report().iter().for_each(|sentence| assert!(sentence.ends_with('.')));
    let mut merged = Vec::new();
    let summary = merge(&recording, &mut merged, &mut |_| ()).unwrap();
    assert!(summary.bytes == merged.len() as u64 && merged.len() <= bytes.len());
    let again = open(&merged).unwrap();
    // Without their damaged blocks, two recordings of one process may hold the same: then they are read once.
    if recording.missing().twice.iter().all(|twice| !twice.both_are_read) {
        assert_eq!((again.processes().len(), visited(&again)), (recording.processes().len(), events));
    }
}

/// How many events there are. Looks up all that they refer to.
fn visited(recording: &Recording) -> u64 {
    let mut count = 0;
    for process in recording.processes() {
        let dictionary = process.dictionary();
        let frames = dictionary.stacks().take(1_000).map(|(stack, _)| dictionary.frames_of(stack).count());
        assert!(frames.max() <= Some(dictionary.stack_count()));
        assert!(dictionary.frames().all(|(frame, _)| dictionary.names(frame).len() <= 1 << 20));
        let visit = process.visit(None, &mut |_| (), &mut |events| {
            for event in events {
                assert!(event.words.len() <= 16);
                count += 1;
            }
            ControlFlow::Continue(())
        });
        visit.unwrap();
    }
    count
}

fn in_time_order(recording: &Recording) -> u64 {
    let mut count = 0;
    let visit = recording.visit_in_time_order(None, &mut |_| (), &mut |_| {
        count += 1;
        ControlFlow::Continue(())
    });
    visit.unwrap();
    count
}

/// The same bytes with markers and checksums as they should be, so that what is inside the blocks gets read.
fn with_right_checksums(data: &[u8]) -> Vec<u8> {
    let mut bytes = data.to_vec();
    let mut rest = &mut bytes[..];
    while rest.len() >= BlockHeader::LEN {
        let (header, behind) = rest.split_at_mut(BlockHeader::LEN);
        let stated = u32::from_le_bytes([header[12], header[13], header[14], header[15]]);
        let len = behind.len().min(stated as usize);
        header[..8].copy_from_slice(&SYNC);
        header[12..16].copy_from_slice(&(len as u32).to_le_bytes());
        header[24..28].copy_from_slice(&crc32fast::hash(&behind[..len]).to_le_bytes());
        let own = crc32fast::hash(&header[..28]);
        header[28..].copy_from_slice(&own.to_le_bytes());
        rest = &mut behind[len..];
    }
    bytes
}

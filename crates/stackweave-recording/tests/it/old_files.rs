//! Files of this and all earlier versions stay readable. They are also seeds of the fuzz target.
//!
//! `STACKWEAVE_BLESS=1` writes missing files of this version. Existing ones are never rewritten.

use std::path::PathBuf;

use stackweave_recording::Recording;
use stackweave_recording::file::{BlockKind, LossReason, write_block};

use crate::recording_builder::{RecordingBuilder, Steps, busy, visited};

/// Returns the files of version 1, and the processes in them.
fn version_1() -> Vec<(&'static str, Vec<RecordingBuilder>)> {
    let mut details = RecordingBuilder::new(3, 500);
    details.thread(1, "main");
    details.clock(0, 500);
    details.steps(1, &[(10, 1), (20, u64::MAX), (20, 0), (1 << 50, 7)]);
    details.note(1, 30, "label", "{\"a\": 1}");
    details.note(2, 31, "another", "{\"a\": 1}");
    details.lost(LossReason::Full, 3);
    details.clock(1 << 50, 1 << 49);
    let mut with_unknown = busy(4, 4, 1, 2);
    let section =
        stackweave_recording::file::BlockHeader::parse(with_unknown.bytes.first_chunk().unwrap()).unwrap().section;
    write_block(BlockKind::Other(99), section, b"later", &mut with_unknown.bytes).unwrap();
    vec![
        ("closed", vec![busy(1, 1, 2, 6).end()]),
        ("killed", vec![busy(2, 2, 1, 3)]),
        ("details", vec![details.end()]),
        ("unknown-block", vec![with_unknown.end()]),
        ("two", vec![busy(5, 5, 1, 2), busy(6, 6, 2, 3).end()]),
        ("empty", vec![RecordingBuilder::new(7, 0).end()]),
    ]
}

fn seeds() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/recording")
}

#[test]
fn files_of_version_1_keep_their_content() {
    for (name, built) in version_1() {
        let path = seeds().join(format!("v1-{name}.swv"));
        if std::env::var_os("STACKWEAVE_BLESS").is_some() && !path.exists() {
            std::fs::create_dir_all(seeds()).unwrap();
            let bytes: Vec<u8> = built.iter().flat_map(|builder| builder.bytes.clone()).collect();
            std::fs::write(&path, bytes).unwrap();
        }
        let recording = Recording::open(&path).unwrap();
        let found: Vec<Steps> = recording.processes().iter().map(|process| visited(process).0).collect();
        let expected: Vec<Steps> = built.iter().map(RecordingBuilder::all_steps).collect();
        assert_eq!(found, expected, "{name}");
    }
}

//! Both formats for Perfetto, as its trace processor reads them. It needs node.

use serde_json::{Value, json};
use stackweave_export::{ExportOptions, Format, export};
use stackweave_profile::AggregateOptions;
use stackweave_recording::Recording;
use stackweave_testkit::folder::Folder;

use crate::common::examples::{example, random};
use crate::common::readers::{reader_script, run, system_program};
use crate::common::trees::{Tree, printed, profiled};

fn query(recording: &Recording, format: Format) -> Option<Value> {
    system_program("node", "--version")?;
    let folder = Folder::new();
    let path = folder.file("out");
    export(recording, format, &path, &ExportOptions::default(), (None, &mut |_| {})).expect("it can be written");
    let output = run(reader_script("trace_processor.py")?.arg(&path));
    Some(serde_json::from_str(&output).expect("the reader prints JSON"))
}

/// Returns the tree without spans of no duration, which are instants there.
fn expected(recording: &Recording) -> Tree {
    let mut tree = profiled(recording, &AggregateOptions::default());
    tree.retain(|_, (_, _, total)| *total > 0);
    tree
}

#[test]
fn the_example_is_read_correctly() {
    let recording = example().recording();
    for format in [Format::Chrome, Format::Perfetto] {
        let Some(seen) = query(&recording, format) else { return };
        assert_eq!(printed(&seen["tree"]), expected(&recording), "{format}");
        assert_eq!(seen["problems"], json!([]), "{format}");
        assert!(seen["processes"].as_array().is_some_and(|all| all.contains(&json!([4242, "python3 train.py"]))));
        let threads = seen["threads"].as_array();
        assert!(threads.is_some_and(|all| all.contains(&json!([4243, "worker"]))), "{format}: {}", seen["threads"]);
        let counters = seen["counters"].as_array().map(Vec::len);
        assert_eq!(counters, Some(10), "{format}: {}", seen["counters"]);
        if format == Format::Perfetto {
            assert_eq!(seen["samples"], json!([["worker", "fib"], ["main", "inner"]]));
            assert_eq!(seen["frames"], json!([["Model.step"], ["fib"], ["inner"], ["main"], ["outer"]]));
        }
    }
}

#[test]
fn random_recordings_agree_with_their_profiles() {
    let recording = random(21, 20_000).recording();
    for format in [Format::Chrome, Format::Perfetto] {
        let Some(seen) = query(&recording, format) else { return };
        assert_eq!(seen["problems"], json!([]), "{format}");
        let (found, expected) = (printed(&seen["tree"]), expected(&recording));
        assert_eq!(found, expected, "{format}");
    }
}

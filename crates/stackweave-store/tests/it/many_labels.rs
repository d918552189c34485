//! An unlimited number of names does not fill the memory of a process.

use stackweave_store::{OTHER_NAMES, label, locate_label};
use stackweave_testkit::child;

#[test]
fn one_label_replaces_all_names_beyond_the_limit() {
    child::in_own_process("many_labels::one_label_replaces_all_names_beyond_the_limit", |_| fill_labels());
}

/// Fills the process-wide table of labels.
fn fill_labels() {
    let early = label("early", "", 0).unwrap();
    let long = "x".repeat(1 << 16);
    let labels: Vec<_> = (0..1_200).map(|number| label(&format!("{number} {long}"), "", 0).unwrap()).collect();
    let name = |frame| locate_label(frame).unwrap().name;
    let full = labels.iter().position(|frame| &*name(*frame) == OTHER_NAMES).unwrap();
    assert!((900..1_100).contains(&full), "64 MiB are {full} names of 64 KiB");
    assert!(labels[full..].iter().all(|frame| *frame == labels[full]));
    // Known names remain known.
    assert_eq!(label("early", "", 0), Some(early));
    assert_eq!(label(&format!("7 {long}"), "", 0), Some(labels[7]));
    assert_eq!(label("late", "late.py", 3), Some(labels[full]));
}

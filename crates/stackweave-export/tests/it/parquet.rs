//! Parquet files, as `DuckDB` and `Polars` read them.

use std::path::Path;

use serde_json::{Value, json};
use stackweave_export::{ExportOptions, Format, export};
use stackweave_profile::{AggregateOptions, Measure, Statistics, aggregate};
use stackweave_recording::Recording;
use stackweave_tapes::recording_of;
use stackweave_testkit::folder::Folder;

use crate::common::examples::{STATISTICS, TREE, example, nasty, random};
use crate::common::readers::{reader_script, run};
use crate::common::trees::{Tree, printed, profiled};

fn write(recording: &Recording, part: AggregateOptions, path: &Path) {
    let options = ExportOptions { part, ..ExportOptions::default() };
    let done = export(recording, Format::Parquet, path, &options, (None, &mut |_| {})).unwrap();
    assert_eq!(done.bytes, size(path));
}

/// Returns the size of all files in a folder.
fn size(path: &Path) -> u64 {
    if !path.is_dir() {
        return path.metadata().unwrap().len();
    }
    path.read_dir().unwrap().map(|entry| size(&entry.unwrap().path())).sum()
}

fn read(recording: &Recording, part: AggregateOptions) -> Option<Value> {
    let folder = Folder::new();
    let path = folder.file("out.parquet");
    write(recording, part, &path);
    read_folder(&path)
}

fn read_folder(path: &Path) -> Option<Value> {
    let output = run(reader_script("read_parquet.py")?.arg(path));
    Some(serde_json::from_str(&output).unwrap())
}

/// Returns name, calls, primitive calls, self and total time of each function, sorted.
fn statistics(recording: &Recording, part: &AggregateOptions) -> Vec<Value> {
    let part = AggregateOptions { measure: Some(Measure::WallTime), ..part.clone() };
    let profile = aggregate(recording.processes(), &part, None, &mut |_| {}).unwrap().merged();
    let statistics = Statistics::of(&profile);
    let called = statistics.functions().filter(|(_, found)| found.calls > 0);
    let mut rows: Vec<(String, u64, u64, i64, i64)> = called
        .map(|(id, found)| {
            let name = profile.functions().function(id).full_name().to_string();
            (name, found.calls, found.primitive_calls, found.self_cost, found.total)
        })
        .collect();
    rows.sort();
    rows.into_iter().map(|row| json!(row)).collect()
}

#[test]
fn both_readers_compute_the_statistics_computed_by_hand() {
    let Some(seen) = read(&example().recording(), AggregateOptions::default()) else { return };
    let mut expected = STATISTICS.to_vec();
    expected.sort_unstable();
    assert_eq!((&seen["duckdb"]["functions"], &seen["polars"]["functions"]), (&json!(expected), &json!(expected)));
    let tree: Tree = TREE
        .iter()
        .map(|(path, calls, self_cost, total)| {
            (path.iter().map(ToString::to_string).collect(), (*calls, *self_cost, *total))
        })
        .collect();
    assert_eq!(printed(&seen["polars"]["tree"]), tree);
}

#[test]
fn samples_allocations_and_referenced_tables_are_there() {
    let Some(seen) = read(&example().recording(), AggregateOptions::default()) else { return };
    let duckdb = &seen["duckdb"];
    assert_eq!(duckdb["samples"], json!([[["fib"], 2], [["main", "Model.step", "outer", "inner"], 3]]));
    assert_eq!((&duckdb["bytes"], &duckdb["live"]), (&json!(4224), &json!(128)));
    let process = "machine-4242-1700000000123456789";
    let row = json!([process, 4242, "machine", r#"["python3","train.py"]"#, 1_700_000_000_123_456_789_i64]);
    assert_eq!(duckdb["processes"], json!([row]));
    assert_eq!((&duckdb["counts"]["threads"], &duckdb["counts"]["modules"]), (&json!(2), &json!(1)));
    let columns = &duckdb["columns"]["events"];
    assert_eq!((&columns["time"], &columns["address"]), (&json!("TIMESTAMPTZ_NS"), &json!("UBIGINT")));
    assert_eq!((&columns["kind"], &columns["process"]), (&json!("VARCHAR"), &json!("VARCHAR")));
}

#[test]
fn the_queries_of_the_documentation_work() {
    let folder = Folder::new();
    let path = folder.file("out.parquet");
    write(&example().recording(), AggregateOptions::default(), &path);
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/exports.md");
    let Some(mut script) = reader_script("read_parquet.py") else { return };
    let seen: Value = serde_json::from_str(&run(script.arg(&path).arg(page))).unwrap();
    let first = &seen["documented"]["duckdb"][0];
    assert_eq!(first, &json!(["fib", "/app/fib.py", 3, 3, 1.7e-6, 1.8e-6]));
    assert_eq!(seen["documented"]["live"], json!([["fib", 1, 100]]));
    let table = seen["documented"]["polars"].as_str().unwrap();
    assert!(table.contains("fib") && table.contains("1700"), "{table}");
}

#[test]
fn every_name_is_read_back_unchanged() {
    let recording = nasty().recording();
    let Some(seen) = read(&recording, AggregateOptions::default()) else { return };
    assert_eq!(printed(&seen["polars"]["tree"]), profiled(&recording, &AggregateOptions::default()));
}

#[test]
fn random_recordings_agree_with_their_profiles() {
    // More rows than fit in one group.
    let recording = random(31, 100_000).recording();
    let parts = [
        AggregateOptions::default(),
        AggregateOptions {
            range: Some(20_000_000..60_000_000),
            threads: vec!["worker".to_owned()],
            ..AggregateOptions::default()
        },
    ];
    for part in parts {
        let Some(seen) = read(&recording, part.clone()) else { return };
        assert_eq!(printed(&seen["polars"]["tree"]), profiled(&recording, &part));
        let expected = Value::from(statistics(&recording, &part));
        assert_eq!(seen["duckdb"]["functions"], expected);
        assert_eq!(seen["polars"]["functions"], expected);
    }
}

#[test]
fn exports_of_several_machines_are_one_dataset() {
    let folder = Folder::new();
    let path = folder.file("all");
    write(&recording_of(vec![example(), nasty()]), AggregateOptions::default(), &path);
    let other = folder.file("other");
    write(&random(32, 1_000).recording(), AggregateOptions::default(), &other);
    for table in other.read_dir().unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()) {
        for part in table.read_dir().unwrap().map(|entry| entry.unwrap().path()) {
            std::fs::rename(&part, path.join(table.file_name().unwrap()).join(part.file_name().unwrap())).unwrap();
        }
    }
    let Some(seen) = read_folder(&path) else { return };
    let names: Vec<&str> =
        seen["duckdb"]["processes"].as_array().unwrap().iter().map(|row| row[0].as_str().unwrap()).collect();
    assert_eq!(names, ["machine-4242-1700000000123456789", "unknown-4242-0", "unknown-7-0"]);
    let total =
        |functions: &Value| -> i64 { functions.as_array().unwrap().iter().map(|row| row[3].as_i64().unwrap()).sum() };
    assert_eq!(total(&seen["duckdb"]["functions"]), total(&seen["polars"]["functions"]));
}

//! Models of the structures that threads share without locks: loom runs each with all interleavings of its threads, and all values
//! that their loads may return.
//!
//! The models use the code of the crates itself (`build.rs`). The code around it is replaced here: memory of the kernel, futexes, and
//! the session of a recording. Loom tracks atomics and cells, but not plain memory behind pointers: for bytes of blobs and words of
//! events, loads always return the last value.
//!
//! `cargo run --release` runs all models, or those whose names are arguments.
#![allow(dead_code, unused_imports, reason = "models use a part of what they include")]

macro_rules! prepared {
    ($($name:ident)*) => { $(mod $name { include!(concat!(env!("OUT_DIR"), "/", stringify!($name), ".rs")); })* };
}

prepared! { address_map blob_bytes blob_index blob_table frame_numbers growing_table id_table lazy_block stack_index stack_nodes stack_table }
#[path = "../../crates/stackweave-store/src/blob_hash.rs"]
mod blob_hash;
#[path = "../../crates/stackweave-store/src/stack_hash.rs"]
mod stack_hash;

mod atomic;
mod clock;
mod kernel;
mod live;
mod new_memory;
mod store_models;

use std::time::Instant;

type Model = (&'static str, fn());

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let models = store_models::ALL.iter().chain(live::models::ALL);
    let chosen: Vec<&Model> =
        models.filter(|(name, _)| wanted.is_empty() || wanted.iter().any(|it| it == name)).collect();
    assert!(!chosen.is_empty(), "no model has this name");
    for (name, model) in chosen {
        let start = Instant::now();
        let runs = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
        let mut builder = loom::model::Builder::new();
        // The number of times that a running thread is preempted. With three preemptions, some models take hours.
        builder.preemption_bound.get_or_insert(2);
        builder.max_branches = 10_000;
        let counted = std::sync::Arc::clone(&runs);
        builder.check(move || {
            counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            model();
        });
        println!(
            "{name}: {} interleavings in {:.1} s",
            runs.load(std::sync::atomic::Ordering::Relaxed),
            start.elapsed().as_secs_f64()
        );
    }
}

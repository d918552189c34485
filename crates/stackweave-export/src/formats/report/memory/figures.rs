//! The figures of `stackweave heap` for a device.

use serde_json::{Map, Value, json};
use stackweave_profile::memory::{Figures, MemoryReport, NamedFigures};

/// Returns the fields of a device that are figures.
pub(super) fn fields(report: &MemoryReport) -> Map<String, Value> {
    let mut fields = amounts(&report.totals.figures);
    let named =
        |all: &[NamedFigures]| -> Value { all.iter().map(|of| row(&of.name, of.number, &of.figures)).collect() };
    fields.insert("threads".to_owned(), named(&report.threads));
    fields.insert("tags".to_owned(), named(&report.tags));
    fields.insert("allocators".to_owned(), named(&report.allocators));
    fields.insert(
        "fromBefore".to_owned(),
        json!({"bytes": report.from_before.bytes, "blocks": report.from_before.blocks}),
    );
    let sizes = report.sizes.iter().map(|(most, figures)| row(&most.to_string(), 0, figures));
    fields.insert("sizes".to_owned(), sizes.collect());
    fields
}

fn row(name: &str, number: u32, figures: &Figures) -> Value {
    let mut fields = amounts(figures);
    fields.insert("name".to_owned(), name.into());
    fields.insert("number".to_owned(), number.into());
    Value::Object(fields)
}

fn amounts(of: &Figures) -> Map<String, Value> {
    let amounts = [
        ("peak", of.peak_bytes, of.peak_blocks),
        ("live", of.live_bytes, of.live_blocks),
        ("allocated", of.bytes, of.allocations),
        ("temporary", of.temporary_bytes, of.temporary),
    ];
    let amount = |(name, bytes, blocks): (&str, u64, u64)| (name.to_owned(), json!({"bytes": bytes, "blocks": blocks}));
    amounts.into_iter().map(amount).collect()
}

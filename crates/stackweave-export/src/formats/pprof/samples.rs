//! The samples of a profile.

use std::collections::BTreeMap;

use stackweave_profile::{RecordedCost, RecordedCosts};

use super::chains::{Chains, StackLocations};
use super::tables::ProfileTables;
use super::{Label, MeasureColumn, fields};
use crate::protobuf::Message;

/// The samples of one reading.
pub(super) struct Samples<'c, 'a> {
    costs: &'c RecordedCosts<'a>,
    /// The number of values of a sample.
    count: usize,
    chains: Chains,
    /// The values of stacks with omitted locations, which may be equal to those of other stacks.
    cut: BTreeMap<SampleKey, Vec<u64>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SampleKey {
    process: usize,
    thread: Option<u32>,
    chain: StackLocations,
}

/// A sample that is not written yet.
pub(super) struct PendingSample {
    key: SampleKey,
    values: Vec<u64>,
}

impl<'c, 'a> Samples<'c, 'a> {
    pub(super) fn new(costs: &'c RecordedCosts<'a>, count: usize) -> Self {
        Self { costs, count, chains: Chains::default(), cut: BTreeMap::new() }
    }

    /// Writes a cost, or keeps it if its stack has omitted locations. Its values begin at `first`, and those of other
    /// measures are 0.
    pub(super) fn cost(
        &mut self,
        cost: RecordedCost,
        (columns, first): (&[MeasureColumn], usize),
        tables: &mut ProfileTables<'_>,
        out: &mut Message,
    ) {
        let mut values = vec![0; self.count];
        for (value, column) in values[first..].iter_mut().zip(columns) {
            *value = (column.value)(&cost).cast_unsigned();
        }
        if values.iter().all(|value| *value == 0) {
            return;
        }
        let chain = self.chains.chain((self.costs, cost), tables);
        let key = SampleKey { process: cost.process, thread: cost.thread, chain };
        if !chain.is_cut {
            return self.write(PendingSample { key, values }, tables, out);
        }
        let sums = self.cut.entry(key).or_insert_with(|| vec![0; values.len()]);
        for (sum, value) in sums.iter_mut().zip(values) {
            // Values are signed, in two's complement.
            *sum = sum.wrapping_add(value);
        }
    }

    /// Returns the samples that were kept.
    pub(super) fn take_cut(&mut self) -> Vec<PendingSample> {
        core::mem::take(&mut self.cut).into_iter().map(|(key, values)| PendingSample { key, values }).collect()
    }

    pub(super) fn write(&self, sample: PendingSample, tables: &mut ProfileTables<'_>, out: &mut Message) {
        let SampleKey { process, thread, chain } = sample.key;
        let locations = self.chains.locations(chain, tables);
        let labels = tables.labels(process, thread);
        out.message(fields::profile::SAMPLE, |out| {
            out.packed(fields::sample::LOCATION_ID, locations);
            out.packed(fields::sample::VALUE, sample.values);
            for &(key, value) in labels.iter() {
                out.message(fields::sample::LABEL, |out| {
                    out.unsigned(fields::label::KEY, key);
                    match value {
                        Label::Text(text) => out.unsigned(fields::label::STR, text),
                        Label::Number(number) => out.unsigned(fields::label::NUM, number),
                    }
                });
            }
        });
    }
}

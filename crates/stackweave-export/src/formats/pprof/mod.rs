//! pprof's profiles: `profile.proto`, compressed.
//!
//! Each stack of each thread is a sample, with a value for every measure of the recording. A location is an address
//! with all calls that were inlined there, or a line of an interpreted function.

mod chains;
mod fields;
mod id_table;
mod samples;
mod tables;

use std::io::{self, Write};

use stackweave_profile::{AggregateOptions, Grouping, Measure, RecordedCost, RecordedCosts};

use self::samples::Samples;
use self::tables::ProfileTables;
use crate::error::ExportError;
use crate::protobuf::Message;
use crate::source::Source;

pub(crate) fn write(source: &Source<'_>, out: &mut dyn Write) -> Result<(), ExportError> {
    let mut message = Message::default();
    let read = read(source)?;
    let columns: Vec<MeasureColumn> =
        read.iter().flat_map(|(_, measures)| measures).flat_map(|measure| columns(*measure)).collect();
    let mut tables = ProfileTables::new(source, &read);
    write_head(source, &columns, &mut tables, &mut message);
    let mut first = 0;
    let mut failed = Ok(());
    for (costs, measures) in &read {
        let mut samples = Samples::new(costs, columns.len());
        for measure in measures {
            let mine = self::columns(*measure);
            costs.visit(*measure, |cost| {
                if failed.is_ok() {
                    samples.cost(cost, (&mine, first), &mut tables, &mut message);
                    failed = flush_if_long(&mut message, out);
                }
            });
            first += mine.len();
        }
        for index in samples.take_cut() {
            samples.write(index, &mut tables, &mut message);
            flush_if_long(&mut message, out)?;
        }
    }
    failed?;
    tables.write(&mut message, |message| flush_if_long(message, out))?;
    Ok(out.write_all(message.as_bytes())?)
}

/// The costs that were read, with the measures that are taken from them.
type MeasuredCosts<'a> = Vec<(RecordedCosts<'a>, Vec<Measure>)>;

fn read<'a>(source: &Source<'a>) -> Result<MeasuredCosts<'a>, ExportError> {
    let requested = source.options().part.measure;
    let part = AggregateOptions { grouping: Grouping::Threads, ..source.options().part.clone() };
    let costs = source.recorded_costs(&part)?;
    let mut measures = costs.measures();
    measures
        .retain(|measure| *measure != Measure::Allocations && requested.is_none_or(|one| is_included(one, *measure)));
    if measures.is_empty() {
        measures.push(requested.unwrap_or_default());
    }
    let has_blocks =
        requested.is_none() && measures.contains(&Measure::AllocatedBytes) && !measures.contains(&Measure::PeakBytes);
    let mut read = vec![(costs, measures)];
    if has_blocks {
        let part = AggregateOptions { measure: Some(Measure::LiveBytes), ..part };
        read.push((source.recorded_costs(&part)?, vec![Measure::LiveBytes]));
    }
    Ok(read)
}

fn is_included(requested: Measure, measure: Measure) -> bool {
    requested == measure || (requested == Measure::Allocations && measure == Measure::AllocatedBytes)
}

/// One value of each sample: its name, its unit, and its part of a cost.
#[derive(Clone, Copy)]
struct MeasureColumn {
    name: &'static str,
    unit: &'static str,
    value: fn(&RecordedCost) -> i64,
}

fn columns(measure: Measure) -> Vec<MeasureColumn> {
    let self_cost = |name, unit| MeasureColumn { name, unit, value: |cost| cost.self_cost };
    let counted =
        |name| MeasureColumn { name, unit: "count", value: |cost| i64::try_from(cost.calls).unwrap_or(i64::MAX) };
    match measure {
        Measure::WallTime => vec![self_cost("wall", "nanoseconds"), counted("calls")],
        Measure::Calls => vec![counted("calls")],
        Measure::Samples => vec![self_cost("samples", "count")],
        Measure::AllocatedBytes | Measure::Allocations => {
            vec![self_cost("alloc_space", "bytes"), counted("alloc_objects")]
        }
        Measure::LiveBytes => vec![self_cost("inuse_space", "bytes"), counted("inuse_objects")],
        Measure::PeakBytes => vec![self_cost("peak_space", "bytes"), counted("peak_objects")],
        Measure::TemporaryBytes => vec![self_cost("temporary_space", "bytes"), counted("temporary_objects")],
    }
}

fn write_head(source: &Source<'_>, columns: &[MeasureColumn], tables: &mut ProfileTables<'_>, out: &mut Message) {
    let value_type = |column: &MeasureColumn, tables: &mut ProfileTables<'_>, out: &mut Message| {
        out.unsigned(fields::value_type::TYPE, tables.text(column.name));
        out.unsigned(fields::value_type::UNIT, tables.text(column.unit));
    };
    for column in columns {
        out.message(fields::profile::SAMPLE_TYPE, |out| value_type(column, tables, out));
    }
    if let Some(first) = columns.first() {
        out.message(fields::profile::PERIOD_TYPE, |out| value_type(first, tables, out));
        out.unsigned(fields::profile::PERIOD, 1);
        out.unsigned(fields::profile::DEFAULT_SAMPLE_TYPE, tables.text(first.name));
    }
    let range = source.time_range();
    out.signed(fields::profile::TIME_NANOS, source.wall_ns(range.start));
    out.unsigned(fields::profile::DURATION_NANOS, range.end - range.start);
    out.unsigned(fields::profile::COMMENT, tables.text(&source.title()));
}

/// The value of a label: the index of a string, or a number.
#[derive(Clone, Copy, Debug)]
enum Label {
    Text(u64),
    Number(u64),
}

fn flush_if_long(message: &mut Message, out: &mut dyn Write) -> io::Result<()> {
    if message.as_bytes().len() > 1 << 16 {
        out.write_all(message.as_bytes())?;
        message.clear();
    }
    Ok(())
}

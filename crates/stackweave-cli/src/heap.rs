//! `stackweave heap`: how much memory a program allocated, where, and what it did not free.

use stackweave_profile::Profile;
use stackweave_profile::memory::{MemoryQuery, MemoryReport, has_no_history, read_report};

use crate::arguments::HeapArguments;
use crate::failure::Failure;
use crate::heap_json;
use crate::open_recordings::symbolizer;
use crate::progress::Progress;
use crate::screen::{OutputFeatures, show, show_json};
use crate::text::{ALL, HeapOptions, HeapView, write_heap, write_hidden};

pub(crate) fn run(arguments: &HeapArguments) -> Result<(), Failure> {
    let recording = arguments.filters.scope.recording(&arguments.recordings)?;
    let query = MemoryQuery {
        range: arguments.filters.scope.range()?,
        threads: arguments.filters.scope.thread.clone(),
        tags: arguments.tag.clone(),
        devices: arguments.device.map(i64::from).into_iter().collect(),
        temporary: arguments.temporary,
        view: Some(arguments.filters.view()),
    };
    if query.range.is_some() && recording.processes().iter().all(has_no_history) {
        return Err(Failure::new("the recording has totals and no history: --start and --end need a history"));
    }
    let symbolizer = symbolizer()?;
    let mut progress = Progress::new("Reading", recording.bytes());
    let read = read_report(recording.processes(), &query, Some(symbolizer), &mut |bytes| progress.at(bytes));
    drop(progress);
    let mut report = read.map_err(Failure::new)?;
    report.add_devices(recording.processes(), &query, Some(symbolizer)).map_err(Failure::new)?;
    let is_all = query.range.is_none() && !query.filters_rows();
    let has_devices = report.devices.len() > 1 || !report.device_memory.is_empty();
    if arguments.view == HeapView::Devices && report.device_memory.is_empty() {
        return Err(Failure::new("no memory of a device was recorded; stackweave.torch.cuda_memory records it"));
    }
    let has_device = arguments.device.is_none_or(|device| report.has_device(device.into()));
    if (report.is_empty() && is_all && !has_devices) || !has_device {
        return Err(Failure::new(why_empty(arguments.device, &report)));
    }
    let mut remarks = recording.report();
    remarks.append(&mut report.remarks);
    let OutputFeatures { width, colour, .. } = OutputFeatures::of_output();
    let options = HeapOptions { view: arguments.view, limit: arguments.limit, width, colour };
    if arguments.json {
        show_json(|out| heap_json::write(out, &report, &options, &remarks))
    } else {
        show(&remarks, |out| {
            write_heap(out, &report, &options)?;
            write_hidden(out, shown_stacks(&report, options.view).and_then(|shown| shown.hidden_sentence(ALL)))
        })
    }
}

/// Returns the blocks of which a view shows the stacks.
fn shown_stacks(report: &MemoryReport, view: HeapView) -> Option<&Profile> {
    match view {
        HeapView::Summary | HeapView::Peak => Some(&report.peak),
        HeapView::Leaks => Some(&report.live),
        HeapView::Temporary => Some(&report.temporary),
        HeapView::Sizes | HeapView::Threads | HeapView::Tags | HeapView::Time | HeapView::Devices => None,
    }
}

/// Returns why there is nothing to show.
fn why_empty(device: Option<u32>, report: &MemoryReport) -> String {
    let is_of_memory = report.processes.iter().any(|process| process.header.is_some());
    match (device, report.remarks.first()) {
        (Some(device), _) => format!("no memory of a device {device} was recorded"),
        (None, Some(remark)) if is_of_memory => remark.trim_end_matches('.').to_owned(),
        (None, _) if is_of_memory => "no allocations are in the recording".to_owned(),
        (None, _) => "no allocations were recorded; stackweave memory records them".to_owned(),
    }
}

//! `PyTorch`'s memory snapshot, as `torch.cuda.memory._dump_snapshot` writes it, for its memory viewer and
//! `_memory_viz.py`.
//!
//! A device of the recording is the device with the same number in the snapshot. The memory of the process, if it was
//! recorded, is the device after the last one, as in `torch.profiler`, because the viewer shows only devices. The
//! devices of further processes follow.
//!
//! Each event of a host allocator is one entry, as in `PyTorch`'s own history, and the segments are those of the last
//! listing. For other memory, entries are made of allocations and frees, and segments of the addresses of blocks.
//!
//! The recording is read once to find the devices and the addresses and sizes of their blocks, and once more for each
//! device. Of very many blocks of processes, small ones are left out: see [`kept_blocks`].

mod annotations;
mod host;
mod kept_blocks;
mod listing;
mod pickle;
mod ranges;
mod read;
mod segments;
mod stacks;
mod trace;

use std::collections::{BTreeMap, HashMap};
use std::io::Write;

use stackweave_core::EventKind;
use stackweave_profile::Measure;

use self::kept_blocks::LeftOut;
use self::pickle::{MemoId, Pickle};
use self::read::{ChangeReader, SnapshotContents};
use self::stacks::StackWriter;
use self::trace::{SnapshotDevice, TraceWriter};
use crate::error::ExportError;
use crate::source::Source;

/// Devices keep their numbers, unless a number is greater than on any machine.
const MAX_DEVICES: i64 = 256;

pub(crate) fn write(source: &Source<'_>, out: &mut dyn Write) -> Result<(), ExportError> {
    let contents = read::find(source)?;
    if contents.devices.iter().all(BTreeMap::is_empty) {
        return Err(ExportError::Unsupported(
            "the recording has no events of memory, which a snapshot is made of".to_owned(),
        ));
    }
    let has_names = contents.has_names;
    let (mut devices, annotated, min_size) = arrange(contents, source.options().min_block);
    let stacks = source.processes().iter().map(|process| StackWriter::new(source, process)).collect();
    let mut snapshot = PytorchSnapshot { source, pickle: Pickle::new(out), stacks, pools: HashMap::new() };
    snapshot.pickle.begin_dictionary();
    snapshot.pickle.text("device_traces");
    snapshot.pickle.begin_list();
    for device in &mut devices {
        snapshot.pickle.item()?;
        snapshot.pickle.begin_list();
        if let Some(device) = device {
            snapshot.trace(device)?;
        }
        snapshot.pickle.end_list();
    }
    snapshot.pickle.end_list();
    snapshot.pickle.text("segments");
    snapshot.segments(&devices)?;
    snapshot.pickle.text("external_annotations");
    snapshot.pickle.begin_list();
    if has_names {
        annotations::write(source, &annotated, &mut snapshot.pickle)?;
    }
    snapshot.pickle.end_list();
    let left_out = left_out_text(&devices, min_size);
    if let Some(left_out) = &left_out {
        source.add_remark(format!("{left_out}: --min-block 0, or min_block=0 in Python, includes them."));
    }
    snapshot.finish(left_out.as_deref())
}

/// Returns the sentence about the blocks that were left out, without its end; `None` if there are none.
#[expect(clippy::cast_precision_loss, reason = "rounded to a few digits for display")]
fn left_out_text(devices: &[Option<SnapshotDevice>], min_size: u64) -> Option<String> {
    let (mut blocks, mut bytes, mut of_bytes) = (0, 0, 0_u64);
    for LeftOut { blocks: more, bytes: more_bytes, of_bytes: more_of } in
        devices.iter().flatten().map(|device| device.kept.left_out)
    {
        (blocks, bytes, of_bytes) = (blocks + more, bytes + more_bytes, of_bytes.saturating_add(more_of));
    }
    let percent = bytes as f64 / of_bytes.max(1) as f64 * 100.0;
    let size = Measure::AllocatedBytes.text(min_size as f64);
    (blocks > 0).then(|| {
        format!(
            "{blocks} blocks of less than {size} that were freed ({percent:.1} % of the allocated bytes) are left out"
        )
    })
}

/// The device that has the annotations of a process.
struct AnnotatedDevice {
    /// The index of the process's memory in the snapshot, or that of its first device.
    index: usize,
    /// Whether the memory of the process was recorded.
    is_process_memory: bool,
}

/// Returns the devices by their indexes in the snapshot, the annotated device of each process, and the size below which
/// freed blocks are left out.
fn arrange(
    contents: SnapshotContents,
    min_block: Option<u64>,
) -> (Vec<Option<SnapshotDevice>>, Vec<AnnotatedDevice>, u64) {
    let (mut devices, mut annotated): (Vec<Option<SnapshotDevice>>, Vec<AnnotatedDevice>) = Default::default();
    let (mut kept, min_size) = kept_blocks::select(&contents.sizes, contents.live, min_block);
    for (process, (of_process, last_listing)) in contents.devices.into_iter().zip(contents.last_listings).enumerate() {
        let are_numbers = of_process.keys().all(|device| (EventKind::OWN_DEVICE..MAX_DEVICES).contains(device));
        let base = devices.len();
        let (mut process_memory, mut first) = (None, None);
        for (number, memory) in of_process {
            let mut device = SnapshotDevice::new(process, number, memory, last_listing);
            if number == EventKind::OWN_DEVICE {
                device.kept = core::mem::take(&mut kept[process]);
                process_memory = Some(device);
                continue;
            }
            let index =
                usize::try_from(number).ok().filter(|_| are_numbers).map_or(devices.len(), |number| base + number);
            devices.resize_with(devices.len().max(index), || None);
            first.get_or_insert(index);
            devices.push(Some(device));
        }
        let is_process_memory = process_memory.is_some();
        let index = first.filter(|_| !is_process_memory).unwrap_or(devices.len());
        if is_process_memory || first.is_none() {
            devices.push(process_memory);
        }
        annotated.push(AnnotatedDevice { index, is_process_memory });
    }
    (devices, annotated, min_size)
}

struct PytorchSnapshot<'s, 'a, 'o> {
    source: &'s Source<'a>,
    pickle: Pickle<'o>,
    /// By process.
    stacks: Vec<StackWriter>,
    pools: HashMap<u64, MemoId>,
}

impl PytorchSnapshot<'_, '_, '_> {
    /// Writes the events of a device. It then has the memory that is live at the end.
    fn trace(&mut self, device: &mut SnapshotDevice) -> Result<(), ExportError> {
        let Self { source, pickle, stacks, pools } = self;
        let begin = source.options().part.range.as_ref().map_or(0, |range| range.start);
        let mut changes = ChangeReader::of(&source.processes()[device.process]);
        let stacks = &mut stacks[device.process];
        stacks.set_device(device.number);
        source.visit_process_again(device.process, &mut |timed| {
            let Some(change) = changes.read(&timed) else { return Ok(()) };
            let time = u64::try_from(timed.time_ns).unwrap_or(0);
            let time_us = (time >= begin).then(|| source.wall_ns(time).div_euclid(1000));
            let mut trace = TraceWriter { pickle: &mut *pickle, stacks: &mut *stacks, pools: &mut *pools, time_us };
            Ok(device.change(timed.thread, &change, &mut trace)?)
        })
    }

    fn segments(&mut self, devices: &[Option<SnapshotDevice>]) -> Result<(), ExportError> {
        self.pickle.begin_list();
        for (index, device) in devices.iter().enumerate() {
            let Some(device) = device else { continue };
            let stacks = &mut self.stacks[device.process];
            stacks.set_device(device.number);
            let mut writer = segments::SegmentWriter { pickle: &mut self.pickle, stacks, pools: &mut self.pools };
            writer.write(device, index)?;
        }
        self.pickle.end_list();
        Ok(())
    }

    /// Writes the parts that are the same in every snapshot, the options of the recorder, and what was left out.
    fn finish(mut self, left_out: Option<&str>) -> Result<(), ExportError> {
        for key in ["host_segments", "host_traces"] {
            self.pickle.text(key);
            self.pickle.begin_list();
            self.pickle.end_list();
        }
        self.pickle.text("allocator_settings");
        self.pickle.begin_dictionary();
        self.pickle.text("recorded by");
        self.pickle.text(concat!("stackweave ", env!("CARGO_PKG_VERSION")));
        self.pickle.text("program");
        self.pickle.text(&self.source.title());
        if let Some(left_out) = left_out {
            self.pickle.text("left out");
            self.pickle.text(left_out);
        }
        for process in self.source.processes().iter().take(1) {
            for (name, value) in &process.start().options {
                self.pickle.text(name);
                self.pickle.text(value);
            }
        }
        self.pickle.end_dictionary();
        self.pickle.end_dictionary();
        Ok(self.pickle.finish()?)
    }
}

//! `PyTorch`'s memory snapshot, as `torch.cuda.memory._dump_snapshot` writes it: for its memory viewer and `_memory_viz.py`.
//!
//! A device of the recording is the device of that number in the snapshot; the process's own memory is the device behind the
//! last one, as in `torch.profiler`, for the viewer shows nothing else. Further processes follow behind that.
//!
//! The recording is read once to know which devices there are and where their blocks lie, and once more for each of them.

mod annotations;
mod pickle;
mod ranges;
mod read;
mod segments;
mod stacks;
mod trace;

use std::collections::{BTreeMap, HashMap};
use std::io::Write;

use stackweave_core::EventKind;

use self::pickle::{Pickle, Shared};
use self::read::{Changes, Found};
use self::stacks::Stacks;
use self::trace::{Device, Trace};
use crate::error::ExportError;
use crate::source::Source;

/// Devices have their own numbers, unless these are beyond what any machine has.
const MOST_DEVICES: i64 = 256;

pub(crate) fn write(source: &Source<'_>, out: &mut dyn Write) -> Result<(), ExportError> {
    let found = read::find(source)?;
    if found.devices.iter().all(BTreeMap::is_empty) {
        return Err(ExportError::NotThis(
            "the recording has no events of memory, which a snapshot is made of".to_owned(),
        ));
    }
    let has_names = found.has_names;
    let (mut devices, own) = placed(found);
    let stacks = source.processes().iter().map(|process| Stacks::new(source, process)).collect();
    let mut snapshot = Snapshot { source, pickle: Pickle::new(out), stacks, pools: HashMap::new() };
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
        annotations::write(source, &own, &mut snapshot.pickle)?;
    }
    snapshot.pickle.end_list();
    snapshot.finish()
}

/// The devices by their places in the snapshot, and the places of the processes' own memory.
fn placed(found: Found) -> (Vec<Option<Device>>, Vec<usize>) {
    let (mut devices, mut own): (Vec<Option<Device>>, Vec<usize>) = Default::default();
    for (process, of_process) in found.devices.into_iter().enumerate() {
        let are_numbers = of_process.keys().all(|device| (EventKind::OWN_DEVICE..MOST_DEVICES).contains(device));
        let base = devices.len();
        let mut own_memory = None;
        for (number, touched) in of_process {
            let device = Device::new(process, number, touched.segments());
            if number == EventKind::OWN_DEVICE {
                own_memory = Some(device);
                continue;
            }
            let place =
                usize::try_from(number).ok().filter(|_| are_numbers).map_or(devices.len(), |number| base + number);
            devices.resize_with(devices.len().max(place), || None);
            devices.push(Some(device));
        }
        own.push(devices.len());
        devices.push(own_memory);
    }
    (devices, own)
}

struct Snapshot<'s, 'a, 'o> {
    source: &'s Source<'a>,
    pickle: Pickle<'o>,
    /// By process.
    stacks: Vec<Stacks>,
    pools: HashMap<u64, Shared>,
}

impl Snapshot<'_, '_, '_> {
    /// Writes the events of a device, and leaves in it what is live at the end.
    fn trace(&mut self, device: &mut Device) -> Result<(), ExportError> {
        let Self { source, pickle, stacks, pools } = self;
        let begin = source.options().part.range.as_ref().map_or(0, |range| range.start);
        let mut changes = Changes::of(&source.processes()[device.process]);
        let stacks = &mut stacks[device.process];
        source.visit_process_again(device.process, &mut |timed| {
            let Some(change) = changes.of_event(&timed) else { return Ok(()) };
            let time = u64::try_from(timed.time_ns).unwrap_or(0);
            let time_us = (time >= begin).then(|| source.wall_ns(time).div_euclid(1000));
            let mut trace = Trace { pickle: &mut *pickle, stacks: &mut *stacks, pools: &mut *pools, time_us };
            Ok(device.change(timed.thread, &change, &mut trace)?)
        })
    }

    fn segments(&mut self, devices: &[Option<Device>]) -> Result<(), ExportError> {
        self.pickle.begin_list();
        for (place, device) in devices.iter().enumerate() {
            let Some(device) = device else { continue };
            let stacks = &mut self.stacks[device.process];
            let mut writer = segments::Writer { pickle: &mut self.pickle, stacks, pools: &mut self.pools };
            writer.write(device, place)?;
        }
        self.pickle.end_list();
        Ok(())
    }

    /// Writes what is the same for every snapshot, and what the recorder was told.
    fn finish(mut self) -> Result<(), ExportError> {
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

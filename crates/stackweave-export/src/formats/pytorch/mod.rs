//! `PyTorch`'s memory snapshot, as `torch.cuda.memory._dump_snapshot` writes it: for its memory viewer and `_memory_viz.py`.
//!
//! A device of the recording is the device of that number in the snapshot; the process's own memory, where it was recorded, is
//! the device behind the last one, as in `torch.profiler`, for the viewer shows nothing else. Further processes follow behind
//! that.
//!
//! What the allocator of a host tells is an entry each, as in `PyTorch`'s own history, and the segments are those of its last
//! account. Of other memory the entries are made of what comes and goes, and the segments of where blocks lie.
//!
//! The recording is read once to know which devices there are and where their blocks lie, and once more for each of them.

mod account;
mod annotations;
mod host;
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
        return Err(ExportError::Unsupported(
            "the recording has no events of memory, which a snapshot is made of".to_owned(),
        ));
    }
    let has_names = found.has_names;
    let (mut devices, places) = placed(found);
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
        annotations::write(source, &places, &mut snapshot.pickle)?;
    }
    snapshot.pickle.end_list();
    snapshot.finish()
}

/// Where the annotations of a process are.
struct Place {
    /// The place of its own memory, or of its first device.
    device: usize,
    /// Whether its own memory was recorded.
    is_own: bool,
}

/// The devices by their places in the snapshot, and the places of the processes.
fn placed(found: Found) -> (Vec<Option<Device>>, Vec<Place>) {
    let (mut devices, mut places): (Vec<Option<Device>>, Vec<Place>) = Default::default();
    for (process, (of_process, counts)) in found.devices.into_iter().zip(found.accounts).enumerate() {
        let are_numbers = of_process.keys().all(|device| (EventKind::OWN_DEVICE..MOST_DEVICES).contains(device));
        let base = devices.len();
        let (mut own_memory, mut first) = (None, None);
        for (number, memory) in of_process {
            let device = Device::new(process, number, memory, counts);
            if number == EventKind::OWN_DEVICE {
                own_memory = Some(device);
                continue;
            }
            let place =
                usize::try_from(number).ok().filter(|_| are_numbers).map_or(devices.len(), |number| base + number);
            devices.resize_with(devices.len().max(place), || None);
            first.get_or_insert(place);
            devices.push(Some(device));
        }
        let is_own = own_memory.is_some();
        let device = first.filter(|_| !is_own).unwrap_or(devices.len());
        if is_own || first.is_none() {
            devices.push(own_memory);
        }
        places.push(Place { device, is_own });
    }
    (devices, places)
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

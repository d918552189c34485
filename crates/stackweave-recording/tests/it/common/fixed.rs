//! A small constant section that contains every element of the format.

use stackweave_core::{CodeAddress, CodeId, EventKind, Field, FieldType, RawFrame, Role};
use stackweave_recording::clock::{ClockPoint, ClockSource};
use stackweave_recording::events;
use stackweave_recording::file::{
    Encoded, Encoder, EndReason, LossReason, Lost, ProcessStart, RecordingMode, SectionEnd,
};

use super::{Process, stack_table};

fn python(code: u32, instruction: u32) -> RawFrame {
    RawFrame::python(CodeId::new(code).unwrap(), instruction, code == 1)
}

pub fn fixed_start() -> ProcessStart {
    ProcessStart {
        pid: 4242,
        parent_pid: 4200,
        host: "host".into(),
        boot_id: "0b5c".into(),
        executable: "/usr/bin/python3".into(),
        command_line: vec!["python3".into(), "größe.py".into()],
        python: Some("3.13.0".into()),
        stackweave_version: "0.1.0".into(),
        started_wall_ns: 1_700_000_000_000_000_000,
        started_monotonic_ns: 5_000_000_000,
        clock: ClockSource::Tsc,
        ticks_per_second: 2_400_000_000,
        thread: 1,
        forked_from: Some(4200),
        mode: RecordingMode::Whole,
        options: vec![("user".into(), "value".into())],
        // Files of version 1 do not have the user or the machine.
        ..ProcessStart::default()
    }
}

/// Declares built-in kinds, and one with every type of field that files have.
fn declare(encoder: &mut Encoder) {
    let known = [events::BEGIN, events::END, events::ALLOCATE, events::FREE, events::COUNTER];
    for kind in known.iter().chain([&events::INSTANT_WITH]) {
        encoder.kind(kind).unwrap();
    }
    let field = |field_type: FieldType| Field { name: field_type.as_str().into(), field_type };
    let fields: Vec<_> = FieldType::ALL.into_iter().filter(|of| *of != FieldType::Call).map(field).collect();
    encoder.kind(&EventKind { name: "everything".into(), role: Role::Instant, fields: fields.into() }).unwrap();
}

/// Returns calls, allocations and a counter: enough to be compressed.
fn main_thread() -> Vec<u64> {
    let counter = stackweave_store::label("queue", "", 0).unwrap().to_bits();
    let mut words = Vec::new();
    for call in 0..20_u64 {
        let ticks = 1000 + call * 700;
        let function = u32::try_from(call % 3).unwrap() + 1;
        words.extend([ticks << 8 | 1, python(function, 0).to_bits()]);
        words.extend([(ticks + 90) << 8 | 3, 0x7f00_0000_4000 + call % 8 * 64, 48 + call % 2 * 16, call % 2 + 3]);
        words.extend([(ticks + 120) << 8 | 4, 0x7f00_0000_4000 + call % 8 * 64]);
        if call % 10 == 0 {
            let value = f64::from(function) * 1.5;
            words.extend([(ticks + 150) << 8 | 5, counter, value.to_bits()]);
        }
        words.extend([(ticks + 200 + call * call) << 8 | 2]);
    }
    words
}

/// Returns events with every type of field, some with extreme values.
fn other_thread() -> Vec<u64> {
    let details = u64::from_le_bytes(*b"{\"a\": 1}");
    let script = RawFrame::script(1, 12).to_bits();
    let exact = RawFrame::native(CodeAddress::instruction_pointer(0x10_0040)).to_bits();
    #[rustfmt::skip]
    let words = vec![
        2000 << 8 | 6, script, 5, 8, details,
        1990 << 8 | 7, 4, exact, u64::MAX, 1 << 63, (-0.0_f64).to_bits(), u64::MAX, 1 << 55, 3, 0x0063_6261,
        3000 << 8 | 7, 0, 0, 0, u64::MAX, f64::INFINITY.to_bits(), 0, 0, 0,
    ];
    words
}

/// Returns the whole section.
pub fn fixed_section() -> Vec<u8> {
    let stacks = stack_table();
    let native = RawFrame::native(CodeAddress::return_address(0x20_1234));
    // Stacks 2, 3 and 4, then 5 and 6: the callers of a stack come first.
    stacks.intern(&[native, python(3, 8), python(1, 4)]).unwrap();
    stacks.intern(&[RawFrame::script(1, 12), python(1, 6)]).unwrap();
    let process = Process { has_extra_frames: true };
    let mut file = Vec::new();
    let mut encoder = Encoder::new(stacks);
    encoder.start(&fixed_start(), &mut file);
    encoder.clock(&ClockPoint { ticks: 0, monotonic_ns: 5_000_000_000, wall_ns: 17, width_ns: 40 }, &mut file);
    declare(&mut encoder);
    for (thread, tid, name, words) in [(1, 4242, "main", main_thread()), (2, 4243, "", other_thread())] {
        let mut blocks = Encoded::default();
        encoder.thread(thread, tid, name);
        encoder.events(thread, &words, &process, &mut blocks);
        file.extend([blocks.definitions, blocks.events].concat());
    }
    encoder.describe_pending(&process, &mut file);
    let lost = Lost { reason: LossReason::Full, count: 3, thread: 2, first_ticks: 2500, last_ticks: 2600 };
    encoder.lost(&lost, &mut file);
    encoder.end(&SectionEnd { events: 85, lost: 3, residual_ns: 12, reason: EndReason::Stopped }, &mut file);
    file
}

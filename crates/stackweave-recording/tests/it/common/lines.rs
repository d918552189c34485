//! The content of a file as lines of JSON, as `reader.py` prints them.

use stackweave_core::{CodeAddress, FieldType, Module};
use stackweave_recording::clock::ClockPoint;
use stackweave_recording::file::{
    BlockError, BlockKind, Dictionary, EventBuffer, Lost, ProcessStart, RawEvent, RecordedFrame, RecordedName,
    SectionEnd,
};

use super::blocks;

/// Returns the lines of a file: the content of each block, and at the end of each section its threads and events.
pub fn lines(file: &[u8]) -> Result<Vec<String>, BlockError> {
    let mut lines = Vec::new();
    let mut section = Section::default();
    for (header, payload) in blocks(file)? {
        match header.kind {
            BlockKind::Start => {
                section.finish(&mut lines);
                lines.push(start(&ProcessStart::parse(&payload)?));
            }
            BlockKind::Definitions => section.dictionary.add(&payload)?,
            BlockKind::Events => {
                let mut events = EventBuffer::new();
                events.decode(&payload, &section.dictionary)?;
                section.events.push(events);
            }
            BlockKind::Clock => {
                let ClockPoint { ticks, monotonic_ns, wall_ns, width_ns } = ClockPoint::parse(&payload)?;
                lines.push(format!("[\"clock\",{ticks},{monotonic_ns},{wall_ns},{width_ns}]"));
            }
            BlockKind::Lost => {
                let Lost { reason, count, thread, first_ticks, last_ticks } = Lost::parse(&payload)?;
                lines.push(format!("[\"lost\",{},{count},{thread},{first_ticks},{last_ticks}]", reason as u8));
            }
            BlockKind::End => {
                let SectionEnd { reason, events, lost, residual_ns } = SectionEnd::parse(&payload)?;
                lines.push(format!("[\"end\",{},{events},{lost},{residual_ns}]", reason as u8));
            }
            BlockKind::Other(number) => lines.push(format!("[\"unknown\",{number}]")),
        }
    }
    section.finish(&mut lines);
    Ok(lines)
}

#[derive(Default)]
struct Section {
    dictionary: Dictionary,
    events: Vec<EventBuffer>,
}

impl Section {
    fn finish(&mut self, lines: &mut Vec<String>) {
        let Self { dictionary, events } = std::mem::take(self);
        let thread = |number: u32, tid: u32, name: &str| format!("[\"thread\",{number},{tid},{}]", text(name));
        lines.extend(dictionary.threads().map(|found| thread(found.number, found.tid, &found.name)));
        for buffer in &events {
            lines.extend(buffer.iter().map(|found| event(buffer.thread(), found, &dictionary)));
        }
    }
}

fn start(start: &ProcessStart) -> String {
    let options = start.options.iter().map(|(name, value)| format!("[{},{}]", text(name), text(value)));
    let fields = [
        start.pid.to_string(),
        start.parent_pid.to_string(),
        text(&start.host),
        text(&start.boot_id),
        text(&start.executable),
        list(start.command_line.iter().map(|argument| text(argument))),
        start.python.as_ref().map_or_else(null, |python| text(python)),
        text(&start.stackweave_version),
        start.started_wall_ns.to_string(),
        start.started_monotonic_ns.to_string(),
        (start.clock as u8).to_string(),
        start.ticks_per_second.to_string(),
        start.thread.to_string(),
        optional(start.forked_from),
        (start.mode as u8).to_string(),
        list(options),
    ];
    format!("[\"start\",{}]", fields.join(","))
}

fn event(thread: u32, event: RawEvent<'_>, dictionary: &Dictionary) -> String {
    let kind = dictionary.kind(event.kind).unwrap();
    let mut values: Vec<String> = Vec::new();
    for (field, value) in kind.fields.iter().zip(event.words) {
        values.push(match field.field_type {
            FieldType::Frame => frame(u32::try_from(*value).unwrap(), dictionary),
            FieldType::Stack => {
                list(dictionary.frames_of(u32::try_from(*value).unwrap()).map(|number| frame(number, dictionary)))
            }
            FieldType::Signed => value.cast_signed().to_string(),
            _ => value.to_string(),
        });
    }
    values.extend(event.bytes.map(hex));
    format!("[\"event\",{thread},{},{},{}]", event.ticks, text(&kind.name), list(values))
}

fn frame(number: u32, dictionary: &Dictionary) -> String {
    let Some(frame) = dictionary.frame(number) else { return null() };
    let fields = match *frame {
        RecordedFrame::Native { address, module } => {
            let module = module.and_then(|number| dictionary.module(number)).map_or_else(null, module_line);
            return format!("[{},{},{module}]", CodeAddress::address(address), u8::from(address.is_exact()));
        }
        RecordedFrame::Python { code, instruction, entered_from_native } => {
            format!("\"python\",{code},{instruction},{}", u8::from(entered_from_native))
        }
        RecordedFrame::Script { source, word } => format!("\"script\",{source},{word}"),
        RecordedFrame::Label { label } => format!("\"label\",{label}"),
    };
    let names = dictionary.names(number).iter().map(|found| name(found, dictionary));
    format!("[{fields},{}]", list(names))
}

fn module_line(module: &Module) -> String {
    let build_id = module.build_id.as_ref().map_or_else(String::new, ToString::to_string);
    let path = text(&module.path.to_string_lossy());
    format!("[{path},\"{build_id}\",{},{},{}]", module.bias, module.start, module.end)
}

fn name(name: &RecordedName, dictionary: &Dictionary) -> String {
    let string = |number: u32| text(dictionary.string(number).unwrap());
    let position = name.position;
    let numbers =
        [name.first_line, position.line, position.end_line, position.column, position.end_column, name.module];
    format!(
        "[{},{},{},{},{},{}]",
        text(name.kind.as_str()),
        string(name.name),
        name.qualname.map_or_else(null, string),
        name.filename.map_or_else(null, string),
        numbers.map(optional).join(","),
        u8::from(name.is_inlined)
    )
}

fn null() -> String {
    "null".into()
}

fn optional(number: Option<u32>) -> String {
    number.map_or_else(null, |number| number.to_string())
}

fn list(items: impl IntoIterator<Item = String>) -> String {
    format!("[{}]", items.into_iter().collect::<Vec<_>>().join(","))
}

fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(value.into(), 16).unwrap();
    let digits: String = bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect();
    format!("\"{digits}\"")
}

fn text(text: &str) -> String {
    assert!(!text.contains(['"', '\\']) && !text.contains(char::is_control), "{text} needs escapes");
    format!("\"{text}\"")
}

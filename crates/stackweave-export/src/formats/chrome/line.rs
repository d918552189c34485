//! One trace event as text.

use std::io::Write;

use crate::activity::Details;

/// An event that is being written. Values of bytes are JSON already.
#[derive(Clone, Debug)]
pub(super) struct EventLine(Vec<u8>);

impl EventLine {
    pub(super) fn new(phase: u8, pid: u32, tid: u32) -> Self {
        let mut text = Vec::with_capacity(256);
        text.extend_from_slice(b"{\"ph\":\"");
        text.push(phase);
        text.extend_from_slice(b"\",\"pid\":");
        put_number(&mut text, pid.into());
        text.extend_from_slice(b",\"tid\":");
        put_number(&mut text, tid.into());
        Self(text)
    }

    fn key(&mut self, key: &str) {
        self.0.extend_from_slice(b",\"");
        self.0.extend_from_slice(key.as_bytes());
        self.0.extend_from_slice(b"\":");
    }

    pub(super) fn raw(&mut self, key: &str, value: &[u8]) -> &mut Self {
        self.key(key);
        self.0.extend_from_slice(value);
        self
    }

    pub(super) fn text(&mut self, key: &str, value: &str) -> &mut Self {
        self.key(key);
        write_string(&mut self.0, value);
        self
    }

    /// Writes nanoseconds as microseconds, exactly.
    pub(super) fn time(&mut self, key: &str, ns: u64) -> &mut Self {
        self.key(key);
        put_number(&mut self.0, ns / 1_000);
        let rest = ns % 1_000;
        if rest != 0 {
            let digits = [rest / 100, rest / 10 % 10, rest % 10].map(|digit| b'0' + digit.to_le_bytes()[0]);
            self.0.push(b'.');
            self.0.extend_from_slice(&digits);
        }
        self
    }

    /// Begins arguments with a single member.
    pub(super) fn open_args(&mut self, key: &str) {
        self.key("args");
        self.0.extend_from_slice(b"{\"");
        self.0.extend_from_slice(key.as_bytes());
        self.0.extend_from_slice(b"\":");
    }

    pub(super) fn value(&mut self) -> &mut Vec<u8> {
        &mut self.0
    }

    pub(super) fn close_args(&mut self) {
        self.0.push(b'}');
    }

    /// Connects the event to the other events of this flow; the first one starts the flow.
    pub(super) fn flow(&mut self, number: u64, is_first: bool) {
        self.key("bind_id");
        let written = write!(self.0, "\"{number:#x}\"");
        debug_assert!(written.is_ok(), "writing to memory can't fail");
        if !is_first {
            self.raw("flow_in", b"true");
        }
        self.raw("flow_out", b"true");
    }

    /// Writes the arguments: the event's own ones, members of objects, and whether it is unfinished. The event's own
    /// arguments come first.
    pub(super) fn args(&mut self, members: &[&[u8]], details: &Details, is_unfinished: bool) {
        let unfinished: &[u8] = if is_unfinished { b"\"unfinished\":true" } else { b"" };
        let object = details.object();
        let has_detail = |key: &str| object.contains_key(key);
        let is_clear = !["file", "module", "weight", "called from"].into_iter().any(has_detail);
        let members = if is_clear { members } else { &[] };
        let unfinished = if has_detail("unfinished") { b"" } else { unfinished };
        let details = details.as_str().map_or("", |text| &text[1..text.len() - 1]).as_bytes();
        let mut before: &[u8] = b",\"args\":{";
        let parts = [details].into_iter().chain(members.iter().copied()).chain([unfinished]);
        for part in parts.filter(|part| !part.is_empty()) {
            self.0.extend_from_slice(before);
            self.0.extend_from_slice(part);
            before = b",";
        }
        if before == b"," {
            self.0.push(b'}');
        }
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        self.0.push(b'}');
        self.0
    }
}

/// Writes a JSON string, with its quotes.
pub(super) fn write_string(out: &mut Vec<u8>, text: &str) {
    let written = serde_json::to_writer(out, text);
    debug_assert!(written.is_ok(), "writing to memory can't fail");
}

fn put_number(out: &mut Vec<u8>, number: u64) {
    let written = write!(out, "{number}");
    debug_assert!(written.is_ok(), "writing to memory can't fail");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_exact_decimals() {
        let mut line = EventLine::new(b'X', 1, 2);
        line.time("ts", 1_234_567).time("dur", 1_050).time("a", 0).time("b", u64::MAX).time("c", 7);
        let text = String::from_utf8(line.finish()).unwrap();
        let times = r#""ts":1234.567,"dur":1.050,"a":0,"b":18446744073709551.615,"c":0.007}"#;
        assert_eq!(text, format!(r#"{{"ph":"X","pid":1,"tid":2,{times}"#));
    }
}

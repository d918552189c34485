//! Parses the lines of a reply.

use stackweave_capture::stack_query::{REPLY_VERSION, ReplyLine};
use stackweave_core::{CodeAddress, PART_SEPARATOR, Position, SourceLocation, printable};

use super::report::{ReportedFrame, ReportedThread, SelfReport};

/// The reply, as far as it has been written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ParsedReply {
    Complete(SelfReport),
    /// Its last line is not written yet.
    Partial,
    Refused(String),
    Unreadable(String),
}

/// Parses a reply.
pub(super) fn read(bytes: &[u8]) -> ParsedReply {
    if !is_complete(bytes) {
        return ParsedReply::Partial;
    }
    let text = String::from_utf8_lossy(bytes);
    let mut reply = SelfReport { process: 0, threads: Vec::new(), more: 0 };
    for line in text.lines() {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let known = ReplyLine::from_word(word).and_then(|line| add(&mut reply, line, rest));
        match known {
            Some(ParsedLine::ReplyLine) => {}
            Some(ParsedLine::Refusal) => return ParsedReply::Refused(printable(rest)),
            None => return ParsedReply::Unreadable(format!("{line:?}")),
        }
    }
    ParsedReply::Complete(reply)
}

fn is_complete(bytes: &[u8]) -> bool {
    let lines = bytes.strip_suffix(b"\n").and_then(|lines| lines.strip_suffix(ReplyLine::End.as_str().as_bytes()));
    lines.is_some_and(|lines| lines.ends_with(b"\n"))
}

enum ParsedLine {
    ReplyLine,
    Refusal,
}

/// Adds the contents of a line; `None` if it is malformed.
fn add(reply: &mut SelfReport, line: ReplyLine, rest: &str) -> Option<ParsedLine> {
    match line {
        ReplyLine::Answer => {
            let (form, process) = rest.split_once(' ')?;
            (form.parse() == Ok(REPLY_VERSION)).then_some(())?;
            reply.process = process.parse().ok()?;
        }
        ReplyLine::Thread => {
            let (task, name) = rest.split_once(' ')?;
            let (task, name) = (task.parse().ok()?, name.to_owned());
            reply.threads.push(ReportedThread { task, name, state: '?', frames: Vec::new(), problem: None });
        }
        ReplyLine::Cut => reply.threads.last_mut()?.problem = Some(printable(rest)),
        ReplyLine::Silent => {
            reply.threads.last_mut()?.problem = Some(format!("it has not answered: {}", printable(rest)));
        }
        ReplyLine::More => reply.more = rest.parse().ok()?,
        ReplyLine::Refused => return Some(ParsedLine::Refusal),
        ReplyLine::End => {}
        ReplyLine::Return | ReplyLine::Exact | ReplyLine::Python | ReplyLine::Script | ReplyLine::Label => {
            reply.threads.last_mut()?.frames.push(frame(line, rest)?);
        }
    }
    Some(ParsedLine::ReplyLine)
}

fn frame(line: ReplyLine, rest: &str) -> Option<ReportedFrame> {
    let address = || u64::from_str_radix(rest, 16).ok();
    Some(match line {
        ReplyLine::Return => ReportedFrame::Native(CodeAddress::return_address(address()?)),
        ReplyLine::Exact => ReportedFrame::Native(CodeAddress::instruction_pointer(address()?)),
        ReplyLine::Python => python(rest),
        ReplyLine::Label => ReportedFrame::Label(rest.to_owned()),
        _ => ReportedFrame::Script(rest.to_owned()),
    })
}

/// Parses a Python frame. If its parts are not known, the text that was written instead is its name.
fn python(rest: &str) -> ReportedFrame {
    let parts: Vec<&str> = rest.split(PART_SEPARATOR).collect();
    let [name, qualname, filename, line, first_line] = parts[..] else {
        return ReportedFrame::Script(rest.to_owned());
    };
    let line = line.parse().ok();
    ReportedFrame::Python(SourceLocation {
        name: name.into(),
        qualname: (!qualname.is_empty()).then(|| qualname.into()),
        filename: filename.into(),
        first_line: first_line.parse().ok(),
        position: Position { line, ..Position::default() },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = "stackweave-answer 1 7\nthread 7 main thread\nx 10\nr ff\np f\u{1f}C.f\u{1f}x.py\u{1f}3\u{1f}1\n\
                         thread 9 w\np py:^2+0\nl step\ncut limit reached\nthread 10 \nsilent it is stopped\nmore 2\nend\n";

    #[test]
    fn a_reply_is_parsed_line_by_line() {
        let ParsedReply::Complete(reply) = read(WHOLE.as_bytes()) else { panic!("{:?}", read(WHOLE.as_bytes())) };
        assert_eq!((reply.process, reply.more, reply.threads.len()), (7, 2, 3));
        let location = SourceLocation {
            name: "f".into(),
            qualname: Some("C.f".into()),
            filename: "x.py".into(),
            first_line: Some(1),
            position: Position { line: Some(3), ..Position::default() },
        };
        let [main, worker, stopped] = &reply.threads[..] else { panic!() };
        assert_eq!((main.task, &*main.name, &main.problem), (7, "main thread", &None));
        let expected = [
            ReportedFrame::Native(CodeAddress::instruction_pointer(0x10)),
            ReportedFrame::Native(CodeAddress::return_address(0xff)),
            ReportedFrame::Python(location),
        ];
        assert_eq!(main.frames, expected);
        let expected = [ReportedFrame::Script("py:^2+0".into()), ReportedFrame::Label("step".into())];
        assert_eq!((&worker.frames[..], worker.problem.as_deref()), (&expected[..], Some("limit reached")));
        assert_eq!(stopped.problem.as_deref(), Some("it has not answered: it is stopped"));
    }

    #[test]
    fn a_reply_cut_anywhere_is_not_complete() {
        for end in 0..WHOLE.len() {
            assert_eq!(read(&WHOLE.as_bytes()[..end]), ParsedReply::Partial, "{end}");
        }
    }

    #[test]
    fn refusals_and_other_versions_are_reported() {
        let refused = read(b"stackweave-answer 1 7\nrefused another dump is being written\nend\n");
        assert_eq!(refused, ParsedReply::Refused("another dump is being written".into()));
        let refused = read(b"stackweave-answer 1 7\nrefused \x1b[2Jno\nend\n");
        assert_eq!(refused, ParsedReply::Refused("\u{fffd}[2Jno".into()));
        for text in ["stackweave-answer 2 7\nend\n", "stackweave-answer 1 7\nx 10\nend\n", "nonsense\nend\n"] {
            assert!(matches!(read(text.as_bytes()), ParsedReply::Unreadable(_)), "{text}");
        }
    }
}

//! The lines of an answer.

use stackweave_capture::question::{ANSWER_FORM, Line};
use stackweave_core::{CodeAddress, PART_SEPARATOR, Position, SourceLocation, printable};

use super::report::{ReportedFrame, ReportedThread, SelfReport};

/// What has been written so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Read {
    Whole(SelfReport),
    /// Its last line is missing yet.
    Partial,
    Refused(String),
    Unreadable(String),
}

/// Reads an answer.
pub(super) fn read(bytes: &[u8]) -> Read {
    if !is_whole(bytes) {
        return Read::Partial;
    }
    let text = String::from_utf8_lossy(bytes);
    let mut answer = SelfReport { process: 0, threads: Vec::new(), more: 0 };
    for line in text.lines() {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let known = Line::from_word(word).and_then(|line| add(&mut answer, line, rest));
        match known {
            Some(Added::Line) => {}
            Some(Added::Refusal) => return Read::Refused(printable(rest)),
            None => return Read::Unreadable(format!("{line:?}")),
        }
    }
    Read::Whole(answer)
}

fn is_whole(bytes: &[u8]) -> bool {
    let lines = bytes.strip_suffix(b"\n").and_then(|lines| lines.strip_suffix(Line::End.as_str().as_bytes()));
    lines.is_some_and(|lines| lines.ends_with(b"\n"))
}

enum Added {
    Line,
    Refusal,
}

/// Adds what a line says; `None` if that is nothing known.
fn add(answer: &mut SelfReport, line: Line, rest: &str) -> Option<Added> {
    match line {
        Line::Answer => {
            let (form, process) = rest.split_once(' ')?;
            (form.parse() == Ok(ANSWER_FORM)).then_some(())?;
            answer.process = process.parse().ok()?;
        }
        Line::Thread => {
            let (task, name) = rest.split_once(' ')?;
            let (task, name) = (task.parse().ok()?, name.to_owned());
            answer.threads.push(ReportedThread { task, name, state: '?', frames: Vec::new(), problem: None });
        }
        Line::Cut => answer.threads.last_mut()?.problem = Some(printable(rest)),
        Line::Silent => answer.threads.last_mut()?.problem = Some(format!("it has not answered: {}", printable(rest))),
        Line::More => answer.more = rest.parse().ok()?,
        Line::Refused => return Some(Added::Refusal),
        Line::End => {}
        Line::Return | Line::Exact | Line::Python | Line::Script | Line::Label => {
            answer.threads.last_mut()?.frames.push(frame(line, rest)?);
        }
    }
    Some(Added::Line)
}

fn frame(line: Line, rest: &str) -> Option<ReportedFrame> {
    let address = || u64::from_str_radix(rest, 16).ok();
    Some(match line {
        Line::Return => ReportedFrame::Native(CodeAddress::return_address(address()?)),
        Line::Exact => ReportedFrame::Native(CodeAddress::instruction_pointer(address()?)),
        Line::Python => python(rest),
        Line::Label => ReportedFrame::Label(rest.to_owned()),
        _ => ReportedFrame::Script(rest.to_owned()),
    })
}

/// A Python frame; where its parts are not known, by whatever was written instead.
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
    fn an_answer_is_read_line_by_line() {
        let Read::Whole(answer) = read(WHOLE.as_bytes()) else { panic!("{:?}", read(WHOLE.as_bytes())) };
        assert_eq!((answer.process, answer.more, answer.threads.len()), (7, 2, 3));
        let location = SourceLocation {
            name: "f".into(),
            qualname: Some("C.f".into()),
            filename: "x.py".into(),
            first_line: Some(1),
            position: Position { line: Some(3), ..Position::default() },
        };
        let [main, worker, stopped] = &answer.threads[..] else { panic!() };
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
    fn what_is_cut_anywhere_is_not_whole() {
        for end in 0..WHOLE.len() {
            assert_eq!(read(&WHOLE.as_bytes()[..end]), Read::Partial, "{end}");
        }
    }

    #[test]
    fn refusals_and_other_forms_are_told() {
        let refused = read(b"stackweave-answer 1 7\nrefused another dump is being written\nend\n");
        assert_eq!(refused, Read::Refused("another dump is being written".into()));
        let refused = read(b"stackweave-answer 1 7\nrefused \x1b[2Jno\nend\n");
        assert_eq!(refused, Read::Refused("\u{fffd}[2Jno".into()));
        for text in ["stackweave-answer 2 7\nend\n", "stackweave-answer 1 7\nx 10\nend\n", "nonsense\nend\n"] {
            assert!(matches!(read(text.as_bytes()), Read::Unreadable(_)), "{text}");
        }
    }
}

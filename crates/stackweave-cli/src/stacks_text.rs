//! The stacks of a process, as text.

use std::fmt::Write as _;
use std::io::{self, Write};

use stackweave_core::{is_printable, printable, write_location};
use stackweave_profile::{CodeOrigin, Frame, FrameKind, Measure, View};
use stackweave_remote::{ProcessStacks, ThreadStack};

use crate::stacks_json::module_path;
use crate::text::shorten;

/// The number of threads of a group that are named; the others are counted.
const NAMED_THREADS: usize = 6;
/// The maximum width of a native frame's name, as in tracebacks.
const WIDEST_NAME: usize = 60;
const WIDEST_LOCATION: usize = 40;
/// The maximum width of the command line and of a thread's name.
const WIDEST_COMMAND: usize = 100;
const WIDEST_THREAD: usize = 60;

/// Threads whose stacks look the same.
struct Group<'a> {
    threads: Vec<&'a ThreadStack>,
    rows: Vec<FrameText>,
}

/// A frame as text.
#[derive(PartialEq)]
enum FrameText {
    Interpreted(String),
    Native { name: String, location: String, module: String },
}

pub(crate) fn write(out: &mut dyn Write, stacks: &ProcessStacks, all: bool, colour: bool) -> io::Result<()> {
    let paint = TextColours { colour };
    writeln!(
        out,
        "{}",
        paint.head(&format!(
            "Process {}: {}",
            stacks.process,
            one_line(&stacks.command_line.join(" "), WIDEST_COMMAND)
        ))
    )?;
    writeln!(out, "{}", summary(stacks))?;
    for group in groups(stacks, all) {
        writeln!(out)?;
        writeln!(out, "{}", paint.head(&heading(&group.threads)))?;
        write_rows(out, &group.rows, paint)?;
        if let Some(problem) = &group.threads[0].problem {
            writeln!(out, "  (cut here: {problem})")?;
        }
    }
    Ok(())
}

fn summary(stacks: &ProcessStacks) -> String {
    let mut parts = Vec::new();
    parts.extend(stacks.python.as_ref().map(|version| format!("Python {version}")));
    let count = stacks.threads.len();
    parts.push(format!("{count} thread{}, most recent call first", if count == 1 { "" } else { "s" }));
    #[expect(clippy::cast_precision_loss, reason = "rounded to a few digits for display")]
    parts.extend(
        stacks.stopped_for.map(|time| format!("stopped for {}", Measure::WallTime.text(time.as_nanos() as f64))),
    );
    parts.join(", ")
}

/// Groups threads with equal stacks; a group takes the position of its first thread.
fn groups(stacks: &ProcessStacks, all: bool) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for thread in &stacks.threads {
        let rows = rows(stacks, thread, all);
        let is_same = |group: &&mut Group<'_>| {
            let first = group.threads[0];
            group.rows == rows
                && (first.state, first.has_gil, &first.problem) == (thread.state, thread.has_gil, &thread.problem)
        };
        match groups.iter_mut().find(is_same) {
            Some(group) => group.threads.push(thread),
            None => groups.push(Group { threads: vec![thread], rows }),
        }
    }
    groups
}

/// Returns the frames that are shown, innermost first.
fn rows(stacks: &ProcessStacks, thread: &ThreadStack, all: bool) -> Vec<FrameText> {
    let origins: Vec<CodeOrigin> =
        thread.frames.iter().map(|frame| CodeOrigin::of(frame, &module_path(stacks, frame))).collect();
    let kinds: Vec<FrameKind> = thread.frames.iter().map(|frame| frame.kind).collect();
    let shown = shown(&origins, &kinds, all);
    thread.frames.iter().zip(shown).filter(|(_, is_shown)| *is_shown).map(|(frame, _)| row(frame)).collect()
}

/// Decides for each frame, innermost first, whether it is shown. The reader must see what the thread is doing: the
/// innermost frame outside the interpreter is always shown, and the innermost interpreted frame too.
fn shown(origins: &[CodeOrigin], kinds: &[FrameKind], all: bool) -> Vec<bool> {
    let view = View { show_all: all, ..View::default() };
    let mut is_library = false;
    let mut shown: Vec<bool> = origins.iter().rev().map(|origin| view.shows_origin(*origin, &mut is_library)).collect();
    shown.reverse();
    let innermost = origins.iter().position(|origin| *origin != CodeOrigin::Interpreter);
    let interpreted = kinds.iter().position(|kind| *kind != FrameKind::Native);
    let always = if innermost.is_none() && interpreted.is_none() { Some(0) } else { innermost };
    for index in [always, interpreted].into_iter().flatten() {
        if let Some(is_shown) = shown.get_mut(index) {
            *is_shown = true;
        }
    }
    shown
}

fn row(frame: &Frame) -> FrameText {
    let name = frame.qualname.as_ref().unwrap_or(&frame.name);
    if frame.kind != FrameKind::Native {
        let mut text = String::new();
        let _ = write_location(&mut text, &frame.filename.as_deref().unwrap_or("<unknown>"), frame.position.line, name);
        return FrameText::Interpreted(printable(&text));
    }
    let inlined = if frame.is_inlined { ", inlined" } else { "" };
    FrameText::Native {
        name: printable(&shorten(name, WIDEST_NAME)),
        location: location(frame),
        module: frame.module.as_ref().map(|module| format!("[{}{inlined}]", printable(module))).unwrap_or_default(),
    }
}

/// Returns the file with its parent folder, and the line.
fn location(frame: &Frame) -> String {
    let Some(file) = &frame.filename else { return String::new() };
    let start = file.rmatch_indices('/').nth(1).map_or(0, |(at, _)| at + 1);
    let mut location = printable(&file[start..]);
    let length = location.chars().count();
    if length > WIDEST_LOCATION {
        let rest: String = location.chars().skip(length + 3 - WIDEST_LOCATION).collect();
        location = format!("...{rest}");
    }
    if let Some(line) = frame.position.line {
        let _ = write!(location, ":{line}");
    }
    location
}

fn heading(threads: &[&ThreadStack]) -> String {
    let first = threads[0];
    let mut text = if threads.len() == 1 { String::new() } else { format!("{} threads: ", threads.len()) };
    let word = if threads.len() == 1 { "Thread " } else { "" };
    let names = threads
        .iter()
        .take(NAMED_THREADS)
        .map(|thread| format!("{word}{} \"{}\"", thread.task, one_line(&thread.name, WIDEST_THREAD)));
    text.push_str(&names.collect::<Vec<_>>().join(", "));
    if threads.len() > NAMED_THREADS {
        let _ = write!(text, " and {} more", threads.len() - NAMED_THREADS);
    }
    let _ = write!(text, ", {}", state(first.state));
    if first.has_gil == Some(true) {
        text.push_str(", holds the GIL");
    }
    if !first.frames.iter().any(|frame| frame.kind != FrameKind::Native) && first.has_gil.is_some() {
        text.push_str(", no Python frames");
    }
    text.push(':');
    text
}

fn state(letter: char) -> String {
    match letter {
        'R' => "running".to_owned(),
        'S' | 'I' => "sleeping".to_owned(),
        'D' => "waiting in the kernel".to_owned(),
        'T' | 't' => "stopped".to_owned(),
        'Z' | 'X' => "ended".to_owned(),
        other => format!("in state {other}"),
    }
}

fn write_rows(out: &mut dyn Write, rows: &[FrameText], paint: TextColours) -> io::Result<()> {
    let width = |part: fn(&FrameText) -> &str| rows.iter().map(|row| part(row).chars().count()).max().unwrap_or(0);
    let names = width(|row| if let FrameText::Native { name, .. } = row { name } else { "" });
    let locations = width(|row| if let FrameText::Native { location, .. } = row { location } else { "" });
    for row in rows {
        match row {
            FrameText::Interpreted(text) => writeln!(out, "  {text}")?,
            FrameText::Native { name, location, module } => {
                let text = format!("  | {name:names$}  {location:locations$}  {module}");
                writeln!(out, "{}", paint.dim(text.trim_end()))?;
            }
        }
    }
    Ok(())
}

/// Returns the text within a number of columns, with each run of white space and control characters as one space.
fn one_line(text: &str, widest: usize) -> String {
    let is_between = |letter: char| letter.is_whitespace() || !is_printable(letter);
    let words: Vec<&str> = text.split(is_between).filter(|word| !word.is_empty()).collect();
    let line = words.join(" ");
    if line.chars().count() <= widest {
        return line;
    }
    let start: String = line.chars().take(widest - 1).collect();
    format!("{}\u{2026}", start.trim_end())
}

#[derive(Clone, Copy)]
struct TextColours {
    colour: bool,
}

impl TextColours {
    fn head(self, text: &str) -> String {
        self.in_code("\x1b[1m", text)
    }

    fn dim(self, text: &str) -> String {
        self.in_code("\x1b[2m", text)
    }

    fn in_code(self, code: &str, text: &str) -> String {
        if self.colour { format!("{code}{text}\x1b[0m") } else { text.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_frame_that_matters_is_always_shown() {
        use CodeOrigin::{Interpreter, Library, Program};
        use FrameKind::{Native, Python};
        // The program calls a library that waits: native code of a lock, two library frames, the program, its start.
        let origins = [Library, Interpreter, Library, Library, Program, Interpreter];
        let kinds = [Native, Native, Python, Python, Python, Python];
        assert_eq!(shown(&origins, &kinds, false), [true, false, true, true, true, false]);
        assert_eq!(shown(&origins, &kinds, true), [true; 6]);
        // Only frames that start the interpreter, as in a thread that has just begun.
        assert_eq!(shown(&[Interpreter, Interpreter], &[Native, Python], false), [false, true]);
        assert_eq!(shown(&[Interpreter, Interpreter], &[Native, Native], false), [true, false]);
        assert!(shown(&[], &[], false).is_empty());
    }

    #[test]
    fn text_is_reduced_to_one_line() {
        assert_eq!(
            one_line("python3 -c \nimport time\n\ttime.sleep(9)\n", 100),
            "python3 -c import time time.sleep(9)"
        );
        assert_eq!(one_line("a\x1b[31mb\u{85}\0c", 100), "a [31mb c");
        assert_eq!(one_line(" \n", 10), "");
        assert_eq!(one_line("größer als", 10), "größer als");
        assert_eq!(one_line("größer als das", 10), "größer al\u{2026}");
        assert_eq!(one_line("größer  als das", 8), "größer\u{2026}");
    }
}

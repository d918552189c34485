//! The stacks of a process, for people.

use std::fmt::Write as _;
use std::io::{self, Write};

use stackweave_core::{is_printable, printable, write_place};
use stackweave_profile::{Frame, FrameKind, Measure, Origin, View};
use stackweave_remote::{ProcessStacks, ThreadStack};

use crate::stacks_json::module_path;
use crate::text::shorten;

/// Threads of a group that are named; the rest is counted.
const NAMED: usize = 6;
/// Columns that a native frame's name may take, as where a traceback is shown.
const WIDEST_NAME: usize = 60;
const WIDEST_PLACE: usize = 40;
/// Columns for the words that the process was started with, and for the name of a thread.
const WIDEST_COMMAND: usize = 100;
const WIDEST_THREAD: usize = 60;

/// Threads whose stacks look the same.
struct Group<'a> {
    threads: Vec<&'a ThreadStack>,
    rows: Vec<Row>,
}

/// A frame, as it is shown.
#[derive(PartialEq)]
enum Row {
    Interpreted(String),
    Native { name: String, place: String, module: String },
}

pub(crate) fn write(out: &mut dyn Write, stacks: &ProcessStacks, all: bool, colour: bool) -> io::Result<()> {
    let paint = Paint { colour };
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
    #[expect(clippy::cast_precision_loss, reason = "for people, with a few digits")]
    parts.extend(
        stacks.stopped_for.map(|time| format!("stopped for {}", Measure::WallTime.text(time.as_nanos() as f64))),
    );
    parts.join(", ")
}

/// The threads in their order; those that look the same stand where the first of them stands.
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

/// The frames that are shown, innermost first.
fn rows(stacks: &ProcessStacks, thread: &ThreadStack, all: bool) -> Vec<Row> {
    let origins: Vec<Origin> =
        thread.frames.iter().map(|frame| Origin::of(frame, &module_path(stacks, frame))).collect();
    let kinds: Vec<FrameKind> = thread.frames.iter().map(|frame| frame.kind).collect();
    let shown = shown(&origins, &kinds, all);
    thread.frames.iter().zip(shown).filter(|(_, is_shown)| *is_shown).map(|(frame, _)| row(frame)).collect()
}

/// Decides for each frame, innermost first, whether it is shown. The reader must see where the thread is: the innermost frame
/// that is not the interpreter's own is always shown, and so is the innermost one of an interpreted function.
fn shown(origins: &[Origin], kinds: &[FrameKind], all: bool) -> Vec<bool> {
    let view = View { show_all: all, ..View::default() };
    let mut is_library = false;
    let mut shown: Vec<bool> = origins.iter().rev().map(|origin| view.shows_origin(*origin, &mut is_library)).collect();
    shown.reverse();
    let innermost = origins.iter().position(|origin| *origin != Origin::Interpreter);
    let interpreted = kinds.iter().position(|kind| *kind != FrameKind::Native);
    let always = if innermost.is_none() && interpreted.is_none() { Some(0) } else { innermost };
    for place in [always, interpreted].into_iter().flatten() {
        if let Some(is_shown) = shown.get_mut(place) {
            *is_shown = true;
        }
    }
    shown
}

fn row(frame: &Frame) -> Row {
    let name = frame.qualname.as_ref().unwrap_or(&frame.name);
    if frame.kind != FrameKind::Native {
        let mut text = String::new();
        let _ = write_place(&mut text, &frame.filename.as_deref().unwrap_or("<unknown>"), frame.position.line, name);
        return Row::Interpreted(printable(&text));
    }
    let inlined = if frame.is_inlined { ", inlined" } else { "" };
    Row::Native {
        name: printable(&shorten(name, WIDEST_NAME)),
        place: place(frame),
        module: frame.module.as_ref().map(|module| format!("[{}{inlined}]", printable(module))).unwrap_or_default(),
    }
}

/// The file with its nearest folder, and the line.
fn place(frame: &Frame) -> String {
    let Some(file) = &frame.filename else { return String::new() };
    let start = file.rmatch_indices('/').nth(1).map_or(0, |(at, _)| at + 1);
    let mut place = printable(&file[start..]);
    let length = place.chars().count();
    if length > WIDEST_PLACE {
        let rest: String = place.chars().skip(length + 3 - WIDEST_PLACE).collect();
        place = format!("...{rest}");
    }
    if let Some(line) = frame.position.line {
        let _ = write!(place, ":{line}");
    }
    place
}

fn heading(threads: &[&ThreadStack]) -> String {
    let first = threads[0];
    let mut text = if threads.len() == 1 { String::new() } else { format!("{} threads: ", threads.len()) };
    let word = if threads.len() == 1 { "Thread " } else { "" };
    let names = threads
        .iter()
        .take(NAMED)
        .map(|thread| format!("{word}{} \"{}\"", thread.task, one_line(&thread.name, WIDEST_THREAD)));
    text.push_str(&names.collect::<Vec<_>>().join(", "));
    if threads.len() > NAMED {
        let _ = write!(text, " and {} more", threads.len() - NAMED);
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

fn write_rows(out: &mut dyn Write, rows: &[Row], paint: Paint) -> io::Result<()> {
    let width = |part: fn(&Row) -> &str| rows.iter().map(|row| part(row).chars().count()).max().unwrap_or(0);
    let names = width(|row| if let Row::Native { name, .. } = row { name } else { "" });
    let places = width(|row| if let Row::Native { place, .. } = row { place } else { "" });
    for row in rows {
        match row {
            Row::Interpreted(text) => writeln!(out, "  {text}")?,
            Row::Native { name, place, module } => {
                let text = format!("  | {name:names$}  {place:places$}  {module}");
                writeln!(out, "{}", paint.dim(text.trim_end()))?;
            }
        }
    }
    Ok(())
}

/// The text in at most that many columns, with one space for each run of white space and control characters.
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
struct Paint {
    colour: bool,
}

impl Paint {
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
    fn where_a_thread_is_is_shown_whoevers_code_that_is() {
        use FrameKind::{Native, Python};
        use Origin::{Interpreter, Library, Program};
        // A program that calls a library, which waits: a lock's native code, the library's two frames, the program, its start.
        let origins = [Library, Interpreter, Library, Library, Program, Interpreter];
        let kinds = [Native, Native, Python, Python, Python, Python];
        assert_eq!(shown(&origins, &kinds, false), [true, false, true, true, true, false]);
        assert_eq!(shown(&origins, &kinds, true), [true; 6]);
        // Only starters of the interpreter's own, as in a thread that just began.
        assert_eq!(shown(&[Interpreter, Interpreter], &[Native, Python], false), [false, true]);
        assert_eq!(shown(&[Interpreter, Interpreter], &[Native, Native], false), [true, false]);
        assert!(shown(&[], &[], false).is_empty());
    }

    #[test]
    fn any_text_takes_one_line() {
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

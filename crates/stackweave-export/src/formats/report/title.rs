//! A short name of a program: with its arguments, without the interpreter and the recording command.

const RECORDERS: [&str; 4] = ["trace", "memory", "record", "dynamo"];

/// Returns the short name of a command line.
pub(super) fn short_title(words: &[String]) -> Option<String> {
    let (first, rest) = words.split_first()?;
    let rest = match recorded_command(rest) {
        Some(after) => &after[after.iter().position(|word| is_program(word))?..],
        None if file_name(first).starts_with("python") => &rest[rest.iter().position(|word| is_program(word))?..],
        None => words,
    };
    let (program, arguments) = rest.split_first()?;
    let program = if program.starts_with('-') { program.as_str() } else { file_name(program) };
    let all = core::iter::once(program).chain(arguments.iter().map(String::as_str));
    Some(all.collect::<Vec<_>>().join(" "))
}

/// Returns the words after the name of a recorder, if this is a command of Stackweave.
fn recorded_command(words: &[String]) -> Option<&[String]> {
    let index = words.windows(2).position(|two| {
        let is_recorder = RECORDERS.contains(&two[1].as_str());
        is_recorder && file_name(&two[0]) == "stackweave"
    })?;
    words.get(index + 2..)
}

/// Returns whether a word is a script, or announces a module or code.
fn is_program(word: &str) -> bool {
    word == "-m" || word == "-c" || matches!(word.rsplit_once('.'), Some((_, "py" | "pyz")))
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn title(line: &str) -> Option<String> {
        short_title(&line.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn the_program_is_named_without_the_interpreter_and_the_recorder() {
        let same = |line: &str, short: &str| assert_eq!(title(line).as_deref(), Some(short));
        same("/opt/bin/python3 -m stackweave trace -o out.swv /srv/app/train.py --epochs 2", "train.py --epochs 2");
        same("/opt/bin/python3 /opt/bin/stackweave memory --native -m app.main x", "-m app.main x");
        same("python3 -m stackweave record --no-memory serve.py 80", "serve.py 80");
        same("python3.12 -W ignore serve.py", "serve.py");
        same("/usr/sbin/server --port 80", "server --port 80");
    }

    #[test]
    fn an_unknown_command_line_has_no_short_name() {
        assert_eq!([title("python3"), title("python3 -m stackweave trace")], [None, None]);
        assert_eq!(short_title(&[]), None);
    }
}

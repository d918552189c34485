//! A short name for what ran: the program with its arguments, without the interpreter and without our own command.

const RECORDERS: [&str; 4] = ["trace", "memory", "run", "dynamo"];

/// What a command line is about.
pub(super) fn short_title(words: &[String]) -> Option<String> {
    let (first, rest) = words.split_first()?;
    let rest = match ours(rest) {
        Some(behind) => &behind[behind.iter().position(|word| is_program(word))?..],
        None if file_name(first).starts_with("python") => &rest[rest.iter().position(|word| is_program(word))?..],
        None => words,
    };
    let (program, arguments) = rest.split_first()?;
    let program = if program.starts_with('-') { program.as_str() } else { file_name(program) };
    let all = core::iter::once(program).chain(arguments.iter().map(String::as_str));
    Some(all.collect::<Vec<_>>().join(" "))
}

/// What stands behind the name of a recorder, if it is our command that was run.
fn ours(words: &[String]) -> Option<&[String]> {
    let place = words.windows(2).position(|two| {
        let is_recorder = RECORDERS.contains(&two[1].as_str());
        is_recorder && file_name(&two[0]) == "stackweave"
    })?;
    words.get(place + 2..)
}

/// A script, or what says that a module or code follows.
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
    fn what_ran_is_told_without_what_ran_it() {
        let same = |line: &str, short: &str| assert_eq!(title(line).as_deref(), Some(short));
        same("/opt/bin/python3 -m stackweave trace -o out.swv /srv/app/train.py --epochs 2", "train.py --epochs 2");
        same("/opt/bin/python3 /opt/bin/stackweave memory --native -m app.main x", "-m app.main x");
        same("python3 -m stackweave run --only calls serve.py 80", "serve.py 80");
        same("python3.12 -W ignore serve.py", "serve.py");
        same("/usr/sbin/server --port 80", "server --port 80");
    }

    #[test]
    fn what_is_not_understood_has_no_short_name() {
        assert_eq!([title("python3"), title("python3 -m stackweave trace")], [None, None]);
        assert_eq!(short_title(&[]), None);
    }
}

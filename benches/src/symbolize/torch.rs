//! Real stacks of a torch program: torch resolves them in the program, in three modes; the others do it from outside.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::process::{Command, Stdio};

use super::agreement;
use super::contenders;
use super::figures::Figures;
use super::job::{Chain, Job, Place};
use super::loaded::{self, LoadedFile};
use super::rounds::{self, Taken};
use super::tracebacks;
use crate::options::Effort;
use crate::peers;
use crate::report::Case;

pub(super) const BENCH: &str = "symbolize/torch-tracebacks";

const PROGRAM: &str = include_str!("../../python/torch_tracebacks.py");

/// The name of each mode in torch, and its name here.
const MODES: [(&str, &str); 3] = [("fast", "torch fast"), ("addr2line", "torch addr2line"), ("dladdr", "torch dladdr")];

/// One run of the torch program.
#[derive(Clone, Debug)]
struct Run {
    figures: Figures,
    tracebacks: usize,
    job: Job,
    /// The names from torch, one chain for each of the job's places.
    chains: Vec<Chain>,
}

pub(super) fn measure(effort: Effort, done: &mut dyn FnMut(Case) -> io::Result<()>) -> io::Result<()> {
    let mut runs = vec![Vec::new(); MODES.len()];
    for _ in 0..effort.pick(1, 3) {
        for ((mode, _), runs) in MODES.iter().zip(&mut runs) {
            runs.push(run(mode)?);
        }
    }
    let Some(first) = runs.iter().flatten().flatten().next() else {
        let why = runs.iter().flatten().find_map(|run| run.as_ref().err());
        return Err(io::Error::other(format!("torch: {}", why.map_or("not run", String::as_str))));
    };
    let mut others = contenders::of_stacks();
    others.retain(|contender| !contender.in_process_only);
    let round = rounds::measure(&first.job, &others, effort)?;
    let mut taken = round.taken;
    taken.extend(MODES.iter().zip(&runs).map(|((_, name), runs)| summary(name, runs, first, &round.judge)));
    let unique = first.job.next.iter().collect::<BTreeSet<_>>().len();
    let name = format!("{} tracebacks, {} frames, {unique} unique", first.tracebacks, first.job.next.len());
    tracebacks::cases(BENCH, &name, &taken).into_iter().try_for_each(done)
}

fn summary(name: &'static str, runs: &[Result<Run, String>], first: &Run, judge: &[Chain]) -> Taken {
    let right = runs.iter().flatten().filter(|run| run.job.next.len() == first.job.next.len()).collect::<Vec<_>>();
    let figures = rounds::median_of(&right.iter().map(|run| run.figures).collect::<Vec<_>>());
    let why = || runs.iter().find_map(|run| run.as_ref().err().cloned()).unwrap_or_else(|| "other stacks".to_owned());
    let same = right.iter().find(|run| run.job == first.job);
    let agreement = same.map_or(0.0, |run| agreement::of_single_names(&run.chains, judge));
    Taken { name, figures: figures.ok_or_else(why), agreement }
}

fn run(mode: &str) -> io::Result<Result<Run, String>> {
    let mut command = Command::new(peers::torch::python());
    let output = command.args(["-c", PROGRAM, mode]).stderr(Stdio::null()).output()?;
    if !output.status.success() {
        return Ok(Err(format!("failed: {}", output.status)));
    }
    Ok(parse(&String::from_utf8_lossy(&output.stdout)))
}

fn parse(text: &str) -> Result<Run, String> {
    let lines = |word: &'static str| text.lines().filter_map(move |line| line.strip_prefix(word)?.strip_prefix(' '));
    let figures = text.lines().next().and_then(Figures::parse).ok_or("failed: no figures")?;
    let hexadecimal = |word: &str| u64::from_str_radix(word, 16).ok();
    let names = lines("name").filter_map(|line| line.split_once(' ')).collect::<HashMap<_, _>>();
    let mut files = loaded::of(&lines("map").collect::<Vec<_>>().join("\n"));
    // The order by path is the same in every process; the order by address is not.
    files.sort_by(|one, other| one.path.cmp(&other.path));
    let mut job = Job { modules: files.iter().map(|file| file.path.clone()).collect(), ..Job::default() };
    let mut chains = Vec::new();
    for traceback in lines("traceback") {
        let before = job.next.len();
        for word in traceback.split(' ') {
            // torch also subtracts 1 from return addresses.
            let Some(place) = hexadecimal(word).and_then(|address| place(&files, address.wrapping_sub(1))) else {
                continue;
            };
            job.next.push(place);
            let name = names.get(word).filter(|name| **name != "??");
            chains.push(name.map(|name| (*name).to_owned()).into_iter().collect());
        }
        job.depths.push(job.next.len() - before);
    }
    Ok(Run { figures, tracebacks: lines("traceback").count(), job, chains })
}

fn place(files: &[LoadedFile], address: u64) -> Option<Place> {
    let module = files.iter().position(|file| file.start <= address && address < file.end)?;
    Some(Place { module, address: address.wrapping_sub(files[module].bias) })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn addresses_of_another_process_become_places_in_files() {
        let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
        let maps = maps.lines().map(|line| format!("map {line}")).collect::<Vec<_>>().join("\n");
        let here = addresses_of_another_process_become_places_in_files as fn() as usize as u64 + 1;
        let text = format!("figures 0 12.5 0.5 3\ntraceback {here:x} 0\nname {here:x} a name\nname 0 ??\n{maps}");
        let run = parse(&text);
        assert!(run.is_ok_and(|run| {
            run.tracebacks == 1 && run.job.next.len() == 1 && run.chains == [vec!["a name".to_owned()]]
        }));
        assert!(parse("nonsense").is_err());
    }
}

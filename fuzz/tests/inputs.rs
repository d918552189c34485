//! Every fuzz target holds for its seeds and for variations of them, which are the same in every run. `make fuzz` lets
//! libFuzzer search for inputs that reach more code.
#![expect(clippy::expect_used, reason = "seeds that can't be read must fail the test")]
#![expect(clippy::print_stderr, reason = "the path of a failing input is printed")]

use std::fs;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;

use stackweave_testkit::random::Random;
use stackweave_testkit::scale;

#[test]
fn aggregation_adds_up_for_any_recording() {
    feed(stackweave_fuzz::aggregation::check_input, &random_inputs(), scale(500, 10_000));
}

#[test]
fn exports_of_any_recording_are_complete() {
    feed(stackweave_fuzz::export::check_input, &random_inputs(), scale(600, 10_000));
}

#[test]
fn heap_figures_add_up_for_any_recording() {
    feed(stackweave_fuzz::heap::check_input, &random_inputs(), scale(400, 10_000));
}

#[test]
fn any_bytes_are_read_as_a_recording() {
    feed(stackweave_fuzz::recording::check_input, &seeds("recording"), scale(20_000, 500_000));
}

#[test]
fn any_bytes_are_read_as_a_module() {
    feed(stackweave_fuzz::symbolize_file::check_input, &seeds("symbolize_file"), scale(10_000, 200_000));
}

#[test]
fn any_bytes_are_read_as_unwind_tables() {
    feed(stackweave_fuzz::unwind_step::check_input, &seeds("unwind_step"), scale(500_000, 10_000_000));
}

/// Checks each input, then `rounds` variations. Writes a failing input to a file.
fn feed(check: fn(&[u8]), inputs: &[Vec<u8>], rounds: usize) {
    let mut random = Random::new(1);
    let variations = (0..rounds).map(|round| varied(&inputs[round % inputs.len()], inputs, &mut random));
    for input in inputs.iter().cloned().chain(variations) {
        if let Err(failure) = panic::catch_unwind(AssertUnwindSafe(|| check(&input))) {
            let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("failing-input-{}", std::process::id()));
            fs::write(&path, &input).expect("the input can be written");
            eprintln!("the failing input is in {}", path.display());
            panic::resume_unwind(failure);
        }
    }
}

/// Returns inputs for generators: the bytes are choices, and any bytes will do if there are enough.
fn random_inputs() -> Vec<Vec<u8>> {
    let mut random = Random::new(0);
    (1..=16).map(|number| (0..256 * number).map(|_| byte(&mut random)).collect()).collect()
}

fn seeds(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(target);
    let mut paths: Vec<_> =
        fs::read_dir(folder).expect("there are seeds").map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).expect("a seed can be read")).collect()
}

/// Returns an input with one to eight changes: bytes, words, lengths, or parts of another input.
fn varied(input: &[u8], others: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut bytes = input.to_vec();
    for _ in 0..=random.below(8) {
        change(&mut bytes, &others[random.below(others.len())], random);
    }
    bytes
}

fn change(bytes: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    const WORDS: [u64; 8] = [0, 1, 0x7f, 0x80, 0xffff, 1 << 31, u64::MAX >> 1, u64::MAX];
    let place = random.below(bytes.len() + 1);
    let len = (1 + random.below(16)).min(bytes.len() - place);
    match random.below(6) {
        0 => bytes[place..place + len].iter_mut().for_each(|changed| *changed = byte(random)),
        1 => bytes[place..].iter_mut().take(1).for_each(|changed| *changed ^= 1 << random.below(8)),
        2 => {
            let word = WORDS[random.below(WORDS.len())].to_le_bytes();
            let len = [1, 2, 4, 8][random.below(4)].min(bytes.len() - place);
            bytes[place..place + len].copy_from_slice(&word[..len]);
        }
        3 => drop(bytes.drain(place..place + len)),
        4 => bytes.truncate(place),
        _ => {
            let from = random.below(other.len() + 1);
            let part = &other[from..other.len().min(from + 64)];
            bytes.splice(place..place, part.iter().copied());
        }
    }
}

fn byte(random: &mut Random) -> u8 {
    random.bits().to_le_bytes()[0]
}

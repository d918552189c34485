//! Tables and trees as text.

use stackweave_cli::text::{Sort, TableOptions, TreeOptions, write_table, write_tree};
use stackweave_core::{Module, RawFrame};
use stackweave_profile::{Profile, View};
use stackweave_tapes::{Tape, native, span};

use super::profile_of;

fn profile() -> Profile {
    let mut tape = Tape::new();
    let main = Tape::at(tape.python("main", "/srv/app/main.py", 10), 12);
    let train = Tape::at(tape.python("Trainer.train", "/srv/app/trainer.py", 33), 40);
    let step = Tape::at(tape.python("Trainer.step", "/srv/app/trainer.py", 77), 80);
    let (load, fib) = (span("load \u{1b}[31mbatch"), span("fib"));
    let us = |us: u64| us * 1000;
    let mut run = |name: RawFrame, from: u64, to: u64, inside: &mut dyn FnMut(&mut Tape)| {
        tape.begin((1, us(from)), name);
        inside(&mut tape);
        tape.end((1, us(to)));
    };
    run(main, 0, 100_000, &mut |tape| {
        tape.begin((1, us(10)), train);
        for number in 0..3 {
            tape.begin((1, us(1_000 + number * 20_000)), step);
            tape.end((1, us(16_000 + number * 20_000)));
        }
        tape.end((1, us(80_010)));
        tape.begin((1, us(81_000)), load);
        tape.end((1, us(81_100)));
        tape.begin((1, us(90_000)), fib);
        tape.begin((1, us(91_000)), fib);
        tape.begin((1, us(92_000)), fib);
        (93..96).for_each(|ms| tape.end((1, us(ms * 1000))));
    });
    profile_of(tape)
}

fn tree(options: &TreeOptions) -> String {
    let mut text = Vec::new();
    write_tree(&mut text, &profile(), options).unwrap();
    String::from_utf8(text).unwrap()
}

fn table(options: &TableOptions) -> String {
    let mut text = Vec::new();
    write_table(&mut text, &profile(), options).unwrap();
    String::from_utf8(text).unwrap()
}

#[test]
fn a_tree_is_indented_with_the_highest_cost_first() {
    let expected = "  total   share     self  calls  function
 100 ms  100.0%  14.9 ms      1  main  main.py:10
80.0 ms   80.0%  35.0 ms      1  ├─ Trainer.train  trainer.py:33
45.0 ms   45.0%  45.0 ms      3  │  └─ Trainer.step  trainer.py:77
5.00 ms    5.0%  2.00 ms      1  ├─ fib
3.00 ms    3.0%  2.00 ms      1  │  └─ fib
1.00 ms    1.0%  1.00 ms      1  │     └─ fib
 100 us    0.1%                  └─ (1 more)
";
    assert_eq!(tree(&TreeOptions::default()), expected);
}

#[test]
fn a_table_is_like_that_of_pstats() {
    let expected = "\
calls     self           total          self/call  total/call  function
    3  45.0 ms  45.0%  45.0 ms   45.0%    15.0 ms     15.0 ms  Trainer.step  /srv/app/trainer.py:77
    1  35.0 ms  35.0%  80.0 ms   80.0%    35.0 ms     80.0 ms  Trainer.train  /srv/app/trainer.py:33
    1  14.9 ms  14.9%   100 ms  100.0%    14.9 ms      100 ms  main  /srv/app/main.py:10
  3/1  5.00 ms   5.0%  5.00 ms    5.0%    1.67 ms     5.00 ms  fib
    1   100 us   0.1%   100 us    0.1%     100 us      100 us  load \u{fffd}[31mbatch
";
    assert_eq!(table(&TableOptions::default()), expected);
}

#[test]
fn a_frame_that_only_had_callees_has_no_calls() {
    let mut tape = Tape::new();
    let [outer, inner] = ["outer", "inner"].map(span);
    tape.sample((1, 1), &[inner, outer], 3);
    tape.sample((1, 2), &[inner, outer], 1);
    let profile = profile_of(tape);
    let mut text = Vec::new();
    write_tree(&mut text, &profile, &TreeOptions::default()).unwrap();
    write_table(&mut text, &profile, &TableOptions::default()).unwrap();
    let expected = "\
total   share  self  samples  function
    4  100.0%     0           outer
    4  100.0%     4        2  └─ inner
samples  self          total          function
      2     4  100.0%      4  100.0%  inner
            0    0.0%      4  100.0%  outer
";
    assert_eq!(String::from_utf8(text).unwrap(), expected);
}

#[test]
fn lines_fit_the_width() {
    for width in [60, 72, 100] {
        let tree = tree(&TreeOptions { width: Some(width), min_share: 0.0, ..TreeOptions::default() });
        let table = table(&TableOptions { width: Some(width.max(96)), ..TableOptions::default() });
        assert!(tree.lines().all(|line| line.chars().count() <= width), "{tree}");
        assert!(table.lines().all(|line| line.chars().count() <= width.max(96)), "{table}");
    }
}

#[test]
fn colours_do_not_change_the_text() {
    let plain = tree(&TreeOptions::default());
    let coloured = tree(&TreeOptions { colour: true, ..TreeOptions::default() });
    assert!(coloured.contains("\u{1b}[") && !plain.contains('\u{1b}'));
    let mut without = String::new();
    let mut rest = coloured.as_str();
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        without.push_str(before);
        rest = after.split_once('m').unwrap().1;
    }
    without.push_str(rest);
    let trimmed: Vec<&str> = without.lines().map(str::trim_end).collect();
    assert_eq!(trimmed, plain.lines().collect::<Vec<_>>());
}

#[test]
fn a_table_is_sorted_and_limited() {
    let first = |sort| table(&TableOptions { sort, limit: Some(1), ..TableOptions::default() });
    assert!(first(Sort::SelfCost).contains("Trainer.step"));
    assert!(first(Sort::Total).contains(" main "));
    // Called as often as fib, with a higher cost.
    assert!(first(Sort::Calls).contains("Trainer.step"));
    assert!(first(Sort::Name).contains("Trainer.step") && first(Sort::Name).ends_with("(4 more)\n"));
}

#[test]
fn depth_and_share_limit_the_tree() {
    let shallow = tree(&TreeOptions { max_depth: Some(1), keeps_program: false, ..TreeOptions::default() });
    assert_eq!(shallow.lines().count(), 3, "{shallow}");
    assert!(shallow.contains("(3 more)"), "{shallow}");
    let great = tree(&TreeOptions { min_share: 0.3, keeps_program: false, ..TreeOptions::default() });
    assert!(!great.contains("fib") && great.contains("Trainer.step"), "{great}");
}

#[test]
fn very_deep_trees_are_written() {
    const DEPTH: u64 = 20_000;
    let mut tape = Tape::new();
    let fib = span("fib");
    (0..DEPTH).for_each(|time| tape.begin((1, time), fib));
    (0..DEPTH).for_each(|time| tape.end((1, DEPTH + time)));
    let profile = profile_of(tape);
    let mut text = Vec::new();
    write_tree(&mut text, &profile, &TreeOptions { min_share: 0.0, ..TreeOptions::default() }).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert_eq!(text.lines().count(), 1 + usize::try_from(DEPTH).unwrap());
    assert!(text.ends_with("  [19999] fib\n") && text.len() < 5_000_000, "{} bytes", text.len());
}

#[test]
fn a_call_without_time_is_written() {
    let mut tape = Tape::new();
    tape.begin((1, 5), span("quick"));
    tape.end((1, 5));
    let profile = profile_of(tape);
    let mut text = Vec::new();
    write_tree(&mut text, &profile, &TreeOptions::default()).unwrap();
    write_table(&mut text, &profile, &TableOptions::default()).unwrap();
    assert_eq!(String::from_utf8(text).unwrap().matches("quick").count(), 2);
}

#[test]
fn a_frame_without_a_visible_caller_is_written_below_the_root() {
    let mut tape = Tape::new();
    let [start, end] = [0x10_0000, 0x11_0000];
    tape.module(Module { path: "/usr/lib/libpython3.11.so.1.0".into(), build_id: None, bias: start, start, end });
    let main = Tape::at(tape.python("main", "/srv/me/app/main.py", 1), 5);
    let import = Tape::at(tape.python("_find_and_load", "<frozen importlib._bootstrap>", 1), 5);
    let interpreter = native(start + 0x100);
    tape.sample((1, 0), &[interpreter], 3);
    tape.sample((1, 1), &[import, interpreter], 4);
    tape.sample((1, 2), &[main], 5);
    let mut text = Vec::new();
    write_tree(&mut text, &profile_of(tape).view(&View::default()), &TreeOptions::default()).unwrap();
    let expected = "\
total  share  self  samples  function
    5  41.7%     5        1  main  main.py:1
    7  58.3%     7           (outside the visible frames)
";
    assert_eq!(String::from_utf8(text).unwrap(), expected);
}

/// Records a web server: an event loop that waits, worker threads that are idle, and the functions that answer requests.
fn mostly_idle_server(handlers: u64) -> Profile {
    let mut tape = Tape::new();
    let library = |name: &str| format!("/venv/lib/python3.11/site-packages/{name}.py");
    let script = Tape::at(tape.python("<module>", "/srv/shop/main.py", 1), 20);
    let run = Tape::at(tape.python("run", &library("uvicorn/main"), 500), 510);
    let select = Tape::at(tape.python("EpollSelector.select", "/usr/lib/python3.11/selectors.py", 451), 468);
    let wait = Tape::at(tape.python("WorkerThread.run", &library("anyio/_backends/_asyncio"), 900), 940);
    let handle = Tape::at(tape.python("run_asgi", &library("uvicorn/protocols"), 400), 404);
    tape.sample((1, 1), &[select, run, script], 60_000);
    for thread in 2..40 {
        tape.sample((thread, 1), &[wait], 60_000);
    }
    for number in 0..handlers {
        let code = tape.python(&format!("handler_{number:02}"), "/srv/shop/orders.py", 10);
        tape.sample((1, 2 + number), &[Tape::at(code, 11), handle, run, script], 10 + i64::try_from(number).unwrap());
    }
    profile_of(tape)
}

fn tree_of(profile: &Profile, options: &TreeOptions) -> String {
    let mut text = Vec::new();
    write_tree(&mut text, profile, options).unwrap();
    String::from_utf8(text).unwrap()
}

#[test]
fn functions_of_the_program_have_lines_in_a_server_that_is_idle() {
    let profile = mostly_idle_server(12);
    let options = TreeOptions { min_share: 0.01, ..TreeOptions::default() };
    let text = tree_of(&profile, &options);
    let shown: Vec<&str> = text.lines().filter(|line| line.contains("handler_")).collect();
    assert_eq!(shown.len(), 8, "those with the highest total: {text}");
    assert!(shown[0].contains("handler_11  orders.py:10") && shown[7].contains("handler_04"), "{text}");
    assert!(text.contains("(4 more)"), "{text}");
    let strict = tree_of(&profile, &TreeOptions { keeps_program: false, ..options });
    assert!(!strict.contains("handler_"), "{strict}");
}

#[test]
fn enough_functions_of_the_program_above_the_limit_need_no_others() {
    let text = tree_of(&profile(), &TreeOptions { min_share: 0.04, ..TreeOptions::default() });
    assert!(text.contains("Trainer.step") && !text.contains("load"), "{text}");
}

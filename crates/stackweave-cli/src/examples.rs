//! Examples below the help of each command.

pub(crate) const INFO: &str = "\
Examples:
  stackweave info train.4242.swv          its contents, and what is missing
  stackweave info runs/                   each process of a folder
  stackweave info --json train.swv        the same as JSON";

pub(crate) const HEAP: &str = "\
Examples:
  stackweave heap train.4242.swv          peak, leaks, temporary blocks, sizes, the curve over time
  stackweave heap --view leaks train.swv  leak candidates, by stack
  stackweave heap --view peak -n 30 --include file:*/models/* train.swv
                                          live at the peak, from these files only";

pub(crate) const PHASES: &str = "\
Examples:
  stackweave phases compile.swv           each run, and the slowest functions
  stackweave phases --runs compile.swv    all runs, one line each
  stackweave phases --json compile.swv    everything as JSON";

pub(crate) const TREE: &str = "\
Examples:
  stackweave tree train.4242.swv          the call tree
  stackweave tree --depth 6 --min 5 train.swv
                                          the first levels, without paths below 5 %
  stackweave tree --measure live mem.swv  where live memory was allocated
  stackweave tree --include file:*/models/* --thread loader train.swv";

pub(crate) const TOP: &str = "\
Examples:
  stackweave top train.4242.swv           the functions with the highest self time
  stackweave top --sort total -n 40 train.swv
                                          sorted by total time
  stackweave top --start 10s --end 12s --kind python train.swv
                                          two seconds of the run, Python frames only
  stackweave top --json train.swv         the same as JSON";

pub(crate) const FLAME: &str = "\
Examples:
  stackweave flame train.4242.swv         a flame graph as wide as the screen
  stackweave flame --root Trainer.step train.swv
                                          only below this function
  stackweave flame --bottom-up train.swv  from the functions to their callers
  stackweave flame --measure peak --width 200 --depth 100 mem.swv | less -R";

pub(crate) const DIFF: &str = "\
Examples:
  stackweave diff before.swv after.swv    the functions that changed most
  stackweave diff --shares --paths before.swv after.swv
                                          by call path, for runs of different length
  stackweave diff --measure calls --fail-above 2 main.swv branch.swv
                                          fail (status 3) if there are over 2 % more calls
  stackweave diff --measure peak --include file:*/models/* --fail-above 10 main.swv branch.swv";

pub(crate) const REPORT: &str = "\
Examples:
  stackweave report train.4242.swv        write train.4242.html, which needs no network
  stackweave report --open run.swv        write the page, and open it
  stackweave report after.swv --before before.swv -o change.html
                                          show what changed";

pub(crate) const EXPORT: &str = "\
Examples:
  stackweave export run.swv -o run.svg    a flame graph
  stackweave export run.swv -o run.prof   for pstats, snakeviz and tuna
  stackweave export run.swv -o run.pftrace
                                          for ui.perfetto.dev
  stackweave export run.swv --format parquet -o tables";

pub(crate) const MERGE: &str = "\
Examples:
  stackweave merge out.swv out.4243.swv -o all.swv
                                          a program and its child
  stackweave merge runs/ -o all.swv       all recordings in a folder";

pub(crate) const COMPLETIONS: &str = "\
Examples:
  source <(stackweave completions bash)   for this shell; in ~/.bashrc for each one
  stackweave completions zsh > ~/.zfunc/_stackweave
                                          a folder of fpath, before compinit
  stackweave completions fish > ~/.config/fish/completions/stackweave.fish";

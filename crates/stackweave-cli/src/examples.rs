//! Commands that people really type, below the help of each command.

pub(crate) const INFO: &str = "\
Examples:
  stackweave info train.4242.swv          what is in it, and whether anything is missing
  stackweave info runs/                   each process of a folder
  stackweave info --json train.swv        the same for programs";

pub(crate) const HEAP: &str = "\
Examples:
  stackweave heap train.4242.swv          peak, leaks, temporary blocks, sizes, the curve over time
  stackweave heap --view leaks train.swv  who took what was never freed
  stackweave heap --view peak -n 30 --only file:*/models/* train.swv
                                          who had most at the peak, of these files only";

pub(crate) const PHASES: &str = "\
Examples:
  stackweave phases compile.swv           each run, and the functions that cost most
  stackweave phases --runs compile.swv    all runs, one line each
  stackweave phases --json compile.swv    all of it for programs";

pub(crate) const TREE: &str = "\
Examples:
  stackweave tree train.4242.swv          who called whom
  stackweave tree --depth 6 --min 5 train.swv
                                          the first levels, and only what has 5 % or more
  stackweave tree --measure live mem.swv  who took what was not freed
  stackweave tree --only file:*/models/* --thread loader train.swv";

pub(crate) const TOP: &str = "\
Examples:
  stackweave top train.4242.swv           the functions that cost most themselves
  stackweave top --sort total -n 40 train.swv
                                          with all that they called
  stackweave top --from 10s --to 12s --kind python train.swv
                                          in two seconds of the run, Python only
  stackweave top --json train.swv         the same for programs";

pub(crate) const FLAME: &str = "\
Examples:
  stackweave flame train.4242.swv         as wide and as high as the screen
  stackweave flame --root Trainer.step train.swv
                                          only what this function did
  stackweave flame --bottom-up train.swv  from what costs to who called it
  stackweave flame --measure peak --width 200 --depth 100 mem.swv | less -R";

pub(crate) const DIFF: &str = "\
Examples:
  stackweave diff before.swv after.swv    what costs more, or less
  stackweave diff --shares --paths before.swv after.swv
                                          by path, of runs of different length
  stackweave diff --measure calls --fail-above 2 main.swv branch.swv
                                          fails (status 3) if there are over 2 % more calls
  stackweave diff --measure peak --only file:*/models/* --fail-above 10 main.swv branch.swv";

pub(crate) const REPORT: &str = "\
Examples:
  stackweave report train.4242.swv        writes train.4242.html, which needs no network
  stackweave report --open run.swv        and opens it
  stackweave report after.swv --before before.swv -o change.html
                                          with what changed";

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
  stackweave merge runs/ -o all.swv       all recordings of a folder";

pub(crate) const COMPLETIONS: &str = "\
Examples:
  source <(stackweave completions bash)   for this shell; in ~/.bashrc for each one
  stackweave completions zsh > ~/.zfunc/_stackweave
                                          a folder of fpath, before compinit
  stackweave completions fish > ~/.config/fish/completions/stackweave.fish";

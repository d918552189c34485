"""Programs that do the same in each run. Each has a `main`, and covers one feature of functions."""

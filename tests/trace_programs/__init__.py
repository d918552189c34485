"""Programs that do the same each time they are run. Each has a `main`, and is about one thing that functions can do."""

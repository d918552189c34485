"""Claims about the built package. `make test` runs them on every Python of the machine."""

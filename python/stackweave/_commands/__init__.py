"""The commands that run a program and record it: their arguments, and what they print at the end."""

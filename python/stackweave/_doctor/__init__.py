"""`stackweave doctor`: checks whether captures and recordings work at full speed on this machine."""

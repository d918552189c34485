"""What `stackweave.pytest_plugin` imports when an option or a mark needs it."""

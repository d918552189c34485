"""The modules that `stackweave.pytest_plugin` imports when an option or a mark needs them."""

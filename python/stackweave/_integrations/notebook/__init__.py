"""`%load_ext stackweave`: magics that record cells and statements of IPython."""

"""The options of recorders: each is declared once, for keywords, commands, notebooks and the documentation."""

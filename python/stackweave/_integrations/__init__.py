"""Makes and shows recordings inside other tools: notebooks and pytest."""

"""What shows and makes recordings inside other tools: notebooks and pytest."""

"""Write recordings: `Recorder`, and the recorders of calls, memory and phases."""

"""The peak memory of this process."""


def reset_peak():
    """Resets the peak to the current resident memory."""
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def peak_mb():
    with open("/proc/self/status") as file:
        line = next(line for line in file if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024

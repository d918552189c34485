"""Peak memory of this process."""


def forget_peak():
    """Makes the peak start again from what is resident now."""
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def peak_mb():
    with open("/proc/self/status") as file:
        line = next(line for line in file if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024

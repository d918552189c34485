"""What stackweave knows of PyTorch. Nothing in here imports torch: it is there already, or not needed."""

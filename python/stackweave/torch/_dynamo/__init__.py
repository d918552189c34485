"""Records where torch.compile spends its time."""

"""Records the memory of CUDA devices by a hook in PyTorch's allocator."""

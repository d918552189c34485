"""Where torch.compile spends its time.

FunctionTraceTiming, ProfilerStackEntry and DynamoProfilerState can take the place of the classes of these names in
torch._dynamo.dynamo_profiler.
"""

from ._dynamo_classes import DynamoProfilerState, FunctionTraceTiming, ProfilerStackEntry

__all__ = ["DynamoProfilerState", "FunctionTraceTiming", "ProfilerStackEntry"]

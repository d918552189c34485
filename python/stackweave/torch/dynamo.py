"""Where torch.compile spends its time.

>>> with stackweave.torch.dynamo.profile("compile.swv") as recorder:
...     torch.compile(model)(batch)
>>> print(stackweave.torch.dynamo.report(recorder.recording))
>>> recorder.recording.stats().sort_stats("cumulative").print_stats(20)

compiles() returns the compilations of a recording. FunctionTraceTiming, ProfilerStackEntry and DynamoProfilerState can
replace the classes of these names in torch._dynamo.dynamo_profiler.
"""

from ._dynamo.classes import DynamoProfilerState, FunctionTraceTiming, ProfilerStackEntry
from ._dynamo.recorder import DynamoRecorder
from ._dynamo.rows import Compile, compiles, report

__all__ = [
    "Compile",
    "DynamoProfilerState",
    "DynamoRecorder",
    "FunctionTraceTiming",
    "ProfilerStackEntry",
    "compiles",
    "profile",
    "report",
]

profile = DynamoRecorder

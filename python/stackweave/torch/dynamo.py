"""Where torch.compile spends its time.

>>> with stackweave.torch.dynamo.profile("compile.swv") as profile:
...     torch.compile(model)(batch)
>>> print(profile.report())
>>> profile.stats().sort_stats("cumulative").print_stats(20)

compiles() gives the compilations of such a recording that was opened again. FunctionTraceTiming, ProfilerStackEntry and
DynamoProfilerState can take the place of the classes of these names in torch._dynamo.dynamo_profiler.
"""

from ._dynamo_classes import DynamoProfilerState, FunctionTraceTiming, ProfilerStackEntry
from ._dynamo_profile import Profile
from ._dynamo_rows import Compile, compiles

__all__ = [
    "Compile",
    "DynamoProfilerState",
    "FunctionTraceTiming",
    "Profile",
    "ProfilerStackEntry",
    "compiles",
    "profile",
]

profile = Profile

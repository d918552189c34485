"""What stackweave knows of PyTorch. Importing this does not import torch.

Importing this has stacks show the lines of a model behind the lines of Inductor's generated code.

>>> with stackweave.torch.installed():
...     main()

has torch's own tracebacks be captured and shown by stackweave.
"""

from . import _inductor_frames as _inductor_frames

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._captured_traceback import GatheredTraceback, forward_traceback
    from ._cuda_memory import CudaMemory, cuda_memory
    from ._install import install, installed, is_installed, uninstall

__all__ = [
    "CudaMemory",
    "GatheredTraceback",
    "cuda_memory",
    "forward_traceback",
    "install",
    "installed",
    "is_installed",
    "uninstall",
]

#: What not every program needs is imported when it is first asked for.
_LATER = {
    "CudaMemory": "_cuda_memory",
    "cuda_memory": "_cuda_memory",
    "GatheredTraceback": "_captured_traceback",
    "forward_traceback": "_captured_traceback",
    "install": "_install",
    "installed": "_install",
    "is_installed": "_install",
    "uninstall": "_install",
}


def __getattr__(name: str) -> object:
    module = _LATER.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(__import__(f"{__name__}.{module}", fromlist=[name]), name)
    globals()[name] = value
    return value

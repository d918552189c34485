"""Support for PyTorch. Importing this module does not import torch.

After its import, stacks show the lines of a model behind the lines of Inductor's generated code. In a block of

>>> with stackweave.torch.installed():
...     main()

stackweave captures and shows torch's own tracebacks.
"""

from . import _inductor_frames as _inductor_frames

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._captured_traceback import GatheredTraceback, forward_traceback
    from ._cuda.memory import CudaMemoryRecorder, cuda_memory
    from ._install import install, installed, is_installed, uninstall

__all__ = [
    "CudaMemoryRecorder",
    "GatheredTraceback",
    "cuda_memory",
    "forward_traceback",
    "install",
    "installed",
    "is_installed",
    "uninstall",
]

#: The modules of the names, which are imported when they are first used.
_LATER = {
    "CudaMemoryRecorder": "_cuda.memory",
    "cuda_memory": "_cuda.memory",
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

"""What stackweave knows of PyTorch. Nothing in here imports torch: it is there already, or not needed.

Importing this has stacks show the lines of a model behind the lines of Inductor's generated code.
"""

from . import _inductor_frames as _inductor_frames

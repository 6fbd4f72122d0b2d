"""Runs a script and ends as soon as it has succeeded.

    python run.py SCRIPT [ARGUMENT ...]

Threads of pyarrow may still hold buffers of Python when a script ends. Before Python 3.14 a thread that asks for the interpreter
while it shuts down is ended in the middle of a destructor, and the whole process with it: "terminate called without an active
exception". Without a shutdown, there is no such moment.
"""

import os
import pathlib
import runpy
import sys

sys.argv = sys.argv[1:]
sys.path[0] = str(pathlib.Path(sys.argv[0]).resolve().parent)
runpy.run_path(sys.argv[0], run_name="__main__")
sys.stdout.flush()
sys.stderr.flush()
os._exit(0)

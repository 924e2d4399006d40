"""Running a base model with adapters on it: what a version answers, and how it reads a fixed text. No Django here.

`model` is the only module that imports torch; everything else decides and measures, and knows models by `ports`.
"""

import os

# Read by torch when it is imported, wherever that happens first. Threads that spin while they wait take the cores from
# whatever else runs on the machine: on two busy cores a run of 4 s took 41 s.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

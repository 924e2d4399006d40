"""A process that counts in a folder and tells its slot; run as a script. Arguments: the folder and how often."""

import os
import sys
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Histogram, values

from config.metrics.slots import ProcessSlot


def main() -> None:
    folder, times = Path(sys.argv[1]), int(sys.argv[2])
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(folder)
    slot = ProcessSlot(folder)
    values.ValueClass = values.MultiProcessValue(slot)  # type: ignore[no-untyped-call]
    registry = CollectorRegistry()
    counter = Counter("work", "Work done.", registry=registry)
    histogram = Histogram("took", "Time of it.", buckets=(1.0,), registry=registry)
    for _ in range(times):
        counter.inc()
        histogram.observe(0.5)
    child = os.fork()
    if child == 0:
        counter.inc()
        sys.stdout.write(f"child {slot()}\n")
        sys.stdout.flush()
        os._exit(0)
    os.waitpid(child, 0)
    sys.stdout.write(f"parent {slot()}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main()

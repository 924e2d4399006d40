"""Check "structure": adapter_model.safetensors is a sound file of float matrices and nothing else."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from workers.validation.kinds import WEIGHTS_FILE
from workers.validation.report import Check, Verdict, finding, several
from workers.validation.subject import Subject

NAME: Final = "structure"


def check(subject: Subject) -> Iterator[Check]:
    """Judge the header, which was read with the file; without a file there's nothing to say."""
    error, header = subject.weights.error, subject.weights.header
    if error:
        message = f"{WEIGHTS_FILE}: {error}; save the adapter again as safetensors"
        yield finding(NAME, Verdict.FAIL, error.code, message, tensor=error.tensor)
    if header is None:
        return
    if not header.tensors:
        message = (
            f"{WEIGHTS_FILE} is empty: it holds no tensors, as sharded training leaves behind; gather the weights "
        )
        yield finding(NAME, Verdict.FAIL, "no_tensors", f"{message}before saving")
        return
    refused = [span for span in header.tensors if span.dtype not in subject.limits.dtypes]
    for dtype, count in sorted(Counter(span.dtype for span in refused).items()):
        names = [span.name for span in refused if span.dtype == dtype]
        message = (
            f"{WEIGHTS_FILE}: {count} tensors have the dtype {dtype} ({several(names)}); engines take "
            f"{', '.join(sorted(subject.limits.dtypes))}: save the adapter in one of them"
        )
        yield finding(NAME, Verdict.FAIL, "dtype", message, dtype=dtype, count=count, tensors=names)

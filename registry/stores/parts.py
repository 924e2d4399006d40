"""How a large file is cut into parts. Pure."""

from dataclasses import dataclass

# S3 allows 10,000; few enough that one answer lists them all.
MAX_PARTS = 1000
_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class PartPlan:
    """A file of `size` bytes (more than none) in parts of `part_bytes`, but for the last, which has what is left."""

    size: int
    part_bytes: int

    @classmethod
    def of(cls, size: int, *, part_bytes: int) -> "PartPlan":
        """Parts of `part_bytes`, or of as many whole MiB as keep their number within `MAX_PARTS`."""
        enough = -(-size // (MAX_PARTS * _MIB)) * _MIB
        return cls(size=size, part_bytes=part_bytes if part_bytes * MAX_PARTS >= size else enough)

    @property
    def count(self) -> int:
        return -(-self.size // self.part_bytes)

    def size_of(self, number: int) -> int:
        """Bytes of part `number`, from 1 to `count`."""
        return min(self.part_bytes, self.size - (number - 1) * self.part_bytes)

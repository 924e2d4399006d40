"""The threads in which commands are carried out: by kind, so that slow downloads hold up no load and no eviction."""

from collections.abc import Callable
from typing import Any

from celery.concurrency.thread import TaskPool

# Kinds with threads of their own; all others share some.
KINDS = ("node.evict", "node.fetch")


class CommandPool(TaskPool):
    """Celery's pool of threads, with as many for each kind of command as its limit says."""

    def on_start(self) -> None:
        super().on_start()
        self._by_kind = {kind: TaskPool(self.limit) for kind in KINDS}

    def on_apply(
        self,
        target: Callable[..., Any],
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        callback: Callable[..., Any] | None = None,
        accept_callback: Callable[..., Any] | None = None,
        **options: object,
    ) -> Any:  # noqa: ANN401  # as Celery has it
        """Hand over to the threads of the kind, which is the first of the arguments that Celery has for `target`."""
        own = self._by_kind.get(args[0]) if args else None
        apply = super().on_apply if own is None else own.on_apply
        return apply(target, args, kwargs, callback, accept_callback, **options)

    def on_stop(self) -> None:
        for pool in self._by_kind.values():
            pool.on_stop()
        super().on_stop()

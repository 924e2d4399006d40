"""Heat, the load queue, and what is planned."""

from celery import shared_task

from cachecontrol.services.estimates import estimate_tiers
from cachecontrol.services.heat import count_requests
from cachecontrol.services.loads.turns import serve_pool, serve_queues
from cachecontrol.services.planning.expiry import expire_residents
from cachecontrol.services.planning.plan import plan_pools, replan_pool
from cachecontrol.services.planning.predictions import predict_demand
from registry.dispatch import REPLAN_POOL, SERVE_LOAD_QUEUE


@shared_task(name="workers.tasks.count_requests", acks_late=True, time_limit=60)
def count() -> None:
    count_requests()
    estimate_tiers()


@shared_task(name=SERVE_LOAD_QUEUE, acks_late=True, time_limit=60)
def serve_load_queue(pool: str) -> None:
    """A load has ended in the pool; ``serve_load_queues`` does it too, only later."""
    serve_pool(pool)


@shared_task(name="workers.tasks.serve_load_queues", acks_late=True, time_limit=60)
def serve_load_queues() -> None:
    serve_queues()


@shared_task(name="workers.tasks.plan_pools", acks_late=True, time_limit=120)
def plan() -> None:
    predict_demand()
    expire_residents()
    plan_pools()


@shared_task(name=REPLAN_POOL, acks_late=True, time_limit=120)
def replan(pool: str) -> None:
    """A node or a version of the pool is not what it was; ``plan_pools`` takes that in too, only later."""
    replan_pool(pool)

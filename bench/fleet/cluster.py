"""A cluster of Ray on this machine, with a fleet in it."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from streaming.fleet.deployment import Deployment

STORE_BYTES = 100 << 20
"""Bytes of Ray's object store on each node."""
BEGIN_TIMEOUT_S = 180.0
"""A fleet whose workers are not live after this many seconds is an error."""


@contextmanager
def fleet_here(nodes: int, deployment: Deployment) -> Iterator[tuple]:
    """Start a fleet on several nodes of this machine; return the fleet with all workers live, and the cluster."""
    warnings.simplefilter("ignore")
    import ray  # pyright: ignore[reportMissingImports]
    from ray.cluster_utils import Cluster  # pyright: ignore[reportMissingImports]

    from streaming.fleet.ray_fleet import Fleet

    node_options = {"num_cpus": 4, "object_store_memory": STORE_BYTES}
    cluster = Cluster(initialize_head=True, head_node_args={**node_options, "include_dashboard": False})
    try:
        for _ in range(nodes - 1):
            cluster.add_node(**node_options)
        cluster.wait_for_nodes()
        fleet = Fleet("pulse", cluster.address)
        fleet.deploy(deployment)
        fleet.wait(
            lambda status: len(status.table.live_workers(deployment.version)) >= deployment.min_workers,
            BEGIN_TIMEOUT_S,
        )
        yield fleet, cluster
        fleet.end()
    finally:
        ray.shutdown()
        cluster.shutdown()

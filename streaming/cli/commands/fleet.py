"""pulse fleet: servers of streams on the machines of a Ray cluster."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from streaming.cli.options import ReportOptions, extra_for, option, takes_groups

if TYPE_CHECKING:
    from streaming.fleet.deployment import Deployment
    from streaming.fleet.ray_fleet import Fleet

ACTIONS = ("deploy", "status", "drain", "set-weight", "end")


@takes_groups
def fleet(
    action: Annotated[str, typer.Argument(metavar="|".join(ACTIONS), help="What to do with the fleet.")],
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE|WORKER|MACHINE|VERSION",
            help="deploy: a settings file (.toml), default: the built-in denoiser; drain: a worker or a machine; "
            "set-weight: a version.",
        ),
    ] = None,
    *,
    address: str | None = option("Ray's head. Default: the cluster of this machine.", metavar="HOST:PORT"),
    name: str = option("The fleet's name.", metavar="NAME", default="pulse"),
    weight: float | None = option(
        "set-weight: the share of new streams relative to the other versions; 0 retires a version.",
        metavar="NUMBER",
        min=0,
    ),
    wait: float = option(
        "deploy: the longest time to wait until the workers are ready.",
        metavar="SECONDS",
        default=300.0,
        min=0,
    ),
    report: ReportOptions,
) -> None:
    """Serve streams on several machines: Ray places and monitors the servers, and clients connect to them directly.

    If a server or its machine is lost, streams continue at another one, bit-identically. See docs/fleet.md.

    Examples:
      ray start --head                   a cluster of Ray; ray start --address=… adds machines
      pulse fleet deploy fleet.toml      start, or add a new version next to the old one
      pulse fleet status
      pulse fleet drain 10.0.0.7         empty a machine
      pulse fleet set-weight 2 --weight 0.1   give version 2 fewer of the new streams
      pulse fleet end
    """
    from pulse.errors import InputError

    if action not in ACTIONS:
        raise InputError(f"pulse fleet {action}: the actions are {', '.join(ACTIONS)}")
    if what is None and action in ("drain", "set-weight"):
        raise InputError(f"pulse fleet {action}: name a worker, machine or version; see pulse fleet status")
    if weight is None and action == "set-weight":
        raise InputError("pulse fleet set-weight: give the weight with --weight")
    if weight is not None and action != "set-weight":
        raise InputError(f"pulse fleet {action} takes no --weight; it belongs to set-weight")
    if what is not None and action in ("status", "end"):
        raise InputError(f"pulse fleet {action} takes no {what!r}; --name names the fleet")
    deployment = read_file(None if what is None else Path(what)) if action == "deploy" else None
    handle = open_fleet(name, address)
    if deployment is not None:
        deploy(handle, deployment, wait)
    elif action == "drain" and what is not None:
        handle.drain(what)
    elif action == "set-weight" and what is not None and weight is not None:
        handle.set_weight(what, weight)
    elif action == "end":
        handle.end()
        return
    from streaming.fleet.fleet_report import FleetReport

    report.print(FleetReport(handle.status()))


def open_fleet(name: str, address: str | None) -> "Fleet":
    """Open a fleet of a cluster. Raises InputError: no Ray, or no cluster."""
    with extra_for("a fleet", "fleet"):
        from streaming.fleet.ray_fleet import Fleet
    return Fleet(name, address)


def read_file(path: Path | None) -> "Deployment":
    """Read the deployment in a file; without a file, return one with the built-in denoiser.

    Raises InputError as ``read_deployment``
    """
    from streaming.fleet.deployment import Deployment, read_deployment

    return Deployment() if path is None else read_deployment(path.resolve())


def deploy(handle: "Fleet", deployment: "Deployment", wait_s: float) -> None:
    """Deploy a version, and wait until its workers are live.

    Raises InputError: clients or models are out of reach, or the workers are not live in time
    """
    handle.deploy(deployment)
    version = deployment.version
    handle.wait(lambda status: len(status.table.live_workers(version)) >= deployment.min_workers, wait_s)

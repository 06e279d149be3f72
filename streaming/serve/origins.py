"""Which pages may use a server: by the Origin that browsers send."""

from collections.abc import Collection
from ipaddress import ip_address
from urllib.parse import urlsplit


def allows_origin(origin: str | None, host: str, allowed: Collection[str]) -> bool:
    """Return whether a request may come from an origin.

    origin   the header Origin; None if there is none
    host     the header Host
    allowed  the origins of the settings; "*" for all

    The server's own pages may, if their host is localhost or an IP address: another site could point a name here.
    """
    if origin is None or origin in allowed or "*" in allowed:
        return True
    try:
        name, origin_host = urlsplit(origin).netloc, urlsplit(origin).hostname or ""
    except ValueError:
        return False
    return name == host and _cannot_be_redirected(origin_host)


def _cannot_be_redirected(name: str) -> bool:
    """Return whether a host is localhost or an IP address, which no other site can redirect."""
    if name == "localhost":
        return True
    try:
        ip_address(name)
    except ValueError:
        return False
    return True

"""The status of a server, for people and for programs."""

import time
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from streaming.serve.service import Service

STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
body { margin: 2rem auto; max-width: 60rem; padding: 0 1rem }
table { border-collapse: collapse; width: 100%; margin: 1rem 0 }
th, td { text-align: right; padding: .25rem .5rem; border-bottom: 1px solid #8886 }
th:first-child, td:first-child { text-align: left }
"""


def status_dict(service: "Service") -> dict[str, Any]:
    """Return the status for JSON: models, threads, connections, counts."""
    return {
        "draining": service.admission.draining,
        "seconds": round(time.time() - service.began_s, 1),
        "loop": round(service.admission.loop_fraction, 4),
        "threads": [round(service.admission.thread_load(worker), 4) for worker in service.workers],
        "budget": service.settings.budget,
        "models": [
            {
                "name": model.name,
                "streams": model.open_streams,
                "limit": model.settings.streams,
                "share": round(model.thread_fraction, 6),
                **service.times(model.name).as_dict(),
            }
            for model in service.models
        ],
        "counts": service.counts.as_dict(),
        "connections": [connection.as_dict() for connection in list(service.connections)],
    }


def status_page(service: "Service") -> str:
    """Return the status as a page that reloads itself every two seconds."""
    status = status_dict(service)
    models = [
        [
            model["name"],
            f"{model['streams']} of {model['limit']}",
            f"{model['share']:.2%}",
            *(_percentiles_text(model[f"{part}_us"]) for part in ("queue", "step", "answer")),
        ]
        for model in status["models"]
    ]
    threads = [[f"thread {index}", f"{load:.0%}"] for index, load in enumerate(status["threads"])]
    streams = [
        [
            connection["stream"][:8],
            connection["address"],
            connection["model"] or "",
            f"{connection['seconds']:.0f} s",
            *_answer(connection),
        ]
        for connection in status["connections"]
    ]
    parts = [
        _table(["model", "streams", "a stream takes", "queue", "step", "answer"], models),
        _table(["", "load"], [["event loop", f"{status['loop']:.0%}"], *threads]),
        _table(["stream", "address", "model", "open", "answer"], streams),
        _table(["count", ""], [[name, str(count)] for name, count in status["counts"].items()]),
    ]
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta http-equiv="refresh" content="2">'
        '<meta name="viewport" content="width=device-width"><title>pulse serve: status</title>'
        f"<style>{STYLE}</style><h1>pulse serve</h1><p>Times are p50 / p99 in milliseconds.</p>{''.join(parts)}</html>"
    )


def _answer(connection: dict[str, Any]) -> list[str]:
    return [_percentiles_text(connection["answer_us"]) if connection["answer_us"] else ""]


def _percentiles_text(percentiles: dict[str, float]) -> str:
    return f"{percentiles['p50'] / 1e3:.2f} / {percentiles['p99'] / 1e3:.2f}"


def _table(heads: list[str], rows: list[list[str]]) -> str:
    head = "".join(f"<th>{escape(title)}</th>" for title in heads)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

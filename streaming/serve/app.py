"""The HTTP paths of a server."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import HTTPConnection, Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from streaming.builtin import noisy_path
from streaming.protocol import PATH
from streaming.serve.hosted_model import HostedModel
from streaming.serve.metrics import prometheus_text
from streaming.serve.origins import allows_origin
from streaming.serve.service import Service
from streaming.serve.settings import MODULE, SCRIPT
from streaming.serve.status import status_dict, status_page

PAGE = Path(__file__).parent / "page"
CONTENT_POLICY = (
    "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; media-src 'self' blob:; "
    "connect-src 'self' ws: wss:; frame-ancestors 'none'"
)
"""The content security policy: the page may load only itself."""
HEADERS = {
    "Content-Security-Policy": CONTENT_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


def make_app(service: Service) -> Starlette:
    """Create the application, for any ASGI server; its lifespan runs the service."""

    def health(request: Request) -> Response:
        draining = service.admission.draining
        return JSONResponse({"status": "draining" if draining else "ok"}, 503 if draining else 200)

    async def stream(socket: WebSocket) -> None:
        if not _is_allowed(socket, service):
            await socket.close()
            return
        address = socket.client.host if socket.client else "unknown"
        await service.serve(socket, address, _token(socket))

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncGenerator[None]:
        async with service.run():
            yield

    routes = [
        *_file_routes(service),
        *_guarded_routes(service),
        Route("/health", health),
        WebSocketRoute(PATH, stream),
    ]
    return Starlette(routes=routes, lifespan=lifespan)


def _file_routes(service: Service) -> list[Route]:
    """Return the routes of files that anyone may read."""
    files = [path for path in sorted(PAGE.iterdir()) if path.suffix in (".js", ".css")]
    return [
        Route("/", _file_endpoint(PAGE / "index.html")),
        *(Route(f"/{path.name}", _file_endpoint(path)) for path in files),
        Route("/example.flac", _file_endpoint(noisy_path())),
        *(
            Route(f"/{model.web}{SCRIPT}", _file_endpoint(folder / SCRIPT))
            for model, folder in _web_forms(service)
        ),
    ]


def _guarded_routes(service: Service) -> list[Route]:
    """Return the routes that need an allowed origin and a token."""

    def guard(answer: Callable[[Request], Response]) -> Callable[[Request], Response]:
        def respond(request: Request) -> Response:
            if not _is_allowed(request, service):
                return PlainTextResponse("this origin may not use the server\n", 403)
            if not service.admission.knows_token(_token(request)):
                return PlainTextResponse(
                    "give a token: Authorization: Bearer TOKEN\n", 401, {"WWW-Authenticate": "Bearer"}
                )
            return answer(request)

        return respond

    def models(_: Request) -> Response:
        return JSONResponse({"models": [model.as_dict() for model in service.models]}, headers=HEADERS)

    return [
        Route("/v1/models", guard(models)),
        Route("/status", guard(lambda _: HTMLResponse(status_page(service), headers=HEADERS))),
        Route("/status.json", guard(lambda _: JSONResponse(status_dict(service), headers=HEADERS))),
        Route("/metrics", guard(lambda _: Response(prometheus_text(service), media_type="text/plain"))),
        *(
            Route(f"/{model.web}{MODULE}", guard(_file_endpoint(folder / MODULE)))
            for model, folder in _web_forms(service)
        ),
    ]


def _web_forms(service: Service) -> list[tuple[HostedModel, Path]]:
    """Return the models that browsers can run, with the folders of their WebAssembly modules."""
    return [(model, model.settings.web) for model in service.models if model.settings.web]


def _file_endpoint(path: Path) -> Callable[[Request], Response]:
    return lambda _: FileResponse(path, headers=HEADERS)


def _is_allowed(connection: HTTPConnection, service: Service) -> bool:
    headers = connection.headers
    return allows_origin(headers.get("origin"), headers.get("host", ""), service.settings.origins)


def _token(connection: HTTPConnection) -> str | None:
    scheme, _, token = connection.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None

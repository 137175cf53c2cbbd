"""A server on this machine that answers as the Hub does, as far as specfix asks."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType

import pytest

TOKEN = "hf_secretsecretsecretsecretsecretsec"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@dataclass
class FakeHub:
    """Repositories by name, each a map of file names to bytes.

    ``statuses`` maps a part of a path to the status, and the ``X-Error-Code``, with which it is refused; ``faults``
    maps one to what answers in its place, where that says so;
    ``requests`` are those that came: method, path, Range, and whether with a token; ``sent`` counts the bytes
    of files; without ``ranges`` each file is sent whole; without ``answers`` the connection is closed; without
    ``sizes`` its list of files does not tell them.
    """

    repositories: dict[str, dict[str, bytes]] = field(default_factory=dict)
    statuses: dict[str, tuple[int, str]] = field(default_factory=dict)
    faults: dict[str, Callable[[BaseHTTPRequestHandler], bool]] = field(default_factory=dict)
    requests: list[tuple[str, str, str | None, bool]] = field(default_factory=list)
    sent: int = 0
    ranges: bool = True
    sizes: bool = True
    answers: bool = True
    delay: float = 0
    endpoint: str = ""
    commit: object = COMMIT

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        if not self.answers:
            handler.close_connection = True
            return None
        time.sleep(self.delay)
        path = handler.path.partition("?")[0]
        token = handler.headers.get("Authorization") is not None
        self.requests.append((handler.command, path, handler.headers.get("Range"), token))
        if any(part in path and fault(handler) for part, fault in self.faults.items()):
            return None
        for part, (status, code) in self.statuses.items():
            if part in path:
                return respond(handler, status, b"{}", {"X-Error-Code": code} if code else {})
        api = re.fullmatch(r"/api/models/([^/]+/[^/]+)(?:/revision/(.+))?", path)
        if api:
            return self.answer_info(handler, api[1], api[2])
        file = re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path)
        data = self.repositories.get(file[1], {}).get(file[3]) if file else None
        if data is None:
            return respond(handler, 404, b"", {"X-Error-Code": "EntryNotFound"})
        return self.answer_file(handler, data)

    def answer_info(self, handler: BaseHTTPRequestHandler, name: str, revision: str | None) -> None:
        files = self.repositories.get(name)
        if files is None:
            return respond(handler, 401, b"{}", {"X-Error-Code": "RepoNotFound"})
        if revision not in (None, "main", "v1", COMMIT):
            return respond(handler, 404, b"{}", {"X-Error-Code": "RevisionNotFound"})
        siblings = [
            {"rfilename": file, "blobId": "0", **({"size": len(data)} if self.sizes else {})}
            for file, data in files.items()
        ]
        info = {"_id": "0", "id": name, "modelId": name, "sha": self.commit, "siblings": siblings, "tags": []}
        return respond(handler, 200, json.dumps(info).encode(), {"Content-Type": "application/json"})

    def answer_file(self, handler: BaseHTTPRequestHandler, data: bytes) -> None:
        headers = {"ETag": f'"{hashlib.sha256(data).hexdigest()}"', "X-Repo-Commit": COMMIT}
        wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", handler.headers.get("Range") or "")
        status = 200
        if wanted and self.ranges:
            status, total = 206, len(data)
            data = data[int(wanted[1]) : int(wanted[2]) + 1]
            headers["Content-Range"] = f"bytes {wanted[1]}-{int(wanted[1]) + len(data) - 1}/{total}"
        self.sent += len(data) if handler.command == "GET" else 0
        respond(handler, status, data, headers)


def respond(handler: BaseHTTPRequestHandler, status: int, data: bytes, headers: dict[str, str]) -> None:
    handler.send_response(status)
    for key, value in {"Content-Length": str(len(data)), **headers}.items():
        handler.send_header(key, value)
    handler.end_headers()
    if handler.command != "HEAD":
        with suppress(OSError):  # a client that has read enough hangs up
            handler.wfile.write(data)


@contextmanager
def running(hub: FakeHub) -> Iterator[FakeHub]:
    """``hub`` on a free port of 127.0.0.1."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            hub.answer(self)

        def do_HEAD(self) -> None:
            hub.answer(self)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    hub.endpoint = f"http://127.0.0.1:{server.server_port}"
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[FakeHub, Path]]:
    """``huggingface_hub`` reads its environment when it is imported: here anew, with our server and cache."""
    cache = tmp_path_factory.mktemp("hub") / "cache"
    before = forget()
    with running(FakeHub()) as server, pytest.MonkeyPatch.context() as environment:
        environment.setenv("HF_ENDPOINT", server.endpoint)
        environment.setenv("HF_HUB_CACHE", str(cache))
        environment.setenv("HF_TOKEN", TOKEN)
        environment.delenv("HF_HUB_OFFLINE", raising=False)
        yield server, cache
        forget()
    sys.modules.update(before)


def forget() -> dict[str, ModuleType]:
    """Take the library out of the modules that are imported."""
    names = [name for name in sys.modules if name.partition(".")[0] == "huggingface_hub"]
    return {name: sys.modules.pop(name) for name in names}


@pytest.fixture
def cache(library: tuple[FakeHub, Path]) -> Path:
    """A cache that is not there yet."""
    _, cache = library
    if cache.is_file():
        cache.unlink()
    shutil.rmtree(cache, ignore_errors=True)
    return cache


@pytest.fixture
def fake(library: tuple[FakeHub, Path], cache: Path) -> FakeHub:
    """A Hub without repositories."""
    server, _ = library
    fresh = FakeHub(endpoint=server.endpoint)
    vars(server).update(vars(fresh))
    return server

"""A Hub that answers wrongly, slowly, halfway or not at all: one message that says what to do, in bounded time, nothing
in the cache that a later run would trust, and the token in no message."""

from __future__ import annotations

import errno
import itertools
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from specfix.cli import main
from specfix.deployment import hub
from tests.unit.deployment.fake_hub import COMMIT, TOKEN, FakeHub, respond, running
from tests.unit.deployment.samples import EAGLE3, LLAMA, TENSORS, safetensors, write_model

Fault = Callable[[BaseHTTPRequestHandler], bool]
Check = Callable[[], tuple[int, str]]
WEIGHTS = {"model.norm.weight": TENSORS["norm.weight"]}
FILES = {
    "config.json": json.dumps(LLAMA, indent=2).encode(),
    "tokenizer.json": b'{"model": {"vocab": {"a": 0}}}',
    "model.safetensors.index.json": json.dumps({"weight_map": dict.fromkeys(WEIGHTS, "a.safetensors")}).encode(),
    "a.safetensors": safetensors(WEIGHTS),
}
PARTS = {
    "list": "/api/",
    "config": "/config.json",
    "tokenizer": "/tokenizer.json",
    "index": "index.json",
    "header": "/a.safe",
}
NEEDED = {"list", "config"}
RELEASED = threading.Event()  # those that hang are let go when a test ends
ADVICE = "try again|log in|ask for access|check its name|give a folder|see to HF_ENDPOINT"


def refusing(status: int, **headers: str) -> Fault:
    def fault(handler: BaseHTTPRequestHandler) -> bool:
        respond(handler, status, b'{"error": "no"}', {name.replace("_", "-"): text for name, text in headers.items()})
        return True

    return fault


def silent(handler: BaseHTTPRequestHandler) -> bool:
    return RELEASED.wait(60)


def dripping(handler: BaseHTTPRequestHandler, data: bytes) -> bool:
    handler.close_connection = True
    with suppress(OSError):
        for byte in itertools.cycle(data):
            handler.wfile.write(bytes([byte]))
            if RELEASED.wait(0.05):
                break
    return True


def slow_headers(handler: BaseHTTPRequestHandler) -> bool:
    return dripping(handler, b"HTTP/1.1 200 OK\r\nX-Slow: " + b"x" * 1000)


def slow_body(handler: BaseHTTPRequestHandler) -> bool:
    if handler.command == "HEAD":
        return False
    start(handler, 200, {"Content-Length": "100000"})
    return dripping(handler, b" ")


def half(handler: BaseHTTPRequestHandler) -> bool:
    if handler.command == "HEAD":
        return False
    start(handler, 200, {"Content-Length": "100000"})
    handler.wfile.write(b'{"half": ')
    handler.close_connection = True
    return True


def cut(handler: BaseHTTPRequestHandler) -> bool:
    """Half, and nothing that says how much it was to be."""
    if handler.command == "HEAD":
        return False
    start(handler, 200, {"Connection": "close"})
    handler.wfile.write(FILES["a.safetensors"][:40])
    handler.close_connection = True
    return True


def endless(handler: BaseHTTPRequestHandler) -> bool:
    if handler.command == "HEAD":
        return False
    start(handler, 200, {"Connection": "close"})
    handler.close_connection = True
    with suppress(OSError):
        while not RELEASED.wait(0.01):
            handler.wfile.write(b" " * 10_000)
    return True


def reset(handler: BaseHTTPRequestHandler) -> bool:
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.close_connection = True
    return True


def garbage(handler: BaseHTTPRequestHandler) -> bool:
    handler.wfile.write(b"\x16\x03\x01\x02\x00" * 50 + b"\r\n\r\n")
    handler.close_connection = True
    return True


def loop(handler: BaseHTTPRequestHandler) -> bool:
    respond(handler, 302, b"", {"Location": handler.path})
    return True


def page(handler: BaseHTTPRequestHandler) -> bool:
    respond(handler, 200, b"<!DOCTYPE html><title>Log in</title>", {"Content-Type": "text/html; charset=utf-8"})
    return True


def page_as_file(handler: BaseHTTPRequestHandler) -> bool:
    return handler.command == "GET" and page(handler)


def other_size(handler: BaseHTTPRequestHandler) -> bool:
    """The file is longer than was said."""
    if handler.command == "HEAD" or "Range" in handler.headers:
        return False
    respond(handler, 200, b"{}" + b" " * 5000, {"ETag": '"other"', "X-Repo-Commit": COMMIT})
    return True


def other_json(text: bytes) -> Fault:
    def fault(handler: BaseHTTPRequestHandler) -> bool:
        respond(handler, 200, text, {"Content-Type": "application/json"})
        return True

    return fault


def start(handler: BaseHTTPRequestHandler, status: int, headers: dict[str, str]) -> None:
    handler.send_response(status)
    for name, value in {"ETag": '"x"', "X-Repo-Commit": COMMIT, **headers}.items():
        handler.send_header(name, value)
    handler.end_headers()


FAULTS: dict[str, Fault] = {
    "401": refusing(401, X_Error_Message="Invalid credentials in Authorization header"),
    "403": refusing(403),
    "403-gated": refusing(403, X_Error_Code="GatedRepo"),
    "404": refusing(404),
    "404-file": refusing(404, X_Error_Code="EntryNotFound"),
    "404-repository": refusing(404, X_Error_Code="RepoNotFound"),
    "429": refusing(429, Retry_After="3600"),
    "500": refusing(500),
    "502": refusing(502, Content_Type="text/html"),
    "silent": silent,
    "slow-headers": slow_headers,
    "slow-body": slow_body,
    "half": half,
    "cut": cut,
    "endless": endless,
    "reset": reset,
    "garbage": garbage,
    "loop": loop,
    "page": page,
    "page-as-file": page_as_file,
    "other-size": other_size,
}
LASTING = {"429", "500", "502", "silent", "slow-headers", "slow-body", "endless", "half"}  # tried until time is up
DAMAGED = {("endless", "header")}  # what comes is a file, and no weights
LISTS = [b"[]", b"null", b"{", b'{"siblings": 5}', b'{"id": "x", "siblings": [{"rfilename": 5}]}', b"\xff\xfe", b'"x"']


@pytest.fixture(autouse=True)
def let_go() -> Iterator[None]:
    RELEASED.clear()
    yield
    RELEASED.set()


@pytest.fixture
def check(fake: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Check:
    """Check org/name; the exit status, and what was said."""
    fake.repositories["org/name"] = dict(FILES)
    draft = str(write_model(tmp_path / "draft", EAGLE3, TENSORS))
    monkeypatch.setattr(hub, "SECONDS", 0.5)
    monkeypatch.setattr(hub, "SECONDS_IN_ALL", 2)
    options = ["--method=eagle3", "--num-speculative-tokens=3", "--engine=vllm==0.26.0", "--hardware=h200"]

    def run() -> tuple[int, str]:
        began = time.monotonic()
        status = main(["check", "org/name", draft, *options])
        assert time.monotonic() - began < 60
        said = capfd.readouterr()
        assert TOKEN not in said.out + said.err and "Traceback" not in said.err
        assert bool(said.out) != bool(said.err)
        return status, said.out or said.err

    return run


def refused(said: str, words: str) -> None:
    """One message, that names the model and what there is to do."""
    assert re.fullmatch(r"specfix: error: [^\n]*org/name[^\n]+\n", said), said
    assert re.search(words, said), said


def cases() -> Iterator[object]:
    """Each fault for each part; those that take a while, or are of one kind with others, are not run each time."""
    for name, fault in FAULTS.items():
        for part in PARTS if name != "other-size" else ("config", "tokenizer", "index"):  # which are asked for whole
            often = part in ("list", "header") or (part == "config" and name not in LASTING)
            marks = [] if often and name not in LASTING - {"silent", "500"} else [pytest.mark.faults]
            yield pytest.param(fault, part, (name, part) in DAMAGED, id=f"{name}-{part}", marks=marks)


@pytest.mark.parametrize(("fault", "part", "damaged"), list(cases()))
def test_an_answer_that_is_none(
    fake: FakeHub, cache: Path, check: Check, monkeypatch: pytest.MonkeyPatch, fault: Fault, part: str, damaged: bool
) -> None:
    fake.faults[PARTS[part]] = fault
    status, said = check()
    if part in NEEDED or damaged:
        assert status == 2
        refused(said, "a.safetensors is no safetensors file" if damaged else ADVICE)
    else:
        assert status == 1
        assert re.search(r"are? left aside: |is left aside: |as the cache has it \(", " ".join(said.split())), said
    RELEASED.set()
    fake.faults.clear()
    monkeypatch.setattr(hub, "SECONDS_IN_ALL", 60)
    later = check()
    assert "Assumed" not in later[1]
    shutil.rmtree(cache)
    assert check() == later


@pytest.mark.parametrize("text", LISTS)
def test_a_list_of_another_form(fake: FakeHub, check: Check, text: bytes) -> None:
    fake.faults["/api/"] = other_json(text)
    status, said = check()
    assert status == 2
    refused(said, "no Hub|has no config.json on the Hub")


def pages(handler: BaseHTTPRequestHandler) -> bool:
    """A list that names a next page, whichever page is asked for."""
    link = {"Link": f'<http://{handler.headers["Host"]}{handler.path}&page=next>; rel="next"'}
    files = [{"rfilename": f"{number}.txt", "size": 1} for number in range(100)]
    listed = json.dumps({"id": "org/name", "sha": COMMIT, "siblings": files}).encode()
    respond(handler, 200, listed, {"Content-Type": "application/json", **link})
    return True


def names(handler: BaseHTTPRequestHandler) -> bool:
    """A list of files without end, as fast as it can."""
    start(handler, 200, {"Content-Type": "application/json", "Connection": "close"})
    handler.close_connection = True
    with suppress(OSError):
        handler.wfile.write(b'{"id": "org/name", "siblings": [')
        while not RELEASED.is_set():
            handler.wfile.write(b'{"rfilename": "a.txt", "size": 1},' * 10_000)
    return True


@pytest.mark.parametrize(
    ("fault", "words"), [(pages, "has no config.json on the Hub"), (names, "is too large: the Hub's list of its files")]
)
def test_a_list_that_never_ends(
    fake: FakeHub, check: Check, monkeypatch: pytest.MonkeyPatch, fault: Fault, words: str
) -> None:
    """It is not read until the time is up."""
    monkeypatch.setattr(hub, "SECONDS_IN_ALL", 60)
    fake.faults["/api/"] = fault
    began = time.monotonic()
    status, said = check()
    assert status == 2 and time.monotonic() - began < 20
    refused(said, words)
    assert len(fake.requests) == 1


def test_nobody_is_there(fake: FakeHub, check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import HfApi

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    monkeypatch.setattr("huggingface_hub.HfApi", lambda: HfApi(endpoint=f"http://127.0.0.1:{port}"))
    refused(check()[1], r"it does not answer: ConnectError|it does not answer: ConnectionError")
    monkeypatch.setattr("huggingface_hub.HfApi", lambda: HfApi(endpoint=fake.endpoint.replace("http:", "https:")))
    refused(check()[1], "no secure connection comes about: ")


def test_a_token_goes_nowhere_else(fake: FakeHub, check: Check) -> None:
    """Where a file is handed out by another server."""
    with running(FakeHub(repositories={"org/name": dict(FILES)})) as other:

        def elsewhere(handler: BaseHTTPRequestHandler) -> bool:
            respond(handler, 302, b"", {"Location": other.endpoint.replace("127.0.0.1", "localhost") + handler.path})
            return True

        fake.faults["/a.safetensors"] = elsewhere
        status, said = check()
        assert status == 1 and "Assumed" not in said
        assert [with_token for _, _, _, with_token in other.requests] == [False]
        assert all(with_token for _, _, _, with_token in fake.requests)


def test_interrupted_while_it_dawdles(fake: FakeHub, cache: Path, tmp_path: Path) -> None:
    """Nobody waits for the requests that are under way."""
    fake.repositories["org/name"] = dict(FILES)
    asked = threading.Event()

    def slowly(handler: BaseHTTPRequestHandler) -> bool:
        asked.set()
        return slow_body(handler)

    fake.faults["/a.safetensors"] = slowly
    draft = str(write_model(tmp_path / "draft", EAGLE3, TENSORS))
    process = subprocess.Popen(
        [sys.executable, "-m", "specfix", "check", "org/name", draft, "--engine=vllm==0.26.0", "--hardware=h200"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=os.environ | {"HF_HUB_CACHE": str(cache)},
    )
    try:
        assert asked.wait(60)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, said) == (130, b"")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO])
def test_a_cache_that_is_full(fake: FakeHub, check: Check, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("huggingface_hub.HfApi.hf_hub_download", full)
    refused(
        check()[1], f"org/name cannot be kept in the cache [^ ]+: {os.strerror(number)}: see to it, or set HF_HUB_CACHE"
    )

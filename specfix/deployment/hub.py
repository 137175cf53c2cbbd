"""A model on the Hub: its JSON files, through the user's own cache, and safetensors headers. Never a weight.

The only module that imports ``huggingface_hub``, and only when it is called. Messages are our own: those of
the library may hold a signed URL, or whatever a server sends.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

from specfix.deployment.files import Files, read_folder
from specfix.deployment.headers import INDEX, header_length, parse_header, weight_files
from specfix.deployment.json_text import CONFIG_LIMIT, INDEX_LIMIT, TOKENIZER_LIMIT
from specfix.deployment.model import Tensor
from specfix.errors import CannotCheck

SECONDS = 10  # for the server to say something
AT_ONCE = 16  # headers that are asked for at the same time
FIRST_BYTES = 100_000  # of a weight file: most headers end within them

# bytes that a file may have to be fetched
LIMITS = {
    "generation_config.json": CONFIG_LIMIT,
    INDEX: INDEX_LIMIT,
    **dict.fromkeys(("tokenizer.json", "tokenizer_config.json"), TOKENIZER_LIMIT),
}


class Unreachable(Exception):
    """The Hub does not serve anybody now; the message says why."""


@dataclass(frozen=True, slots=True)
class Repository:
    """One commit of a repository. ``sizes`` maps each of its files to its bytes (None: not told)."""

    api: Any = field(repr=False)
    name: str
    revision: str | None
    commit: str
    sizes: Mapping[str, int | None]
    label: str


def read_repository(name: str, revision: str | None) -> Files:
    """The files of a repository: from the Hub, else from the cache. Raises CannotCheck."""
    from huggingface_hub import constants

    label = f"{name}@{revision}" if revision else name
    if constants.HF_HUB_OFFLINE:
        why = "HF_HUB_OFFLINE is set"
    else:
        try:
            return read_online(name, revision, label)
        except Unreachable as error:
            why = str(error)
    folder = cached_folder(name, revision)
    if folder is None:
        raise CannotCheck(
            f"{label} cannot be read from the Hub ({why}) and is not in the cache {constants.HF_HUB_CACHE}: "
            "give a folder that holds it, or try again"
        )
    return replace(read_folder(folder, label), folder=None, note=f"{label} as the cache has it ({why})")


def cached_folder(name: str, revision: str | None) -> Path | None:
    """The snapshot of a repository in the cache, where its config.json is in it."""
    from huggingface_hub import try_to_load_from_cache

    found = try_to_load_from_cache(name, "config.json", revision=revision)
    return Path(found).parent if isinstance(found, str) else None


def read_online(name: str, revision: str | None, label: str) -> Files:
    """The files of a repository as it is now. Raises Unreachable and CannotCheck."""
    with own_words(label), quiet():
        repository = look_up(name, revision, label)
        folder = fetch_texts(repository)
        files = read_folder(folder, label)
        tensors = remote_tensors(repository, folder) if files.tensors is None else files.tensors
    return replace(files, folder=None, tensors=tensors)


def look_up(name: str, revision: str | None, label: str) -> Repository:
    """The commit that ``revision`` names, and its files."""
    from huggingface_hub import HfApi

    api = HfApi()
    info = api.model_info(name, revision=revision, files_metadata=True, timeout=SECONDS)
    sizes = {file.rfilename: file.size for file in info.siblings or ()}
    return Repository(api, name, revision, info.sha or "main", sizes, label)


def fetch_texts(repository: Repository) -> Path:
    """Bring the JSON and tokenizer files into the cache; the folder where they lie."""
    if "config.json" not in repository.sizes:
        raise CannotCheck(f"{repository.label} has no config.json on the Hub")
    if (repository.sizes["config.json"] or 0) > CONFIG_LIMIT:
        raise CannotCheck(f"{repository.label}:config.json is larger than {CONFIG_LIMIT:,} bytes")
    # by its revision, which the cache then knows for a day without network; the others by the commit
    config = repository.api.hf_hub_download(
        repository.name, "config.json", revision=repository.revision, etag_timeout=SECONDS
    )
    for file, limit in LIMITS.items():
        if file in repository.sizes and (repository.sizes[file] or 0) <= limit:
            repository.api.hf_hub_download(repository.name, file, revision=repository.commit, etag_timeout=SECONDS)
    return Path(config).parent


def remote_tensors(repository: Repository, folder: Path) -> dict[str, Tensor] | None:
    """The tensors that the headers on the Hub declare; None where there is no safetensors file, or not all.
    The index is in ``folder``."""
    files = weight_files(folder, repository.sizes)
    if not files or any(file not in repository.sizes for file in files):
        return None
    with ThreadPoolExecutor(AT_ONCE) as pool:
        try:
            headers = list(pool.map(lambda file: remote_header(repository, file).items(), files))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return dict(chain.from_iterable(headers))


def remote_header(repository: Repository, file: str) -> dict[str, Tensor]:
    """The tensors of one file on the Hub."""
    from huggingface_hub import hf_hub_url

    label = f"{repository.label}:{file}"
    size = repository.sizes[file] or sys.maxsize
    url = hf_hub_url(repository.name, file, revision=repository.commit, endpoint=repository.api.endpoint)
    data = first_bytes(url, FIRST_BYTES, label)
    length = header_length(data[:8], size, label)
    if len(data) < 8 + length:
        data = first_bytes(url, 8 + length, label)
    return parse_header(data[8 : 8 + length], size - 8 - length, label, file)


def first_bytes(url: str, count: int, label: str) -> bytes:
    """The first ``count`` bytes of a file, whatever else the server would send."""
    utils = library_utils()
    session = utils.get_session()
    headers = {**utils.build_hf_headers(), "Range": f"bytes=0-{count - 1}", "Accept-Encoding": "identity"}
    if callable(session.stream):  # httpx, since huggingface_hub 1.0; in requests it is a flag
        with session.stream("GET", url, headers=headers, timeout=SECONDS) as response:
            refuse_status(response.status_code, label)
            return take(response.iter_bytes(65536), count)
    with session.get(url, headers=headers, timeout=SECONDS, stream=True) as response:
        refuse_status(response.status_code, label)
        return take(response.iter_content(65536), count)


def take(chunks: Iterator[bytes], count: int) -> bytes:
    """The first ``count`` bytes of a stream."""
    data = bytearray()
    for chunk in chunks:
        data += chunk
        if len(data) >= count:
            break
    return bytes(data[:count])


@contextmanager
def own_words(label: str) -> Iterator[None]:
    """Turn what ``huggingface_hub`` and its HTTP library raise into CannotCheck or Unreachable."""
    from huggingface_hub import constants, errors

    try:
        yield
    except (CannotCheck, Unreachable):
        raise
    except errors.GatedRepoError:
        raise CannotCheck(
            f"{label} is gated: ask for access on its page, and log in with `hf auth login` or set HF_TOKEN"
        ) from None
    except errors.RepositoryNotFoundError:
        raise CannotCheck(
            f"{label} is not on the Hub, or is private: check its name, and log in where it is yours"
        ) from None
    except errors.RevisionNotFoundError:
        raise CannotCheck(f"{label} does not exist: the repository has no such revision") from None
    except errors.LocalEntryNotFoundError:
        raise Unreachable("it does not answer") from None
    except errors.EntryNotFoundError:
        raise CannotCheck(f"{label} lacks a file that its own list names: try again") from None
    except errors.HFValidationError:
        raise CannotCheck(f"{label} is no valid name of a model on the Hub") from None
    except errors.HfHubHTTPError as error:
        refuse_status(getattr(error.response, "status_code", None) or 0, label)
        raise Unreachable("it does not answer as it should") from None
    except Exception as error:  # the HTTP library's own, of which huggingface_hub has had three
        if isinstance(error, OSError) and error.errno is not None and error.filename is not None:
            raise CannotCheck(
                f"{label} cannot be kept in the cache {constants.HF_HUB_CACHE}: {error.strerror}"
            ) from None
        raise Unreachable(f"it does not answer: {type(error).__name__}") from None


def refuse_status(status: int, label: str) -> None:
    """Raise CannotCheck or Unreachable for an HTTP status that says no."""
    if status == 429 or status >= 500:
        raise Unreachable(f"it answers with status {status}")
    if status == 401:
        raise CannotCheck(f"the Hub refuses the token used for {label}: log in anew with `hf auth login`")
    if status == 403:
        raise CannotCheck(f"the Hub forbids reading {label}: the token used lacks that right")
    if status >= 400:
        raise CannotCheck(f"the Hub answers with status {status} for {label}")


@contextmanager
def quiet() -> Iterator[None]:
    """Without the library's progress bars and warnings, which would stand between the lines of a report."""
    utils = library_utils()
    verbosity, bars = utils.logging.get_verbosity(), not utils.are_progress_bars_disabled()
    utils.logging.set_verbosity_error()
    if bars:
        utils.disable_progress_bars()
    try:
        yield
    finally:
        utils.logging.set_verbosity(verbosity)
        if bars:
            utils.enable_progress_bars()


def library_utils() -> Any:
    """``huggingface_hub.utils``, whose public functions are not declared as such for type checkers."""
    return importlib.import_module("huggingface_hub.utils")

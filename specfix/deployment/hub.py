"""A model on the Hub: its JSON files, through the user's own cache, and safetensors headers. Never a weight.

The only module that imports ``huggingface_hub``, and only when it is called. Messages are our own: those of
the library may hold a signed URL, or whatever a server sends.
"""

from __future__ import annotations

import errno
import importlib
import multiprocessing
import re
import ssl
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import Any
from urllib.parse import quote

from specfix.deployment.files import Files, read_folder
from specfix.deployment.headers import INDEX, LFS_POINTER, header_length, parse_header, weight_files
from specfix.deployment.json_text import CONFIG_LIMIT, INDEX_LIMIT, TOKENIZER_LIMIT, read_json_object
from specfix.deployment.model import Tensor
from specfix.errors import CannotCheck

SECONDS = 10  # for the server to say something
SECONDS_IN_ALL = 300  # for all of one repository: a server may say a little again and again
AT_ONCE = 16  # headers that are asked for at the same time
FIRST_BYTES = 100_000  # of a weight file: most headers end within them
LIST_LIMIT = 16 * 2**20  # bytes of a list of files: those of fifty thousand
REVISION = re.compile(r"\w[\w.-]*", re.ASCII)  # a commit, of which the cache makes a path
NO_HUB = "what answers there is no Hub: see to HF_ENDPOINT, and to a proxy or a login page in between"
DISK = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO})  # said of a file without its name

# what the Hub says by a code: that of its header, or the class that the library makes of it
REFUSALS = {
    "GatedRepo": "is gated: ask for access on its page, and log in with `hf auth login` or set HF_TOKEN",
    "RepoNotFound": "is no folder here, and is not on the Hub, or is private: check its name, and log in where it is "
    "yours",
    "RevisionNotFound": "does not exist: the repository has no such revision",
}
BAD_TOKEN = "Invalid credentials in Authorization header"

# bytes that a file may have to be fetched
LIMITS = {
    **dict.fromkeys(("generation_config.json", "hf_quant_config.json"), CONFIG_LIMIT),
    INDEX: INDEX_LIMIT,
    **dict.fromkeys(("tokenizer.json", "tokenizer_config.json"), TOKENIZER_LIMIT),
}


class Unreachable(Exception):
    """The Hub does not serve anybody now; the message says why."""


class Refused(CannotCheck):
    """The Hub does not hand out what was asked for. Where that is no config, the check does without."""


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
            f"{label} is no folder here, cannot be read from the Hub ({why}) and {absent(name)} the cache "
            f"{constants.HF_HUB_CACHE}: give a folder that holds it, or try again"
        )
    return replace(read_folder(folder, label), folder=None, note=f"{label} as the cache has it ({why})")


def cache() -> Path:
    """The user's own cache, whether it is there or not."""
    from huggingface_hub import constants

    return Path(constants.HF_HUB_CACHE)


def cached_folder(name: str, revision: str | None) -> Path | None:
    """The snapshot of a repository in the cache, where its config.json is in it."""
    from huggingface_hub import try_to_load_from_cache

    found = try_to_load_from_cache(name, "config.json", revision=revision)
    return Path(found).parent if isinstance(found, str) else None


def absent(name: str) -> str:
    """In words, why a repository was not found there."""
    try:
        (cache() / f"models--{name.replace('/', '--')}" / "snapshots").stat()
    except PermissionError:
        return "may not be looked for in"
    except OSError:
        pass
    return "is not in"


def read_online(name: str, revision: str | None, label: str) -> Files:
    """The files of a repository as it is now. Raises Unreachable and CannotCheck."""
    with ThreadPool(1) as apart:  # whoever stops waiting leaves its thread behind, which ends with the process
        try:
            return apart.apply_async(read_now, (name, revision, label)).get(SECONDS_IN_ALL)
        except multiprocessing.TimeoutError:
            raise Unreachable(f"it did not hand all out within {SECONDS_IN_ALL} seconds") from None


def read_now(name: str, revision: str | None, label: str) -> Files:
    """The same, however long it takes."""
    with own_words(label), quiet():
        repository = look_up(name, revision, label)
        folder, notes = fetch_texts(repository)
        files = read_folder(folder, label)
        tensors = files.tensors
        if tensors is None:
            tensors, why = remote_tensors(repository, folder)
            notes += [f"the safetensors headers of {label} are left aside: {why}"] if why else []
    return replace(files, folder=None, tensors=tensors, note="; ".join(notes) or None)


def look_up(name: str, revision: str | None, label: str) -> Repository:
    """The commit that ``revision`` names, and its files. The library has a call for it, which reads without end."""
    from huggingface_hub import HfApi

    library_utils().validate_repo_id(name)
    api = HfApi()
    at = f"/revision/{quote(revision, safe='')}" if revision else ""
    data = first_bytes(f"{api.endpoint}/api/models/{name}{at}?blobs=true", LIST_LIMIT + 1, label, part=False)
    if len(data) > LIST_LIMIT:
        raise CannotCheck(
            f"{label} is too large: the Hub's list of its files has more than {LIST_LIMIT:,} bytes; give a folder that "
            "holds the model alone"
        )
    try:
        info, _ = read_json_object(data, label, LIST_LIMIT)
    except CannotCheck:
        raise Unreachable(NO_HUB) from None
    commit = info.get("sha") or "main"
    if not REVISION.fullmatch(commit):
        raise Unreachable(NO_HUB)
    sizes = {file["rfilename"]: file.get("size") for file in info["siblings"] or ()}
    return Repository(api, name, revision, commit, sizes, label)


def fetch_texts(repository: Repository) -> tuple[Path, list[str]]:
    """Bring the JSON and tokenizer files into the cache; the folder where they lie, and what is left aside."""
    if "config.json" not in repository.sizes:
        raise CannotCheck(f"{repository.label} has no config.json on the Hub")
    if not fits(repository, "config.json", CONFIG_LIMIT):
        raise CannotCheck(f"{repository.label}:config.json is larger than {CONFIG_LIMIT:,} bytes")
    # by its revision, which the cache then knows for a day without network; the others by the commit
    config = fetch(repository, "config.json", repository.revision)
    notes = []
    for file, limit in LIMITS.items():
        if file not in repository.sizes:
            continue
        label = f"{repository.label}:{file}"
        try:
            with own_words(label):
                if fits(repository, file, limit):
                    fetch(repository, file, repository.commit)
        except (Refused, Unreachable) as error:
            notes.append(f"{label} is left aside: {error}")
    return Path(config).parent, notes


def fetch(repository: Repository, file: str, revision: str | None) -> str:
    """Where a file lies in the cache, once it is there."""
    given = {"repo_id": repository.name, "filename": file, "revision": revision, "etag_timeout": SECONDS}
    path: str
    try:
        path = repository.api.hf_hub_download(**given)
    except OSError as error:
        if not of_another_length(error):
            raise
        # some releases of the library go on with what an earlier try left, whatever that was
        path = repository.api.hf_hub_download(**given, force_download=True)
    return path


def of_another_length(error: BaseException | None) -> bool:
    """Whether the library found that a file is longer or shorter than was announced, for which it has no class."""
    return type(error) is OSError and error.errno is None


def fits(repository: Repository, file: str, limit: int) -> bool:
    """Whether a file is small enough to be fetched; where its size is not told, it is read up to the limit."""
    size = repository.sizes[file]
    if size is None:
        size = len(first_bytes(url_of(repository, file), limit + 1, f"{repository.label}:{file}"))
    return size <= limit


def remote_tensors(repository: Repository, folder: Path) -> tuple[dict[str, Tensor] | None, str | None]:
    """The tensors that the headers on the Hub declare; None where there is no safetensors file, or not all, and why
    where the Hub is to blame. The index is in ``folder``."""
    if INDEX in repository.sizes and not (folder / INDEX).is_file():
        return None, f"without {INDEX} it is not known which files hold them"
    files = weight_files(folder, repository.sizes, f"{repository.label}:")
    if not files or any(file not in repository.sizes for file in files):
        return None, None
    with ThreadPool(AT_ONCE) as pool:
        try:
            headers = list(pool.imap(lambda file: remote_header(repository, file).items(), files))
        except (Refused, Unreachable) as error:
            return None, str(error)
    return dict(chain.from_iterable(headers)), None


def url_of(repository: Repository, file: str) -> str:
    """Where a file of a repository is to be had."""
    from huggingface_hub import hf_hub_url

    url: str = hf_hub_url(repository.name, file, revision=repository.commit, endpoint=repository.api.endpoint)
    return url


def remote_header(repository: Repository, file: str) -> dict[str, Tensor]:
    """The tensors of one file on the Hub. Raises Refused, Unreachable, and CannotCheck for a damaged one."""
    label = f"{repository.label}:{file}"
    size = repository.sizes[file]
    if size is None:
        size = sys.maxsize
    url = url_of(repository, file)
    with own_words(label):
        data = first_bytes(url, FIRST_BYTES, label)
        if data.startswith(LFS_POINTER):
            raise Refused(f"{label} is a Git LFS pointer, not the weights")
        length = header_length(data[:8], size, label)
        if len(data) < 8 + length:
            data = first_bytes(url, 8 + length, label)
        if len(data) < 8 + length:
            raise Unreachable(f"it sent {len(data):,} bytes of {label}, and broke off")
    return parse_header(data[8 : 8 + length], size - 8 - length, label, file)


def first_bytes(url: str, count: int, label: str, *, part: bool = True) -> bytes:
    """The first ``count`` bytes of an answer, whatever else would be sent. Of a file a ``part`` is asked for."""
    utils = library_utils()
    session = utils.get_session()
    headers = {**utils.build_hf_headers(), "Accept-Encoding": "identity"}
    if part:
        headers["Range"] = f"bytes=0-{count - 1}"
    if callable(session.stream):  # httpx, since huggingface_hub 1.0; in requests it is a flag
        with session.stream("GET", url, headers=headers, timeout=SECONDS) as response:
            refuse_answer(response, label, part)
            return take(response.iter_bytes(65536), count)
    with session.get(url, headers=headers, timeout=SECONDS, stream=True) as response:
        refuse_answer(response, label, part)
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
        raise Refused(f"{label} {REFUSALS['GatedRepo']}") from None
    except errors.RepositoryNotFoundError:
        raise Refused(f"{label} {REFUSALS['RepoNotFound']}") from None
    except errors.RevisionNotFoundError:
        raise Refused(f"{label} {REFUSALS['RevisionNotFound']}") from None
    except errors.LocalEntryNotFoundError as error:
        refuse_status(status_of(error.__cause__), label)
        raise Unreachable(silence(error.__cause__)) from None
    except errors.EntryNotFoundError:
        raise Refused(f"{label} lacks a file that its own list names: try again") from None
    except errors.HFValidationError:
        raise CannotCheck(f"{label} is no folder here, and no valid name of a model on the Hub") from None
    except errors.HfHubHTTPError as error:
        refuse_status(status_of(error), label)
        raise Unreachable("it does not answer as it should") from None
    except Exception as error:  # the HTTP library's own, of which huggingface_hub has had three
        if isinstance(error, OSError) and (error.errno in DISK or (error.errno and error.filename is not None)):
            raise CannotCheck(
                f"{label} cannot be kept in the cache {constants.HF_HUB_CACHE}: {error.strerror}: see to it, or "
                "set HF_HUB_CACHE to another place"
            ) from None
        raise Unreachable(silence(error)) from None


def silence(error: BaseException | None) -> str:
    """Why there is no answer, or none that makes sense."""
    from huggingface_hub import errors

    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            return f"no secure connection comes about: {cause.reason or cause.strerror or type(cause).__name__}"
        cause = cause.__cause__ or cause.__context__
    if isinstance(error, (ValueError, LookupError, TypeError, AttributeError, errors.FileMetadataError)):
        return NO_HUB
    if of_another_length(error):
        return "it sent less, or more, than it had announced"
    return f"it does not answer: {type(error).__name__}" if error else "it does not answer"


def status_of(error: BaseException | None) -> int:
    """The HTTP status that an error of the library is about; 0 where there is none."""
    return getattr(getattr(error, "response", None), "status_code", None) or 0


def refuse_status(status: int, label: str) -> None:
    """Raise CannotCheck or Unreachable for an HTTP status that says no."""
    if status == 429 or status >= 500:
        raise Unreachable(f"it answers with status {status}")
    if status == 401:
        raise Refused(f"the Hub refuses the token used for {label}: log in anew with `hf auth login`")
    if status == 403:
        raise Refused(
            f"the Hub forbids reading {label}: ask for access on its page, or use a token that has this right"
        )
    if status >= 400:
        raise Refused(
            f"the Hub answers with status {status} for {label}: check its name, or give a folder that holds it"
        )


def refuse_answer(response: Any, label: str, of_file: bool) -> None:
    """The same for a response whose body is to be a file, or the list of all; of a refusal it is not read."""
    status, headers = response.status_code, response.headers
    code = headers.get("X-Error-Code")
    if status == 401 and not (code or of_file or headers.get("X-Error-Message") == BAD_TOKEN):
        code = "RepoNotFound"  # for who is not logged in, what is private is as what is not there
    if status >= 400 and code in REFUSALS:
        raise Refused(f"{label} {REFUSALS[code]}")
    refuse_status(status, label)
    if headers.get("Content-Type", "").startswith("text/html"):
        raise Unreachable(NO_HUB)


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

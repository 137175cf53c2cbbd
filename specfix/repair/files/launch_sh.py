"""launch.sh: the whole command with its environment. It finds its folder by itself, so it works wherever that is."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Iterator, Mapping

from specfix.deployment import Model
from specfix.deployment.shim import PLUGIN
from specfix.engines import Engine
from specfix.errors import CannotCheck
from specfix.repair.launch import SHIM, Launch, Place, diverting
from specfix.report.terminal import printable

HERE = "\ud800"  # stands for the script's folder until the text is quoted: half a character, which no path holds
JSON = "$_specfix_json"  # the same, as a part of JSON text
VARIABLE = re.compile(r"[A-Za-z_]\w*", re.ASCII)
# what bash will not set, or sets by itself, and the names of this script's own
NOT_OURS = re.compile(
    r"_|_specfix_\w*|BASH(?!_ENV$)\w*|SHELLOPTS|SHLVL|E?UID|PPID|GROUPS|DIRSTACK|FUNCNAME|PIPESTATUS|HISTCMD"
    r"|LINENO|S?RANDOM|SECONDS|EPOCH(REALTIME|SECONDS)",
    re.ASCII,
)

START = """\
#!/usr/bin/env bash
# {what}. Options for `vllm serve` may follow: bash launch.sh --port 8001
set -euo pipefail

_specfix_folder() {{  # of a file, all links followed; not every readlink has -f
  local file=$1 link
  while [ -L "$file" ]; do
    link=$(readlink -- "$file")
    case $link in /*) file=$link ;; *) file=$(dirname -- "$file")/$link ;; esac
  done
  CDPATH='' cd -P -- "$(dirname -- "$file")" && pwd -P
}}
_specfix_here=$(_specfix_folder "${{BASH_SOURCE[0]}}")
"""

SHIM_LINES = f"""\

# the shim is a vLLM plugin: it is found on PYTHONPATH, and left out where VLLM_PLUGINS is set and does not name it
export PYTHONPATH="$_specfix_here/{SHIM}${{PYTHONPATH:+:$PYTHONPATH}}"
if [ -n "${{VLLM_PLUGINS+set}}" ]; then
  case ",$VLLM_PLUGINS," in
    *,{PLUGIN},*) ;;
    *) export VLLM_PLUGINS="$VLLM_PLUGINS${{VLLM_PLUGINS:+,}}{PLUGIN}" ;;
  esac
fi
"""

NO_COLON = """\
case $_specfix_here in
  *:*) echo "launch.sh: PYTHONPATH cannot name a folder with ':' in its path: move $_specfix_here" >&2; exit 1 ;;
esac
"""

JSON_LINES = """\

# this folder as a part of JSON text
_specfix_quote='"' _specfix_slash='\\'
_specfix_json=${_specfix_here//"$_specfix_slash"/"$_specfix_slash$_specfix_slash"}
_specfix_json=${_specfix_json//"$_specfix_quote"/"$_specfix_slash$_specfix_quote"}
"""

# Links what a repository on the Hub holds beside the config that was repaired.
LINK = r"""
import hashlib, json, sys, uuid
from pathlib import Path

folder, name, revision, digest = Path(sys.argv[1]), *sys.argv[2:]
fetch = f"hf download {name}" + (f" --revision {revision}" if revision else "")
try:
    from huggingface_hub import snapshot_download
    cached = Path(snapshot_download(name, revision=revision or None, local_files_only=True))
except ImportError:
    sys.exit(f"launch.sh: {sys.executable} has no huggingface_hub, with which {name} would be found in the Hub cache")
except Exception:
    sys.exit(f"launch.sh: {name} is not in the Hub cache of this machine; first: {fetch}")
config = (cached / "config.json").read_bytes().removeprefix(b"\xef\xbb\xbf")
if hashlib.sha256(config).hexdigest() != digest:
    sys.exit(f"launch.sh: {name} in {cached} has another config.json than was repaired: run specfix fix again")
weights = {path.name for path in cached.iterdir() if path.suffix in {".safetensors", ".bin", ".pt", ".pth"}}
for index in cached.glob("*.index.json"):
    weights |= set(json.loads(index.read_bytes())["weight_map"].values())
lacking = sorted(file for file in weights if not (cached / file).exists())
if lacking or not weights:
    sys.exit(f"launch.sh: {cached} lacks weights of {name} ({', '.join(lacking) or 'all'}); first: {fetch}")
try:
    for path in cached.iterdir():
        link = folder / path.name
        if path.name != "config.json" and not (link.is_symlink() and link.readlink() == path):
            fresh = folder / f".{uuid.uuid4().hex}"  # several may start at once
            fresh.symlink_to(path)
            fresh.replace(link)
except OSError as error:
    sys.exit(f"launch.sh: the files of {name} cannot be linked in {folder}: {error.strerror}")
"""

REPOSITORY = """\

# of {name} only the config was written here: the rest is linked from the Hub cache of this machine
_specfix_vllm=$(type -P vllm) || {{ echo "launch.sh: vllm is not on PATH: activate its environment" >&2; exit 127; }}
_specfix_python=$(_specfix_folder "$_specfix_vllm")/python
[ -x "$_specfix_python" ] || _specfix_python=python3
"$_specfix_python" - "$_specfix_here/{folder}" {name} {revision} {digest} <<'PYTHON'
{script}PYTHON
"""

REFUSAL = """\

# this release takes the method from words in the draft's path, whatever is asked for
case "${{_specfix_here,,}}" in
{cases}esac
"""


def render(launch: Launch, engine: Engine, what: str, hub: Mapping[str, tuple[Place, Model]]) -> str:
    """The script. ``hub`` maps a repaired folder (draft, target) to the repository it is of, and the model as read."""
    arguments = list(words(launch))
    return "".join(
        [
            START.format(what=printable(" ".join(what.split()))),  # a comment ends where its line does
            NO_COLON if launch.shim is not None else "",
            refusal(launch, engine),
            JSON_LINES if any(JSON in word for word in arguments) else "",
            environment(launch),  # behind all that is reckoned here, and before what depends on it
            SHIM_LINES if launch.shim is not None else "",
            *(link_lines(folder, place, model) for folder, (place, model) in hub.items()),
            "\nexec vllm serve ",
            " \\\n  ".join([*arguments, '"$@"']),
            "\n",
        ]
    )


def words(launch: Launch) -> Iterator[str]:
    """The command's arguments, quoted, each flag with its value."""
    yield quoted(launch.target_in(HERE), "$_specfix_here")
    values = dict(launch.engine_args)
    if launch.hf_overrides:
        values["hf-overrides"] = dict(launch.hf_overrides)
    for flag, value in {**values, "speculative-config": launch.speculative_in(HERE)}.items():
        if isinstance(value, bool):
            yield f"--{flag}" if value else f"--no-{flag}"
        elif isinstance(value, dict):
            yield f"--{flag} {quoted(json.dumps(value, ensure_ascii=False), JSON)}"
        elif isinstance(value, list):
            yield " ".join([f"--{flag}", *(shlex.quote(str(part)) for part in value)])
        else:
            yield f"--{flag} {shlex.quote(str(value))}"


def quoted(text: str, variable: str) -> str:
    """``text`` as one word of the shell, with ``variable`` where the script's folder is meant."""
    return f'"{variable}"'.join(part and shlex.quote(part) for part in text.split(HERE))


def environment(launch: Launch) -> str:
    """Variables unset and exported. Raises CannotCheck for a name that bash cannot export."""
    lines = [f"unset {name}\n" for name in launch.unset_env]
    for name, value in launch.env.items():
        if not VARIABLE.fullmatch(name) or NOT_OURS.fullmatch(name):
            raise CannotCheck(f"--env: a bash script, as launch.sh is one, cannot set a variable called {name!r}")
        lines.append(f"export {name}={shlex.quote(value)}\n")
    return "".join(["\n", *lines]) if lines else ""


def refusal(launch: Launch, engine: Engine) -> str:
    """Where the draft lies in this folder and the folder's name would decide the method: say so, and do not start."""
    if not launch.has_draft or launch.draft is not None:
        return ""
    method = launch.speculative_config.get("method")
    cases = []
    for word, named in diverting(method, engine):
        text = f"launch.sh: {engine} takes method {named} for a draft whose path holds {word!r}: move the folder"
        cases.append(f'  *{shlex.quote(word)}*) echo {shlex.quote(text)} "$_specfix_here" >&2; exit 1 ;;\n')
    return REFUSAL.format(cases="".join(cases)) if cases else ""


def link_lines(folder: str, place: Place, model: Model) -> str:
    """What links the files of a repository into one repaired folder."""
    digest = hashlib.sha256(model.config.text.encode()).hexdigest()
    revision = shlex.quote(place.revision or "")
    return REPOSITORY.format(folder=folder, name=place.hub_id, revision=revision, digest=digest, script=LINK.lstrip())

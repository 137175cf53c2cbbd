"""From what the user wrote to a Deployment: find each model's files, read them, settle the method."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Literal, overload

from specfix.deployment import Deployment
from specfix.deployment.config import Config
from specfix.deployment.expected import as_read, check_types
from specfix.deployment.files import Files, read_config, read_folder
from specfix.deployment.hardware import Hardware
from specfix.deployment.json_text import plain, show
from specfix.deployment.kinds import decoder_layers, draft_kind, head_kind, named_kind
from specfix.deployment.machines import find_hardware
from specfix.deployment.model import Draft, Target, mtp_layers
from specfix.deployment.serving import Serving
from specfix.deployment.shim import find_shim
from specfix.errors import CannotCheck

Side = Literal["target", "draft"]

# no part of a revision may be "..", or start with a dot or a dash: the cache makes a path of it
HUB_ID = re.compile(
    r"(?P<id>[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)(?:@(?P<revision>\w[\w.-]*(?:/\w[\w.-]*)*))?", re.ASCII
)

UNLOADED = "dummy"  # the --load-format that fills a model with random numbers
# methods without a draft model of their own; the engine knows whether they exist
DRAFTLESS = frozenset({"ngram", "[ngram]", "ngram_gpu", "suffix", "custom_class", "extract_hidden_states"})
# methods whose draft may be a part of the target's own checkpoint
BUILT_IN = frozenset({"mtp", "dspark"})
# methods whose draft is a model of its own
SEPARATE = frozenset({"eagle", "eagle3", "dflash", "draft_model", "medusa", "mlp_speculator"})
# layers from which on no head of these methods is known: DFlash has up to 8, an unmarked EAGLE head up to 2
FULL_MODEL = {"eagle": 8, "eagle3": 8, "dflash": 12}


def load_deployment(
    target: str,
    draft: str | None = None,
    serving: Serving | None = None,
    hardware: Hardware | str | None = None,
) -> Deployment:
    """The deployment that is meant; ``hardware`` is a preset's name or a file, None what is found here.

    Raises CannotCheck where a model cannot be read, or where the two do not make a deployment at all.
    """
    given = serving or Serving()
    target_files = find_files(target, "target")
    served = make_target(target, target_files)
    refuse_head(served, draft)
    draft_files = find_files(draft, "draft") if draft is not None else None
    drafting = make_draft(draft, draft_files) if draft is not None and draft_files else None
    method, drafting, assumptions = settle_method(given.method, served, drafting)
    served, drafting, unread = without_unread(served, drafting, method)
    if str(given.flag("load_format")).lower() == UNLOADED:
        served, drafting = replace(served, tensors=None), of_no_weights(drafting, given)
        unread.append(f"no weight is loaded (--load-format {UNLOADED}), nor is anything held against weights")
    notes = [*(files.note for files in (target_files, draft_files) if files and files.note), *unread]
    if not isinstance(hardware, Hardware):
        if hardware is None:
            assumptions.append("the hardware is this machine")
        hardware = find_hardware(hardware)
    shim = find_shim(given.env)
    serving, said = replace(given, method=method), (*notes, *assumptions)
    return Deployment(served, drafting, serving, hardware, said, shim, method_given=given.method is not None)


def of_no_weights(draft: Draft | None, serving: Serving) -> Draft | None:
    """A draft is loaded as its target is, unless its own way is given."""
    return draft and (draft if serving.speculative.get("draft_load_config") else replace(draft, tensors=None))


def without_unread(target: Target, draft: Draft | None, method: str) -> tuple[Target, Draft | None, list[str]]:
    """Both without the wrong values that a deployment of this method never reads, and words for each of those. Raises
    CannotCheck for one that it does."""
    part = draft is not None and draft.is_part_of(target)
    own = draft is not None and draft.config is target.config
    config, told = as_read(target.config, method if draft is None or part else "")
    if config is not target.config:
        target = replace(target, config=config)
    if draft is not None and own:
        draft = replace(draft, config=target.config)
    elif draft is not None:
        config, of_draft = as_read(draft.config, method)
        told += [] if part else of_draft
        draft = replace(draft, config=config)
    return target, draft, told


@overload
def load_model(reference: str, side: Literal["target"]) -> Target: ...
@overload
def load_model(reference: str, side: Literal["draft"]) -> Draft: ...
def load_model(reference: str, side: Side) -> Target | Draft:
    """The model in a folder, in a config.json, or on the Hub as org/name[@revision]. Raises CannotCheck."""
    files = find_files(reference, side)
    model = make_target(reference, files) if side == "target" else make_draft(reference, files)
    return replace(model, config=as_read(model.config, model.kind if isinstance(model, Draft) else "")[0])


def make_target(reference: str, files: Files) -> Target:
    """The target that ``files`` hold. One without architectures has those of its model_type, which Transformers knows:
    what hangs on its class is then not known here."""
    if not files.config.values.get("model_type"):
        require_architectures(files.config)
    return Target(
        reference,
        files.config,
        files.folder,
        files.tensors,
        files.generation_config,
        files.tokenizer_files,
        modelopt=files.modelopt,
    )


def make_draft(reference: str, files: Files) -> Draft:
    """The draft that ``files`` hold. A head of a known kind needs no architectures."""
    kind = draft_kind(files.config, files.tensors)
    if kind == "draft_model":
        require_architectures(files.config)
    return Draft(
        reference,
        files.config,
        files.folder,
        files.tensors,
        files.generation_config,
        files.tokenizer_files,
        kind,
        files.config.is_speculators,
        modelopt=files.modelopt,
    )


def require_architectures(config: Config) -> None:
    """Raise CannotCheck where the config names no model class."""
    if not config.values.get("architectures"):
        raise CannotCheck(f"{config.file} has no architectures, so that no engine can tell which model it is")


def find_files(reference: str, side: Side) -> Files:
    """The files of ``reference``, here or on the Hub, with the types in its config checked."""
    if not reference.strip():
        raise CannotCheck(f"the {side} is empty: give a folder, a config.json, or org/name on the Hub")
    try:
        path = Path(reference).expanduser() if reference.startswith("~") else Path(reference)  # ./~ is a name
        if path.is_dir():
            files = read_folder(path)
        elif path.exists():
            files = Files(read_config(path, str(path)))
        elif path.is_symlink():
            raise CannotCheck(f"the {side} {show(reference)} is a link that leads nowhere")
        else:
            files = find_on_hub(reference, side)
    except (OSError, ValueError, RuntimeError) as error:  # a name too long, a NUL, nobody's home
        raise CannotCheck(f"the {side} {show(reference)} cannot be read: {error}") from None
    check_types(files.config)
    return files


def find_on_hub(reference: str, side: Side) -> Files:
    """The files of org/name[@revision]."""
    match = HUB_ID.fullmatch(reference)
    if match is None:
        raise CannotCheck(f"the {side} {show(reference)} does not exist here, and is no org/name[@revision] on the Hub")
    from specfix.deployment.hub import read_repository

    return read_repository(match["id"], match["revision"])


def refuse_head(target: Target, draft: str | None) -> None:
    """Raise CannotCheck where the target's own files say that it is a drafting head."""
    kind = head_kind(target.config, target.tensors)
    if kind is None:
        return
    if named_kind(target.config) is None and (kind in BUILT_IN or target.mtp_layers):
        return  # marks of what a model may hold beside its own layers make no head of it
    head = f"{target.reference} is a draft ({plain(kind)})"
    if draft == target.reference:
        raise CannotCheck(f"TARGET and DRAFT are one and the same, and {head}: give its target first")
    if draft is not None:
        raise CannotCheck(f"TARGET and DRAFT look swapped: {head}, and {draft} is given as its draft")
    verifier = speculators_verifier(target.config)
    if verifier:
        raise CannotCheck(f"{head} made for {verifier}: check {verifier} with it as DRAFT")
    raise CannotCheck(f"{head}, not a model to serve: give its target first")


def speculators_verifier(config: Config) -> str | None:
    """The target that a speculators draft was made for."""
    block = config.values.get("speculators_config")
    verifier = block.get("verifier") if isinstance(block, dict) else None
    name = verifier.get("name_or_path") if isinstance(verifier, dict) else None
    return plain(name) if isinstance(name, str) else None


def settle_method(given: str | None, target: Target, draft: Draft | None) -> tuple[str, Draft | None, list[str]]:
    """(method, draft, assumptions): the method given, else what the files say. Raises CannotCheck."""
    if draft is None:
        return settle_without_draft(given, target)
    built_in = same_model(target, draft)
    if given is None:
        if built_in and not mtp_layers(target.config):
            raise CannotCheck(
                f"TARGET and DRAFT are both {draft.reference}, which states no MTP layers of its own: give its draft, "
                "or --method draft_model where it is to draft for itself"
            )
        kind = "mtp" if built_in and mtp_layers(target.config) else draft.kind
        draft = replace(draft, kind=kind)
        return kind, draft, [f"method {plain(kind)}: {why_kind(draft)}"]
    if given in DRAFTLESS:
        return given, None, [f"the draft is left aside: method {given} has none"]
    if built_in and given in SEPARATE - {"draft_model"}:
        raise CannotCheck(f"TARGET and DRAFT are both {draft.reference}; a {given} draft is a model of its own")
    refuse_full_model(given, target, draft)
    return given, draft, []


def refuse_full_model(method: str, target: Target, draft: Draft) -> None:
    """Raise CannotCheck where a head is asked for and the draft is certainly a model of its own."""
    layers = decoder_layers(draft.config, draft.tensors)
    if layers is None or method not in FULL_MODEL or draft.kind != "draft_model":
        return
    if layers >= FULL_MODEL[method] or (layers > 2 and layers == decoder_layers(target.config)):
        name = plain(draft.architectures[0])
        raise CannotCheck(
            f"{draft.reference} is no {method} draft for {target.reference}: nothing in its files marks a drafting "
            f"head, and it is a {name} of {layers} layers; give the head, or --method draft_model"
        )


def settle_without_draft(given: str | None, target: Target) -> tuple[str, Draft | None, list[str]]:
    """The same where no draft was given: it is in the target's own files, or there is none."""
    if given in SEPARATE:
        raise CannotCheck(f"method {given} needs a DRAFT beside {target.reference}")
    if given is None and not target.mtp_layers:
        raise CannotCheck(
            f"{target.reference} states no MTP layers of its own: give a DRAFT, or a --method without one"
        )
    if given is None or given in BUILT_IN or given.endswith("_mtp"):
        own = Draft(
            target.reference,
            target.config,
            target.folder,
            target.tensors,
            target.generation_config,
            target.tokenizer_files,
            given if given in BUILT_IN else "mtp",
            modelopt=target.modelopt,
        )
        return given or "mtp", own, [] if given else ["method mtp: the target has MTP layers"]
    return given, None, []  # what has no draft, and what the engine may not know at all


def same_model(target: Target, draft: Draft) -> bool:
    """Whether both names lead to the same files. Folders count, not what a config.json in them links to: two revisions
    in a cache share one."""
    one, other = Path(target.config.file), Path(draft.config.file)
    return one.name == other.name and one.parent.resolve() == other.parent.resolve()


def why_kind(draft: Draft) -> str:
    """Where the kind comes from, for an assumption."""
    if draft.kind == "draft_model":
        return "nothing in the draft's files says otherwise"
    if named_kind(draft.config) == draft.kind:
        names = [*draft.architectures, draft.model_type, draft.kind]
        return f"the draft is a {plain(next(name for name in names if name))}"
    return "by marks in the draft's files"

"""A target or a draft: its config and, where they are at hand, headers, tokenizer and generation config."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Mapping
from dataclasses import field
from functools import cached_property
from pathlib import Path
from typing import Any

from specfix.deployment.config import Config
from specfix.deployment.expected import LAYERS, LIMIT, is_count, is_integer
from specfix.deployment.json_text import read_tokenizer, show
from specfix.deployment.location import Location
from specfix.deployment.rope import Rope, ropes
from specfix.errors import CannotCheck, MissingFact, known
from specfix.record import record

# keys that state how many layers of multi-token prediction a model has, in the order in which they count
MTP_KEYS = ("num_mtp_modules", "mtp_num_hidden_layers", "num_nextn_predict_layers", "num_mtp_layers")

# Where drafts are known to state the ids of the target's layers that they read, in the order in which they count. An
# engine may look elsewhere too: see Draft.aux_ids_at.
AUX_PLACES = (
    "eagle_aux_hidden_state_layer_ids",
    "eagle_config.eagle_aux_hidden_state_layer_ids",
    "dflash_config.target_layer_ids",
    "target_layer_ids",
    "dspark_target_layer_ids",
    "aux_hidden_state_layer_ids",
    "eagle_config.layer_ids",
    "dflash_config.layer_ids",
)


# types of whole numbers in a safetensors header to those of Python's arrays, and how many bytes are read of one
INTEGERS = {"I64": "q", "I32": "i", "BOOL": "b", "U8": "B"}
VALUES_LIMIT = 4_000_000


@record(frozen=True)
class Tensor:
    """A tensor as a safetensors header declares it. ``dtype`` is the header's name for it (BF16); ``begin`` and ``end``
    are where its data lie in the file."""

    dtype: str
    shape: tuple[int, ...]
    file: str
    begin: int = field(default=0, compare=False)
    end: int = field(default=0, compare=False)


@record(frozen=True)
class Model:
    """What both sides have.

    ``reference`` is what the user wrote; ``folder`` is None where only a config.json or a Hub snapshot was
    given; ``tensors`` is None where no safetensors header is to be had; ``tokenizer_files`` are the paths of
    those that are at hand; ``modelopt`` is ModelOpt's hf_quant_config.json.
    """

    reference: str
    config: Config
    folder: Path | None = None
    tensors: Mapping[str, Tensor] | None = None
    generation_config: Config | None = None
    tokenizer_files: tuple[str, ...] = ()
    modelopt: Config | None = field(default=None, kw_only=True)

    @cached_property
    def served(self) -> str:
        """The folder that the engine will be given, or the id on the Hub."""
        if self.folder is not None:
            return str(self.folder.absolute())
        file = Path(self.config.file)
        alone = file.name == "config.json" and file.is_file()
        return str(file.absolute().parent) if alone else self.reference.partition("@")[0]

    @cached_property
    def architectures(self) -> tuple[str, ...]:
        """As the config states them; of a speculators draft the engine makes its own."""
        return tuple(self.config.values.get("architectures") or ())

    @cached_property
    def model_type(self) -> str | None:
        """model_type of the language model (``hf_text_config.model_type``)."""
        found: str | None = self.config.value("model_type")
        return found

    @cached_property
    def ropes(self) -> tuple[Rope, ...]:
        return ropes(self.config)

    def at(self, key: str) -> Location:
        """Location of a key, wherever it is nested; of where it would stand, when it is absent."""
        found = self.config.find(key)
        if found:
            return self.config.at(found[0])
        innermost, _ = self.config.levels[0]
        home = "" if key in AUX_PLACES else innermost  # what only a draft has stands at the top
        return self.config.at(f"{home}/{key}")

    def integer(self, *keys: str) -> int:
        """Value of the first of ``keys`` that is there. Raises MissingFact naming file and key."""
        found = self.config.find(*keys)
        if found is None:
            raise MissingFact(f"{keys[0]} in {self.config.file}")
        return self._whole(*found)

    def number(self, key: str) -> int | None:
        """Value of ``key``, or None where the config has none."""
        found = self.config.find(key)
        return None if found is None else self._whole(*found)

    def _whole(self, pointer: str, value: Any) -> int:
        if type(value) is int and abs(value) <= LIMIT:  # as nearly all are
            return value
        if not is_integer(value):  # a key that is not checked when the config is loaded
            raise MissingFact(f"a whole number at {pointer} in {self.config.file}, which has {show(value)}")
        return int(value)

    def tensor(self, *names: str) -> Tensor:
        """The first of ``names`` in the headers. Raises MissingFact where there is none."""
        if self.tensors is None:
            raise MissingFact(f"a safetensors header of {self.reference}")
        for name in names:
            if name in self.tensors:
                return self.tensors[name]
        raise MissingFact(f"a tensor {names[0]} in the safetensors header of {self.reference}")

    def integers(self, tensor: Tensor) -> array[int]:
        """The numbers of a small tensor of whole numbers or truth values: the only data of weights that are ever read.

        Raises MissingFact where they are not at hand.
        """
        kind = INTEGERS.get(tensor.dtype)
        what = f"the numbers of a tensor of {self.reference}"
        if self.folder is None or kind is None or not 0 < tensor.end - tensor.begin <= VALUES_LIMIT:
            raise MissingFact(what)
        values = array(kind)
        try:
            with (self.folder / tensor.file).open("rb") as file:
                file.seek(tensor.begin)
                values.frombytes(file.read(tensor.end - tensor.begin))
        except (OSError, ValueError):
            raise MissingFact(what) from None
        if sys.byteorder == "big":
            values.byteswap()
        return values

    def tokenizer_path(self, name: str) -> Path:
        """Where a tokenizer file such as ``tokenizer.json`` lies. Raises MissingFact where it is not to be had."""
        path = next((Path(file) for file in self.tokenizer_files if Path(file).name == name), None)
        return known(path, f"{name} of {self.reference}")

    def tokenizer(self, name: str) -> Mapping[str, Any]:
        """What a tokenizer file holds, but for merges. Raises MissingFact where it is not to be had."""
        path = self.tokenizer_path(name)
        try:
            return read_tokenizer(path, str(path))
        except CannotCheck as error:
            raise MissingFact(str(error)) from None


@record(frozen=True)
class Target(Model):
    """The model whose tokens are served."""

    @cached_property
    def mtp_layers(self) -> int | None:
        """Layers of multi-token prediction that the config states: 0 is none, None is silence."""
        return mtp_layers(self.config)


@record(frozen=True)
class AuxIds:
    """Auxiliary hidden-state layer ids as a draft states them, before any engine shifts them."""

    ids: tuple[int, ...]
    pointer: str


@record(frozen=True)
class Draft(Model):
    """The model that drafts.

    ``kind`` is what its files say that it is: eagle, eagle3, mtp, dflash, dspark, draft_model, medusa,
    mlp_speculator; ``speculators``: the config is in the speculators library's format.
    """

    kind: str = "draft_model"
    speculators: bool = False

    def is_part_of(self, target: Model) -> bool:
        """Whether the draft is in the target's own checkpoint. Their configs may differ all the same: flags that
        override the target's do not reach it in every release."""
        return self.config.file == target.config.file

    def aux_places(self) -> dict[str, AuxIds]:
        """Every known place that holds ids, by dotted key, in the order in which they count; no empty list."""
        return {key: ids for key in AUX_PLACES if (ids := self.aux_ids_at(key))}

    def aux_ids_at(self, place: str) -> AuxIds | None:
        """The ids at a dotted key, whoever names it; None where there are none.

        vLLM reads the ``aux_hidden_state_layer_ids`` of a speculators draft as
        eagle_aux_hidden_state_layer_ids, so they are found under that name too.
        """
        found = self._ids(place)
        if found is None and self.speculators and place == "eagle_aux_hidden_state_layer_ids":
            return self._ids("aux_hidden_state_layer_ids")
        return found

    @cached_property
    def aux_ids(self) -> AuxIds | None:
        """From the first place that holds them; None where none does."""
        return next(iter(self.aux_places().values()), None)

    def _ids(self, dotted: str) -> AuxIds | None:
        block, _, key = dotted.rpartition(".")
        found = self.config.find(block or key)
        if found is None:
            return None
        pointer, value = found
        if block:
            pointer, value = f"{pointer}/{key}", value.get(key) if isinstance(value, Mapping) else None
        return AuxIds(tuple(map(int, value)), pointer) if value and LAYERS[0](value) else None


def mtp_layers(config: Config) -> int | None:
    """MTP layers that ``config`` states: the first count that is not 0."""
    counts = [config.value(key) for key in MTP_KEYS]
    inner = config.value("mtp_config")  # Inkling
    counts.append(inner.get("num_nextn_predict_layers") if isinstance(inner, Mapping) else None)
    stated = [int(count) for count in counts if is_count(count)]  # the type of these is looked at later
    return next((count for count in stated if count), 0) if stated else None

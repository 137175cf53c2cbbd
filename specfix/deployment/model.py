"""A target or a draft: its config and, where they are at hand, headers, tokenizer and generation config."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from specfix.deployment.config import Config
from specfix.deployment.location import Location
from specfix.deployment.rope import Rope, ropes
from specfix.errors import MissingFact


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor as a safetensors header declares it. ``dtype`` is the header's name (BF16); ``file`` holds it."""

    dtype: str
    shape: tuple[int, ...]
    file: str


@dataclass(frozen=True)
class Model:
    """What both sides have. ``reference`` is what the user wrote; ``folder`` is None where only a config.json or a
    Hub snapshot was given; ``tensors`` is None where no safetensors header is to be had."""

    reference: str
    config: Config
    folder: Path | None = None
    tensors: Mapping[str, Tensor] | None = None
    generation_config: Config | None = None
    tokenizer_files: tuple[str, ...] = ()

    @cached_property
    def architectures(self) -> tuple[str, ...]:
        found = self.config.values.get("architectures")
        return tuple(found) if isinstance(found, list) else ()

    @cached_property
    def model_type(self) -> str | None:
        """model_type of the language model (``hf_text_config.model_type``)."""
        found = self.config.find("model_type")
        return found[1] if found else None

    @cached_property
    def ropes(self) -> tuple[Rope, ...]:
        return ropes(self.config)

    def at(self, key: str) -> Location:
        """Location of a key, wherever it is nested; of where it would stand, when it is absent."""
        found = self.config.find(key)
        return self.config.at(found[0] if found else f"/{key}")

    def integer(self, *keys: str) -> int:
        """Value of the first of ``keys`` that is there. Raises MissingFact naming file and key."""
        found = self.config.find(*keys)
        if found is None:
            raise MissingFact(f"{keys[0]} in {self.config.file}")
        return int(found[1])

    def number(self, key: str) -> int | None:
        """Value of ``key``, or None where the config has none."""
        found = self.config.find(key)
        return int(found[1]) if found else None

    def tensor(self, *names: str) -> Tensor:
        """The first of ``names`` in the headers. Raises MissingFact where there are no headers or no such tensor."""
        if self.tensors is None:
            raise MissingFact(f"a safetensors header of {self.reference}")
        for name in names:
            if name in self.tensors:
                return self.tensors[name]
        raise MissingFact(f"a tensor {names[0]} in the safetensors header of {self.reference}")


@dataclass(frozen=True)
class Target(Model):
    """The model whose tokens are served."""


@dataclass(frozen=True, slots=True)
class AuxIds:
    """Auxiliary hidden-state layer ids as a draft states them, before any engine shifts them."""

    ids: tuple[int, ...]
    pointer: str


@dataclass(frozen=True)
class Draft(Model):
    """The model that drafts. ``kind`` is what its files say that it is: eagle, eagle3, mtp, dflash, dspark,
    draft_model, medusa, mlp_speculator; ``speculators``: the config is in the speculators library's format."""

    kind: str = "draft_model"
    speculators: bool = False

    @cached_property
    def aux_ids(self) -> AuxIds | None:
        """From the first of the five places that holds them; None where none does."""
        raise NotImplementedError


def value_of(config: Config, key: str) -> Any:
    """Value of ``key`` or None."""
    found = config.find(key)
    return found[1] if found else None

"""Rows of rotary tables, read from small sources of the two shapes that releases have."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from specfix.engines.facts.drafting import RopeFacts
from specfix.engines.find import find_engine
from specfix.engines.readers.rope import read_rope
from specfix.engines.source.tree import SourceTree

FOLDER = "model_executor/layers/rotary_embedding"
CLASSES = """
    class RotaryEmbedding:
        def __init__(self, head_size, rotary_dim, max_position_embeddings, base):
            self.max_position_embeddings = max_position_embeddings

        def _compute_cos_sin_cache(self):
            return waves(torch.arange(self.max_position_embeddings, dtype=float))

    class ScaledEmbedding(RotaryEmbedding):
        def __init__(self, head_size, rotary_dim, max_position_embeddings, base, scaling_factor):
            super().__init__(head_size, rotary_dim, max_position_embeddings, base)

        def _compute_cos_sin_cache(self):
            for scaling_factor in self.scaling_factors:
                rows = self.max_position_embeddings * scaling_factor
                t = torch.arange(rows)
            return t

    class StretchedEmbedding(RotaryEmbedding):
        def _compute_cos_sin_cache(self):
            return torch.arange(self.max_position_embeddings * self.scaling_factor)

    class ManyEmbedding(RotaryEmbedding):
        def __init__(self, head_size, rotary_dim, max_position_embeddings, base, *, times=4, factor=None):
            self.room = max_position_embeddings * times
            super().__init__(head_size, rotary_dim, self.room, base)

        def _compute_cos_sin_cache(self):
            if self.scaling_factor is None:
                return super()._compute_cos_sin_cache()
            return StretchedEmbedding._compute_cos_sin_cache(self)

    class OddEmbedding(RotaryEmbedding):
        def _compute_cos_sin_cache(self):
            return torch.arange(self.chunk + self.max_position_embeddings)

    class TwoTablesEmbedding:
        def __init__(self, head_size, rotary_dim, max_position_embeddings, original_max_position_embeddings):
            self.original_max_position_embeddings = original_max_position_embeddings
            short = self._compute_cos_sin_cache(original_max_position_embeddings, self.short)
            short = short.to(float)
            long = self._compute_cos_sin_cache(max_position_embeddings, self.long)
            self.table = torch.cat([short, long], dim=0)

        def _compute_cos_sin_cache(self, max_position_embeddings, factors):
            return torch.arange(max_position_embeddings)

        def forward(self, positions):
            k = self.original_max_position_embeddings
            return self.table[positions + torch.full_like(positions, k)]

    class OneOfThemEmbedding(TwoTablesEmbedding):
        def forward(self, positions):
            return self.table[positions]
"""
FLAT = """
    from .classes import ManyEmbedding, OddEmbedding, RotaryEmbedding, ScaledEmbedding, StretchedEmbedding
    from .classes import OneOfThemEmbedding, TwoTablesEmbedding

    def get_rope(head_size, max_position, rope_parameters, dual=None):
        if dual is not None:
            rotary_emb = OddEmbedding(head_size, head_size, max_position, 1)
        elif scaling_type == "default":
            if "mrope_section" in rope_parameters:
                rotary_emb = ManyEmbedding(head_size, head_size, max_position, 1)
            else:
                rotary_emb = RotaryEmbedding(head_size, head_size, max_position, 1)
        elif scaling_type == "linear":
            factor = rope_parameters["factor"]
            rotary_emb = ScaledEmbedding(head_size, head_size, max_position, 1, factor)
        elif scaling_type == "dynamic":
            if "alpha" in rope_parameters:
                rotary_emb = RotaryEmbedding(head_size, head_size, max_position, 1)
            elif "factor" in rope_parameters:
                rotary_emb = StretchedEmbedding(head_size, head_size, max_position, 1)
            else:
                raise ValueError("neither")
        elif scaling_type == "yarn":
            original_max_position = rope_parameters["original_max_position_embeddings"]
            if "mrope_section" in rope_parameters:
                rotary_emb = ManyEmbedding(head_size, 2, original_max_position, 1, scaling_factor=factor)
            else:
                rotary_emb = StretchedEmbedding(head_size, head_size, original_max_position, 1)
        elif scaling_type in ["deep_yarn", "deep_llama"]:
            if rope_parameters.get("new"):
                cls = StretchedEmbedding
            else:
                cls = ScaledEmbedding
            rotary_emb = cls(head_size, head_size, original_max_position, 1)
        elif scaling_type == "odd":
            rotary_emb = OddEmbedding(head_size, head_size, max_position, 1)
        elif scaling_type == "quotient":
            scaling_factor = rope_parameters["factor"]
            if "original_max_position_embeddings" in rope_parameters:
                original_max_position = rope_parameters["original_max_position_embeddings"]
                scaling_factor = max_position / original_max_position
            else:
                original_max_position = max_position
            rotary_emb = StretchedEmbedding(head_size, 2, original_max_position, 1, scaling_factor)
        elif scaling_type == "computed":
            scaling_factor = compute(rope_parameters)
            rotary_emb = StretchedEmbedding(head_size, 2, max_position, 1, scaling_factor)
        elif scaling_type == "long":
            original_max_position = rope_parameters["original_max_position_embeddings"]
            rotary_emb = TwoTablesEmbedding(head_size, 2, max_position, original_max_position)
        elif scaling_type == "odd_long":
            rotary_emb = OneOfThemEmbedding(head_size, 2, max_position, original_max_position)
        else:
            raise ValueError(f"unknown type {scaling_type}")
        return rotary_emb
"""
NESTED = """
    from .classes import RotaryEmbedding, StretchedEmbedding

    def get_rope(head_size, rotary_dim, max_position, rope_parameters):
        if not rope_parameters:
            rotary_emb = RotaryEmbedding(head_size, rotary_dim, max_position, 1)
        else:
            scaling_type = rope_parameters["rope_type"]
            if scaling_type == "dynamic":
                rotary_emb = StretchedEmbedding(head_size, rotary_dim, max_position, 1)
        return rotary_emb
"""


def read(root: Path, get_rope: str, classes: str = CLASSES) -> tuple[RopeFacts, dict[str, str]]:
    (root / FOLDER).mkdir(parents=True)
    (root / FOLDER / "__init__.py").write_text(dedent(get_rope))
    (root / FOLDER / "classes.py").write_text(dedent(classes))
    unknown: dict[str, str] = {}
    return read_rope(SourceTree(root), unknown), unknown


def test_each_type_has_the_rows_of_its_class(tmp_path: Path) -> None:
    facts, unknown = read(tmp_path, FLAT)
    assert facts.rows == {
        "deep_llama": "original*factor",
        "deep_yarn": "original*factor",
        "default": "max_position",
        "default+mrope_section": "max_position*4",
        "dynamic": "max_position*factor",
        "dynamic+alpha": "max_position",
        "dynamic+factor": "max_position*factor",
        "linear": "max_position*factor",
        "computed": "other",
        "long": "max_position",
        "odd": "other",
        "odd_long": "other",
        "quotient": "max_position*factor",
        "quotient+original_max_position_embeddings": "max_position",
        "yarn": "original*factor",
        "yarn+mrope_section": "original*factor*4",
    }
    assert facts.mrope == "max_position*4"
    assert facts.needed == {
        "dynamic": ("alpha|factor",),
        "linear": ("factor",),
        "long": ("original_max_position_embeddings",),
        "quotient": ("factor",),
        "yarn": ("original_max_position_embeddings",),
    }
    assert set(unknown) == {"rope.rows.computed", "rope.rows.odd", "rope.rows.odd_long", "rope.type_pairs"}


def test_the_types_that_are_known(tmp_path: Path) -> None:
    facts, unknown = read(tmp_path / "refuses", FLAT)
    named = ("computed", "deep_llama", "deep_yarn", "default", "dynamic", "linear", "long", "odd", "odd_long")
    assert facts.types == (*named, "quotient", "yarn") and "rope.types" not in unknown
    facts, unknown = read(tmp_path / "takes_any", NESTED)
    assert facts.types is None and "rope.types" in unknown


@pytest.mark.parametrize(
    ("test", "bounded"),
    [
        (
            "if partial_rotary_factor <= 0.0 or partial_rotary_factor > 1.0: raise ValueError(partial_rotary_factor)",
            True,
        ),
        ("if partial_rotary_factor <= 0.0 or partial_rotary_factor > 1.0: log(partial_rotary_factor)", False),
        ("if partial_rotary_factor < 1.0: rotary_dim = int(rotary_dim * partial_rotary_factor)", False),
    ],
)
def test_the_share_that_is_rotated(tmp_path: Path, test: str, bounded: bool) -> None:
    facts, _ = read(
        tmp_path, FLAT.replace("        if dual is not None:", f"        {test}\n        if dual is not None:")
    )
    assert facts.share_bounded is bounded
    assert facts.rows and facts.rows["linear"] == "max_position*factor"


@pytest.mark.parametrize(
    ("types", "found"),
    [("float", ("deep_llama", "deep_yarn", "linear")), ("(int, float)", ()), ("float | int", ()), ("list", ())],
)
def test_a_factor_that_must_be_a_fraction(tmp_path: Path, types: str, found: tuple[str, ...]) -> None:
    first = "            super().__init__(head_size, rotary_dim, max_position_embeddings, base)\n"
    taken = (
        f"            if isinstance(scaling_factors, {types}):\n                scaling_factors = [scaling_factors]\n"
    )
    head, scaled, rest = CLASSES.partition("class ScaledEmbedding")
    facts, _ = read(tmp_path, FLAT, head + scaled + rest.replace(first, taken + first, 1))
    assert facts.fractions_only == found


def test_the_older_shape_without_parameters_first(tmp_path: Path) -> None:
    facts, unknown = read(tmp_path, NESTED)
    assert facts.rows == {"default": "max_position", "dynamic": "max_position*factor"}
    assert facts.mrope is None
    assert set(unknown) == {"rope.mrope", "rope.types", "rope.type_pairs"}


def test_a_source_without_get_rope(tmp_path: Path) -> None:
    facts, unknown = read(tmp_path, "")
    assert facts == RopeFacts(None, None)
    assert set(unknown) == {"rope.rows", "rope.mrope", "rope.needed", "rope.types", "rope.type_pairs"}


@pytest.mark.parametrize(("version", "dynamic"), [("0.21.0", "max_position*factor"), ("0.22.1", "max_position")])
def test_the_shipped_releases(version: str, dynamic: str) -> None:
    rows = find_engine(version).rope.rows
    assert rows is not None
    assert rows["dynamic"] == dynamic
    assert (rows["llama3"], rows["linear"], rows["yarn"]) == (
        "max_position",
        "max_position*factor",
        "original*factor",
    )
    assert rows["longrope"] == "max_position"

"""What a draft's class makes of a checkpoint's names: by the shape of the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from specfix.engines.readers.renames import Renames, read_renames
from specfix.engines.source.classes import Classes
from specfix.engines.source.tree import SourceTree

MODELS = "model_executor/models"
WITH_MAPPER = "return AutoWeightsLoader(self).load_weights(weights, mapper=self.hf_to_vllm_mapper)"
OUTER = """
        for name, weight in weights:
            if 'd2t' in name:
                name = name.replace('d2t', 'draft_id_to_target_id')
            elif 'lm_head' not in name:
                name = 'model.' + name
        AutoWeightsLoader(self).load_weights(weights)
"""
# as vLLM 0.33.0 has it
PATTERN = r"(?<![A-Za-z0-9_])midlayer(?=\.|\*|$)"


def read(folder: Path, inner: str, mapper: str = "", outer: str = OUTER) -> Renames:
    code = f"""
class Inner:
    hf_to_vllm_mapper = WeightsMapper({mapper})
    def load_weights(self, weights):
        {inner}
    def _other(self, weights):
        for name, weight in weights:
            name = name.replace("block.", "layers.")
            yield name, weight
    def _paired(self, name, weight):
        return name.replace("gamma", "weight"), weight
class Outer:
    def load_weights(self, weights):
        {outer}
"""
    path = folder / MODELS / "draft.py"
    path.parent.mkdir(parents=True)
    path.write_text(code)
    classes = Classes(SourceTree(folder))
    (model,), (draft,) = classes.at("draft:Inner"), classes.at("draft:Outer")
    assert model and draft
    return read_renames(classes.lineage(draft), classes.lineage(model))


@pytest.mark.parametrize(
    ("mapper", "found"),
    [
        ("", Renames()),
        ("orig_to_new_substr={'midlayer.': 'layers.0.'}", Renames(parts={"midlayer.": "layers.0."})),
        ("orig_to_new_prefix={'model.': ''}", Renames(prefixes={"model.": ""})),
        (f"orig_to_new_regex={{re.compile({PATTERN!r}): 'layers.0'}}", Renames(patterns={PATTERN: "layers.0"})),
        ("orig_to_new_stacked={'.q_proj': ('.qkv_proj', 'q')}", Renames()),
        ("orig_to_new_substr={'rotary': None}, orig_to_new_prefix={'mtp.': None}", Renames(dropped={"rotary", "mtp."})),
        ("orig_to_new_suffix={'.gamma': '.weight'}", Renames(unread=True)),
        ("orig_to_new_renaming=[WeightRenaming('a', 'b')]", Renames(unread=True)),
        ("orig_to_new_substr=NAMES", Renames(unread=True)),
        ("orig_to_new_substr={**NAMES}", Renames(unread=True)),
        ("orig_to_new_regex={re.compile('mtp'): None}", Renames(unread=True)),
        ("**given", Renames(unread=True)),
    ],
)
def test_a_mapper(tmp_path: Path, mapper: str, found: Renames) -> None:
    assert read(tmp_path / "a", WITH_MAPPER, mapper) == found
    assert read(tmp_path / "b", "return AutoWeightsLoader(self).load_weights(weights)", mapper) == Renames()
    applied = "weights = self.hf_to_vllm_mapper.apply(weights)"
    assert read(tmp_path / "c", applied, mapper) == found


@pytest.mark.parametrize(
    ("key", "new"),
    [
        ("'(a+)+$'", "'b'"),
        ("'a*'", "'b'"),
        ("'a{2}'", "'b'"),
        ("'(a|a)(a|a)(a|a)b'", "'c'"),
        ("'(?=(a|a)(a|a))b'", "'c'"),
        (r"r'(a)\1'", "'b'"),
        ("'(?<=a|bc)d'", "'e'"),  # Python refuses it
        (f"'{'a' * 201}'", "'b'"),
        ("'a', re.I", "'b'"),
        ("'layer'", r"r'\g<0>s'"),
        ("NAME", "'b'"),
    ],
)
def test_patterns_that_are_not_carried(tmp_path: Path, key: str, new: str) -> None:
    found = read(tmp_path, WITH_MAPPER, f"orig_to_new_regex={{re.compile({key}): {new}}}")
    assert found.unread and not found.patterns


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("name = name.removeprefix('model.')", Renames(prefixes={"model.": ""})),
        (
            "if 'midlayer.' in name: name = name.replace('midlayer.', 'layers.0.')",
            Renames(parts={"midlayer.": "layers.0."}),
        ),
        ("for new, old, i in stacked: name = name.replace(old, new)", Renames()),
        ("made = name.replace(old, new); name = made", Renames()),
        ("name = maybe_remap_kv_scale_name(name, params)", Renames()),
        ("pass", Renames()),
        ("name = name.split('.', 1)[1]", Renames(unread=True)),
        ("_, _, name = name.partition('.')", Renames(unread=True)),
        ("made = 'layers.' + rest; name = made", Renames(unread=True)),
        ("yield name.replace('midlayer.', 'layers.0.'), weight", Renames(parts={"midlayer.": "layers.0."})),
        ("yield name, weight", Renames()),
        ("yield name + 's', weight", Renames(unread=True)),
        ("weights = [('layers.' + name, weight) for name, weight in weights]", Renames(unread=True)),
        ("name, weight = self._paired(name, weight)", Renames(parts={"gamma": "weight"})),
        ("name = self._other(weights)", Renames(parts={"block.": "layers."}, unread=True)),
        ("name, weight = paired(name, weight)", Renames(unread=True)),
        ("name, weight = inputs", Renames()),
        ("name = re.sub('a', 'b', name)", Renames(unread=True)),
        ("name = f'layers.{name}'", Renames(unread=True)),
        ("name = 'layers.' + name", Renames(unread=True)),
        ("name = name.removesuffix('.gamma')", Renames(unread=True)),
        ("name = name.replace(NAMES[0], '')", Renames(unread=True)),
    ],
)
def test_a_loop_over_names(tmp_path: Path, statement: str, found: Renames) -> None:
    assert read(tmp_path, f"for name, weight in weights:\n            {statement}") == found


@pytest.mark.parametrize(
    ("outer", "unread"),
    [
        (OUTER, False),
        (OUTER.replace("'model.' + name", "'model.head.' + mapped"), True),
        (OUTER.replace("'model.' + name", "'model.' + name[4:]"), True),
        (OUTER + "        mapper = WeightsMapper(orig_to_new_substr={'a': 'b'})", True),
        (OUTER + "        mapper = WeightsMapper(orig_to_new_substr={'a': None})", False),
        (OUTER + "        mapper = WeightsMapper(orig_to_new_stacked={'a': ('b', 0)})", False),
    ],
)
def test_the_class_around_the_model(tmp_path: Path, outer: str, unread: bool) -> None:
    assert read(tmp_path, "pass", outer=outer) == Renames(unread=unread)


def test_only_the_loading_that_runs_counts(tmp_path: Path) -> None:
    mapper = "orig_to_new_substr={'midlayer.': 'layers.0.'}"
    itself = OUTER.replace("AutoWeightsLoader(self).load_weights(weights)", "fill(params)")
    assert read(tmp_path / "a", WITH_MAPPER, mapper, itself) == Renames()
    called = "return AutoWeightsLoader(self).load_weights(self._other(weights))"
    assert read(tmp_path / "b", called) == Renames(parts={"block.": "layers."})
    scales = "weights = self.quant_config.get_cache_scale_mapper().apply(weights)"
    assert read(tmp_path / "c", scales) == Renames()
    for unknown in ("mapper.apply(weights)", "load(weights, mapper=self.quant_config.mapper)", "load(mapper=other())"):
        assert read(tmp_path / unknown, unknown) == Renames(unread=True)


def test_the_pattern_of_a_release_changes_whole_words_alone() -> None:
    names = ("midlayer.fc", "a.midlayer", "midlayer_extra.fc", "submidlayer.fc")
    assert [re.sub(PATTERN, "layers.0", name) for name in names] == ["layers.0.fc", "a.layers.0", *names[2:]]

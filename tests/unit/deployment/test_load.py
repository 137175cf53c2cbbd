from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from specfix.deployment import Draft, Serving
from specfix.deployment.load import load_deployment, load_model
from specfix.errors import CannotCheck

from .samples import EAGLE3, LLAMA, SPECULATORS, TENSORS, write_model

TENSOR = {"dtype": "BF16", "shape": [4], "data_offsets": [0, 8]}


@pytest.fixture
def target(tmp_path: Path) -> str:
    return str(write_model(tmp_path / "target", LLAMA))


@pytest.fixture
def draft(tmp_path: Path) -> str:
    return str(write_model(tmp_path / "draft", EAGLE3, TENSORS))


def refusal(target: str, draft: str | None = None, serving: Serving | None = None) -> str:
    with pytest.raises(CannotCheck) as refused:
        load_deployment(target, draft, serving, "cpu")
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_a_pair(target: str, draft: str) -> None:
    deployment = load_deployment(target, draft, Serving(max_model_len=8192), "h200")
    assert deployment.target.config.file == f"{target}/config.json"
    assert deployment.target.tensors is None
    assert deployment.draft is not None
    assert (deployment.draft.kind, deployment.draft.reference) == ("eagle3", draft)
    assert deployment.draft.folder == Path(draft)
    assert list(deployment.draft.tensors or ()) == list(TENSORS)
    assert (deployment.serving.method, deployment.serving.max_model_len) == ("eagle3", 8192)
    assert deployment.hardware is not None and deployment.hardware.name == "h200"
    assert deployment.assumptions == ("method eagle3: the draft is a LlamaForCausalLMEagle3",)


def test_hardware_that_nobody_named_is_an_assumption(target: str, draft: str) -> None:
    assumptions = load_deployment(target, draft, Serving(method="eagle3")).assumptions
    assert assumptions == ("the hardware is this machine",)


@pytest.mark.parametrize(("own", "read"), [({}, False), ({"draft_load_config": {"load_format": "auto"}}, True)])
def test_no_weights_are_loaded(target: str, draft: str, own: dict[str, Any], read: bool) -> None:
    serving = Serving(method="eagle3", flags={"load_format": "dummy"}, speculative=own)
    deployment = load_deployment(target, draft, serving, "h200")
    assert deployment.draft is not None and (deployment.draft.tensors is not None) is read
    assert "no weight is loaded (--load-format dummy)" in deployment.assumptions[0]


def test_a_folder_with_everything(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "m", LLAMA)
    (folder / "generation_config.json").write_text('{"min_p": 0.1}')
    (folder / "tokenizer.json").write_text("{}")
    model = load_model(str(folder), "target")
    assert model.generation_config is not None
    assert model.generation_config.values == {"min_p": 0.1}
    assert model.generation_config.file == str(folder / "generation_config.json")
    assert model.tokenizer_files == (str(folder / "tokenizer.json"),)


def test_a_config_alone(target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = load_model(f"{target}/config.json", "target")
    assert (model.folder, model.tensors, model.config.file) == (None, None, f"{target}/config.json")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert load_model("~/target", "target").reference == "~/target"
    monkeypatch.chdir(tmp_path)
    assert load_model("target", "target").config.file == "target/config.json"


def test_what_is_no_model(tmp_path: Path, draft: str) -> None:
    assert refusal(str(tmp_path), draft) == f"the folder {tmp_path} has no config.json"
    message = 'the target "/no/such" does not exist here, and is no org/name[@revision] on the Hub'
    assert refusal("/no/such", draft) == message
    for blank in ("", " "):
        assert refusal(blank, draft).startswith("the target is empty: give a folder")
        assert refusal(str(write_model(tmp_path / "t", LLAMA)), blank).startswith("the draft is empty")
    for reference in (
        "name",
        "a/b/c",
        "org/name@",
        "-x/y",
        "org/na me",
        "\N{SNOWMAN}/x",
        "x" * 5000,
        "a\0b",
        "~nobody-here/x",
    ):
        message = refusal(str(write_model(tmp_path / "t", LLAMA)), reference)
        assert "does not exist here" in message or "cannot be read" in message or "no config.json" in message
    weights = tmp_path / "model.gguf"
    weights.write_bytes(b"GGUF\xff\xfe")
    assert "is not UTF-8 text" in refusal(str(weights), draft)
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "config.json").mkdir()
    assert "is not a regular file" in refusal(str(tmp_path / "d"), draft)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(target: str, draft: str) -> None:
    Path(target, "config.json").chmod(0)
    assert "cannot be read: Permission denied" in refusal(target, draft)


def test_a_link_to_nowhere(tmp_path: Path, draft: str) -> None:
    folder = tmp_path / "snapshot"
    folder.mkdir()
    (folder / "config.json").symlink_to(tmp_path / "gone")
    assert refusal(str(folder), draft) == f"{folder}/config.json is a link that leads nowhere"
    (folder / "config.json").unlink()
    (folder / "config.json").symlink_to("config.json")
    assert refusal(str(folder), draft) == f"{folder}/config.json is a link that leads nowhere"
    for name in ("gone", "loop"):
        (tmp_path / "loop").unlink(missing_ok=True)
        (tmp_path / "loop").symlink_to(tmp_path / name)
        assert "is a link that leads nowhere" in refusal(str(tmp_path / "loop"), draft)


def test_architectures(tmp_path: Path, target: str, draft: str) -> None:
    bare = {key: value for key, value in LLAMA.items() if key != "architectures"}
    nameless = {key: value for key, value in bare.items() if key != "model_type"}
    assert "has no architectures" in refusal(str(write_model(tmp_path / "a", nameless)), draft)
    assert "has no architectures" in refusal(str(write_model(tmp_path / "b", {**nameless, "architectures": []})), draft)
    # Transformers knows the class of a model_type; here what hangs on the class is not known then
    assert load_deployment(str(write_model(tmp_path / "e", bare)), draft, hardware="cpu").target.architectures == ()
    assert "has no architectures" in refusal(target, str(write_model(tmp_path / "c", bare)))
    medusa = write_model(tmp_path / "d", {"medusa_num_heads": 2})
    assert load_deployment(target, str(medusa), hardware="cpu").serving.method == "medusa"


def test_types_are_checked_on_both_sides(tmp_path: Path, target: str, draft: str) -> None:
    wrong = str(write_model(tmp_path / "wrong", {**EAGLE3, "max_position_embeddings": "2048"}))
    message = '/max_position_embeddings is "2048", not a positive whole number up to 2^40'
    assert refusal(target, wrong) == f"{wrong}/config.json, line 9: {message}"
    assert message in refusal(str(write_model(tmp_path / "w", {**LLAMA, "max_position_embeddings": "2048"})), draft)


def test_swapped(tmp_path: Path, target: str, draft: str) -> None:
    swapped = f"TARGET and DRAFT look swapped: {draft} is a draft (eagle3), and {target} is given as its draft"
    assert refusal(draft, target) == swapped
    assert "is a draft (eagle3), not a model to serve" in refusal(draft)
    head = str(write_model(tmp_path / "s", SPECULATORS))
    assert "made for meta-llama/Llama-3.1-8B-Instruct: check" in refusal(head)
    assert "look swapped" in refusal(head, target)
    unknown = str(write_model(tmp_path / "u", {**SPECULATORS, "speculators_config": {"verifier": 3}}))
    assert "not a model to serve" in refusal(unknown)


@pytest.mark.parametrize(
    ("head", "tensors", "kind"),
    [
        ({**LLAMA, "num_hidden_layers": 1, "draft_vocab_size": 32000}, None, "eagle3"),  # by a key
        ({**LLAMA, "num_hidden_layers": 1, "bias": False}, None, "eagle"),
        ({**LLAMA, "num_hidden_layers": 1}, TENSORS, "eagle"),  # by a tensor
        ({**LLAMA, "architectures": ["DFlashDraftModel"]}, None, "dflash"),  # by its name
    ],
)
def test_a_head_is_a_head_on_either_side(
    tmp_path: Path, target: str, head: dict[str, Any], tensors: dict[str, Any] | None, kind: str
) -> None:
    draft = str(write_model(tmp_path / "head", head, tensors))
    assert load_model(draft, "draft").kind == kind
    for method in (None, "eagle3", "draft_model", "ngram"):
        message = refusal(draft, target, Serving(method=method))
        assert (
            message == f"TARGET and DRAFT look swapped: {draft} is a draft ({kind}), and {target} is given as its draft"
        )
        assert "one and the same" in refusal(draft, draft, Serving(method=method))
    assert f"is a draft ({kind}), not a model to serve" in refusal(draft)


def test_a_model_that_holds_its_own_draft_is_a_target(tmp_path: Path) -> None:
    for values in ({"dspark_block_size": 7}, {"num_nextn_predict_layers": 1, "draft_vocab_size": 32000}):
        both = str(write_model(tmp_path / "both", {**LLAMA, **values}))
        assert load_deployment(both, hardware="cpu", serving=Serving(method="mtp")).draft is not None


def test_a_full_model_is_no_head(tmp_path: Path, target: str, draft: str) -> None:
    copy = str(write_model(tmp_path / "copy", LLAMA))
    for method in ("eagle", "eagle3", "dflash"):
        message = refusal(target, copy, Serving(method=method))
        assert message.startswith(f"{copy} is no {method} draft for {target}: ")
        assert "LlamaForCausalLM of 32 layers" in message
    for given in (None, "draft_model"):
        assert load_deployment(target, copy, Serving(method=given), "cpu").serving.method == "draft_model"
    # heads that nothing marks have few layers; some state their target's number
    for layers, tensors, method in ((2, None, "eagle"), (5, None, "dflash"), (40, {"layers.0.x": TENSOR}, "eagle")):
        head = write_model(tmp_path / "head", {**LLAMA, "num_hidden_layers": layers}, tensors)
        assert load_deployment(target, str(head), Serving(method=method), "cpu").serving.method == method
    stated = write_model(tmp_path / "stated", {**EAGLE3, "num_hidden_layers": 32})
    assert load_deployment(target, str(stated), Serving(method="eagle3"), "cpu").draft is not None
    small = str(write_model(tmp_path / "small", {**LLAMA, "num_hidden_layers": 4}))
    other = str(write_model(tmp_path / "other", {**LLAMA, "num_hidden_layers": 4}))
    assert "of 4 layers" in refusal(small, other, Serving(method="eagle"))


def test_one_folder_for_both(target: str, draft: str, tmp_path: Path) -> None:
    assert "is a model of its own" in refusal(target, target, Serving(method="eagle3"))
    link = tmp_path / "link"
    link.symlink_to(target)
    assert "is a model of its own" in refusal(target, str(link), Serving(method="dflash"))
    for again in (target, str(link), f"{target}/config.json"):
        assert "which states no MTP layers of its own" in refusal(target, again)
    assert load_deployment(target, target, Serving(method="draft_model"), "cpu").serving.method == "draft_model"
    mtp = str(write_model(tmp_path / "mtp", {**LLAMA, "num_nextn_predict_layers": 1}))
    deployment = load_deployment(mtp, mtp, hardware="cpu")
    assert deployment.serving.method == "mtp"
    assert deployment.draft is not None and deployment.draft.kind == "mtp"


def test_the_method_given_wins(target: str, draft: str) -> None:
    for method in ("eagle", "draft_model", "deepseek_mtp", "no-such-method"):
        deployment = load_deployment(target, draft, Serving(method=method), "cpu")
        assert deployment.serving.method == method
        assert deployment.draft is not None and deployment.draft.kind == "eagle3"
        assert deployment.assumptions == ()


def test_methods_without_a_draft(target: str, draft: str) -> None:
    for method in ("ngram", "suffix", "ngram_gpu", "no-such-method"):
        deployment = load_deployment(target, None, Serving(method=method), "cpu")
        assert (deployment.draft, deployment.serving.method, deployment.assumptions) == (None, method, ())
    deployment = load_deployment(target, draft, Serving(method="ngram"), "cpu")
    assert deployment.draft is None
    assert deployment.assumptions == ("the draft is left aside: method ngram has none",)


def test_no_draft(tmp_path: Path, target: str) -> None:
    assert "states no MTP layers of its own: give a DRAFT, or a --method" in refusal(target)
    assert "method eagle3 needs a DRAFT" in refusal(target, None, Serving(method="eagle3"))
    mtp = str(write_model(tmp_path / "mtp", {**LLAMA, "num_nextn_predict_layers": 1}, TENSORS))
    deployment = load_deployment(mtp, hardware="cpu")
    own = deployment.draft
    assert isinstance(own, Draft)
    assert (own.kind, own.config, own.tensors) == ("mtp", deployment.target.config, deployment.target.tensors)
    assert deployment.serving.method == "mtp"
    assert deployment.assumptions == ("method mtp: the target has MTP layers",)
    for method, kind in (("mtp", "mtp"), ("deepseek_mtp", "mtp"), ("dspark", "dspark")):
        own = load_deployment(target, None, Serving(method=method), "cpu").draft
        assert own is not None and own.kind == kind
    none = str(write_model(tmp_path / "none", {**LLAMA, "num_nextn_predict_layers": 0}))
    assert "states no MTP layers" in refusal(none)


def test_marks_and_silence_are_told_apart(tmp_path: Path, target: str) -> None:
    marked = write_model(tmp_path / "marked", {**LLAMA, "draft_vocab_size": 32000})
    assert load_deployment(target, str(marked), hardware="cpu").assumptions == (
        "method eagle3: by marks in the draft's files",
    )
    plain = write_model(tmp_path / "plain", LLAMA)
    assert load_deployment(target, str(plain), hardware="cpu").assumptions == (
        "method draft_model: nothing in the draft's files says otherwise",
    )


def test_control_characters_of_a_file_stay_out_of_messages(tmp_path: Path, target: str) -> None:
    hostile = "\x1b[2J\nEagle3\N{RIGHT-TO-LEFT OVERRIDE}" + "x" * 1000
    draft = str(write_model(tmp_path / "draft", {**EAGLE3, "architectures": [hostile]}))
    (assumption,) = load_deployment(target, draft, hardware="cpu").assumptions
    assert assumption.startswith("method eagle3: the draft is a \\u001b[2J\\nEagle3\\u202exxx")
    assert len(assumption) < 200
    verifier = {
        "speculators_model_type": hostile,
        "speculators_config": {"verifier": {"name_or_path": hostile}},
    }
    assert refusal(str(write_model(tmp_path / "head", {**SPECULATORS, **verifier}))).isprintable()


def test_a_bom_and_a_damaged_neighbour(tmp_path: Path, draft: str) -> None:
    folder = write_model(tmp_path / "m", LLAMA)
    (folder / "config.json").write_bytes(b"\xef\xbb\xbf" + json.dumps(LLAMA).encode())
    assert load_model(str(folder), "target").integer("hidden_size") == 4096
    (folder / "generation_config.json").write_text("{")
    assert "generation_config.json, line 1 column 2: not valid JSON" in refusal(str(folder), draft)

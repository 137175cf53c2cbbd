"""What a release does with requests under speculation, read of small source trees."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from specfix.engines.facts.requests import Range, RequestFacts
from specfix.engines.readers.requests import STRUCTURED, read_requests
from specfix.engines.source.tree import SourceTree

CHECK = """
    class SamplingParams:
        def _validate_spec_decode(self, speculative_config):
            if speculative_config is None:
                return
            if self.min_p > 1e-5 or self.logit_bias:
                raise ValueError("not yet supported with speculative decoding")

        def _validate_others(self, speculative_config, structured_outputs_config):
            if self.structured_outputs is not None:
                raise ValueError("another matter")
    """
ASYNC = """
    class Processor:
        def _validate(self, params):
            if (self.vllm_config.speculative_config is not None
                    and self.vllm_config.scheduler_config.async_scheduling
                    and (params.repetition_penalty != 1.0 or params.structured_outputs)):
                raise ValueError("async scheduling with spec decoding")
    """
SKIPS = """
    def is_spec_decode_unsupported(sampling_params):
        return sampling_params.repetition_penalty != 1.0 or sampling_params.min_p > 1e-5
    """
NGRAM = """
    class NgramProposer:
        def propose(self, req_ids, spec_decode_unsupported_reqs):
            for req_id in req_ids:
                if req_id in spec_decode_unsupported_reqs:
                    continue
    """
PROCESSORS = """
    def build_logitsprocs(vllm_config, custom_logitsprocs=()):
        if vllm_config.speculative_config:
            {body}
        return LogitsProcessors(everything())
    """
GRAMMAR = """
    class StructuredOutputManager:
        def grammar_bitmask(self, requests, tokens):
            if self.should_fill_bitmask(request):
                {body}

        def should_fill_bitmask(self, request):
            return reasoner.is_reasoning_end(request.prompt_token_ids)

        def _start(self, tokens):
            return reasoner.is_reasoning_end_streaming(tokens, [token])
    """


def read(tmp_path: Path, files: dict[str, str]) -> RequestFacts:
    for name, text in files.items():
        path = tmp_path / "vllm" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))
    return read_requests(SourceTree(tmp_path / "vllm"))


def test_refused_parameters(tmp_path: Path) -> None:
    facts = read(tmp_path, {"sampling_params.py": CHECK})
    assert (facts.refused, facts.async_refused) == (("min_p", "logit_bias"), ())


def test_parameters_refused_with_asynchronous_scheduling(tmp_path: Path) -> None:
    facts = read(tmp_path, {"v1/engine/processor.py": ASYNC})
    assert (facts.refused, facts.async_refused) == ((), ("repetition_penalty", "structured_outputs"))


def test_requests_for_which_nothing_is_drafted(tmp_path: Path) -> None:
    facts = read(tmp_path, {"v1/spec_decode/utils.py": SKIPS, "v1/spec_decode/ngram_proposer.py": NGRAM})
    assert (facts.undrafted, facts.undrafted_methods) == (("repetition_penalty", "min_p"), ("ngram",))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return LogitsProcessors()", (True, False)),
        ('raise ValueError("refused")', (False, True)),
        ("log()", (False, False)),
    ],
)
def test_logits_processors(tmp_path: Path, body: str, expected: tuple[bool, bool]) -> None:
    facts = read(tmp_path, {"v1/sample/logits_processor/__init__.py": PROCESSORS.format(body=body)})
    assert (facts.drops_processors, facts.refuses_processors) == expected


@pytest.mark.parametrize(
    ("body", "starts"),
    [
        ("self._start(tokens)", True),
        ("reasoner.is_reasoning_end_streaming(tokens, [token])", True),
        ("reasoner.is_reasoning_end(request.prompt_token_ids)", False),
        ("pass", False),
    ],
)
def test_where_a_grammar_starts(tmp_path: Path, body: str, starts: bool) -> None:
    assert read(tmp_path, {STRUCTURED: GRAMMAR.format(body=body)}).grammar_from_reasoning_end is starts


def test_what_is_not_there_is_not_known(tmp_path: Path) -> None:
    facts = read(tmp_path, {"__init__.py": ""})
    assert facts.grammar_from_reasoning_end is None
    assert facts.refuses_processors is None
    assert facts.defaults is None


def test_what_a_greedy_request_loses(tmp_path: Path) -> None:
    made = """
        class SamplingParams:
            def __post_init__(self):
                if self.temperature < _SAMPLING_EPS:
                    self.top_k = 0
                    self.min_p = 0.0
                    self._verify_greedy_sampling()
        """
    assert read(tmp_path, {"sampling_params.py": made}).greedy_resets == ("top_k", "min_p")


def test_what_a_parameter_may_be(tmp_path: Path) -> None:
    checks = """
        class SamplingParams:
            def _verify_args(self):
                if not -2.0 <= self.presence_penalty <= 2.0:
                    raise ValueError("a penalty")
                if not 0.0 < self.top_p <= 1.0:
                    raise ValueError("top_p")
                if self.repetition_penalty <= 0.0:
                    raise ValueError("another penalty")
                if self.temperature < 0.0:
                    raise ValueError("cold")
                if self.temperature > 2.0:
                    raise ValueError("hot")
                if self.top_k < -1:
                    warn("top_k")
                if self.min_p > LIMIT:
                    raise ValueError("min_p")
        """
    defaults = """
        class ModelConfig:
            def get_diff_sampling_param(self):
                available_params = ["repetition_penalty", "temperature", "top_k", "top_p", "min_p"]
        """
    facts = read(tmp_path, {"sampling_params.py": checks, "config/model.py": defaults})
    assert facts.ranges == {
        "repetition_penalty": Range(above=0.0),
        "temperature": Range(at_least=0.0, at_most=2.0),
        "top_p": Range(above=0.0, at_most=1.0),
    }

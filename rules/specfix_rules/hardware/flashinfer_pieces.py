"""HWR009: FlashInfer steps that verify drafts without a whole CUDA graph."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Hardware, Serving
from specfix.engines import Engine
from specfix.errors import NotApplicable, known
from specfix.facts.attention import asked_backend


@rule(
    "HWR009",
    "flashinfer-pieces",
    severity="warning",
    evidence=["vllm-project/vllm#49547", "vllm/v1/attention/backends/flashinfer.py: get_cudagraph_support"],
)
def flashinfer_pieces(serving: Serving, hardware: Hardware, engine: Engine, method: str) -> Iterator[Finding]:
    """FlashInfer cannot capture steps of several tokens on this GPU, so they run in pieces."""
    if asked_backend(serving, engine) != "FLASHINFER" or hardware.platform != "cuda" or serving.enforce_eager:
        raise NotApplicable("no FlashInfer, or no CUDA graphs")
    if serving.flag("compilation_config") or serving.flag("cudagraph_mode"):
        raise NotApplicable("the user says what is captured")
    captured = known(
        engine.backends.draft.flashinfer_graphs,
        f"on which GPUs FlashInfer of {engine} captures steps of several tokens",
    )
    major, minor = known(hardware.compute_capability, "the compute capability of the GPU")
    if major in captured:
        return
    whole = " and ".join(f"{number}.x" for number in captured)
    yield Finding(
        f"FlashInfer of {engine} captures steps that verify drafts whole on compute capability {whole}, and this GPU "
        f"has {major}.{minor}: with {method} the CUDA graphs of all decoding are taken apart (FULL_AND_PIECEWISE "
        "becomes PIECEWISE), which costs speed.",
        serving.at("attention_backend"),
        "silent",
        related=(hardware.at("compute_capability"),),
        repair=Repair(
            "unsafe",
            "leave the backend to the engine, which tries FLASH_ATTN first here",
            ("engine_args",),
            (("engine_args", "attention_backend", None),),
        )
        if serving.attention_backend
        else Repair("manual", "another attention backend", ("engine_args",)),
    )

"""Where a fuzzer begins: what other tests read."""

from __future__ import annotations

import json
from functools import cache

from specfix.deployment.presets import PRESETS
from tests.properties.junk import configs
from tests.properties.pairs import CONTENTS, TOKENIZER
from tests.unit.deployment.samples import TENSORS, safetensors
from tests.unit.launch.test_manifests import COMPOSE, CONTAINER, DEPLOYMENT
from tests.unit.repair.launch_files import FILES, SCRIPT, SERVE, SPEC

SERVER = f"vllm serve /m --max-model-len 8192 --speculative-config '{SPEC}'"
COMMANDS = (
    SERVER,
    f"VLLM_USE_V1=1 {SERVER} --enforce-eager",
    f"docker run --rm -e A=1 -v /m:/m vllm/vllm-openai:v0.26.0 --model /m --speculative-config '{SPEC}'",
    f'sh -c "{SERVER.replace(chr(34), chr(92) + chr(34))}"',
    "python3 -m vllm.entrypoints.openai.api_server --model=/m --spec-method=eagle3 --spec-model /d --spec-tokens 5",
    "uv run vllm serve /m -O3 --speculative-config.method mtp --no-enable-prefix-caching -tp 2",
    'srun -N 2 env A=1 vllm serve /m --config c.yaml --hf-overrides \'{"a": {"b": 1}}\'',
    "kubectl run x --image=vllm/vllm-openai:v0.26.0 --env A=1 -- --model /m",
    "ssh host vllm serve /m; timeout -k 5 10 vllm serve /m 2>&1 | tee log",
)
SCRIPTS = (
    SCRIPT,
    "LEN=8192\nARGS=(\n  --max-model-len $LEN  # n\n)\n"
    'if [ -n "$X" ]; then ARGS+=(--seed 1); fi\nvllm serve /m "${ARGS[@]}" "$@"\n',
    f"cat > f <<EOF\nvllm serve\nEOF\nexport A=${{B:-1}} C=$'a\\n'\nexec {SERVER} \\\n  --port $(hostname) `x`\n",
    f"for m in a b; do {SERVER} & done\nwait; case $1 in x) {SERVER} ;; esac\n",
)
SETTINGS = """\
engine = "vllm==0.26.0"
fail-on = "warning"
select = ["POS", "AUX001"]
strict = true
hardware = "h200"
baseline = "b.json"

[[ignore]]
code = "POS001"
reason = "short prompts"
until = 2027-03-31
"""
BASELINE = {
    "schema": "specfix/baseline-v1",
    "version": "0.1.0",
    "findings": [{"code": "POS001", "target": "t", "draft": "d", "file": "config.json", "pointer": "/a"}],
}
ENGINES = (
    "vllm==0.26.0",
    "v0.26.0",
    "vllm 0.26.0+cu128",
    "vllm/vllm-openai:v0.26.0-cu130",
    "0.99.1rc2",
    "docker://a/vllm:x",
)
IMAGES = ("rocm/vllm:rocm7.0_ubuntu_22.04_vllm_0.10.1", "ghcr.io:443/o/vllm-openai@sha256:" + "0" * 64, "nightly")
ENV = "# ours\nexport VLLM_USE_V1=1\nVLLM_PLUGINS='a,b' # c\nCUDA_VISIBLE_DEVICES=\"0,1\"\nVLLM_X\nHF_TOKEN=$S\n"


def dumped(value: object, indent: int | None = None) -> bytes:
    return json.dumps(value, indent=indent).encode()


@cache
def seeds() -> dict[str, tuple[bytes, ...]]:
    """Of each target in ``targets.py``."""
    bases = [dumped(config) for config in configs().values()]
    yamls = [text for name, text in FILES.items() if name.endswith("yaml")] + [DEPLOYMENT, COMPOSE, CONTAINER]
    choices = [bytes((start + 7 * step) % 256 for step in range(24)) for start in range(16)]
    return {
        "json_text": (*bases[::6], b'\xef\xbb\xbf{"a" : [1.50, -0, 1e5, true, null]}', dumped(CONTENTS[3], 2)),
        "config": tuple(bases),
        "header": (safetensors(TENSORS), safetensors({}), safetensors(TENSORS)[:20], b"version https://git-lfs/spec"),
        "index": tuple(dumped({"weight_map": {"a": file, "b": "b.safetensors"}}) for file in ("a.safetensors", "../a")),
        "tokenizer": (dumped(TOKENIZER), dumped({"model": {"vocab": {"a": 0}, "merges": [["a", "b"]]}}, 1)),
        "beside": tuple(bytes([which]) + dumped(given) for which in range(4) for given in CONTENTS),
        "yaml": tuple(b"\0" + text.encode() for text in yamls),
        "shell": tuple(b"\0" + text.encode() for text in (*SCRIPTS, *COMMANDS)),
        "command": tuple(text.encode() for text in COMMANDS),
        "env_file": (ENV.encode(),),
        "settings": (
            SETTINGS.encode(),
            SETTINGS.replace("\n", "\r\n").encode(),
            b"ignore = [{code = 'A', reason = 'b'}]",
        ),
        "hardware": tuple(
            dumped(
                {"name": name, "platform": preset.platform, "device": preset.device, "memory_gib": preset.memory_gib}
            )
            for name, preset in list(PRESETS.items())[:3]
        ),
        "baseline": (dumped(BASELINE),),
        "engine": tuple(text.encode() for text in (*ENGINES, *IMAGES)),
        "pair": tuple(choices),
        "edit": (
            *(bytes([0, at, at % 2]) + text.encode() for at, text in enumerate([SERVE, *yamls] * 2)),
            *(bytes([1, at, at % 2]) + text.encode() for at, text in enumerate([*SCRIPTS, *COMMANDS])),
        ),
    }

"""The shim's kernels against the engine's own C++ ones, on random batches. Prints the names that agree, then "done".

PYTHONPATH=SHIM ENGINE_PYTHON shim_kernels.py
"""

from __future__ import annotations

import importlib
from typing import Any

torch: Any = importlib.import_module("torch")
ours: Any = importlib.import_module("specfix_shim.torch_kernels")
VOCAB, ROUNDS, LONGEST = 50, 200, 5


def batch(rows: int) -> dict[str, Any]:
    """Requests with 0 to LONGEST draft tokens each; some greedy; often the draft is what the target wants."""
    counts = torch.randint(0, LONGEST + 1, (rows,))
    counts[0] = max(int(counts[0]), 1)
    total = int(counts.sum())
    target_argmax = torch.randint(0, VOCAB, (total,))
    other = torch.randint(0, VOCAB, (total,))
    draft = torch.where(torch.rand(total) < 0.6, target_argmax, other).to(torch.int32)
    return {
        "cu": counts.cumsum(0).to(torch.int32),
        "draft": draft,
        "argmax": target_argmax,
        "bonus": torch.randint(0, VOCAB, (rows, 1)),
        "greedy": torch.rand(rows) < 0.5,
        "draft_probs": torch.rand(total, VOCAB).softmax(-1),
        "target_probs": (torch.randn(total, VOCAB) * 3).softmax(-1),
        "recovered": torch.randint(0, VOCAB, (total,)).to(torch.int32),
        "uniform": torch.rand(total, dtype=torch.float64) * 0.2,
        "inv_q": torch.empty(rows, VOCAB).exponential_().reciprocal(),
    }


def both(name: str, arguments: Any, rows: int | None, total: int, **named: Any) -> bool:
    """Whether the two implementations write the same."""
    theirs: Any = importlib.import_module("vllm.utils.cpu_triton_utils")
    shape = (total,) if rows is None else (rows, LONGEST + 1)
    outputs = []
    for function in (getattr(ours, name), getattr(theirs, f"_{name}_impl")):
        output = torch.full(shape, -1, dtype=torch.int32)
        function(output, *arguments, **named)
        outputs.append(output)
    return bool(torch.equal(*outputs))


def main() -> None:
    """Compare, and check what the engine's own kernel for expansion is not right about."""
    importlib.import_module("vllm.platforms").current_platform.import_kernels()
    torch.manual_seed(0)
    for _ in range(ROUNDS):
        rows = int(torch.randint(1, 7, (1,)))
        b = batch(rows)
        total = len(b["draft"])
        greedy = (b["cu"], b["draft"], b["argmax"], b["bonus"])
        for mask in (None, b["greedy"]):
            assert both("rejection_greedy_sample_kernel", (*greedy, mask, LONGEST), rows, total)
        for probs in (None, b["draft_probs"]):
            random = (b["cu"], b["draft"], probs, b["target_probs"], b["bonus"], b["recovered"], b["uniform"])
            no = {"NO_DRAFT_PROBS": probs is None}
            assert both("rejection_random_sample_kernel", (*random, b["greedy"], LONGEST, VOCAB), rows, total, **no)
            recovered = (b["cu"], b["draft"], probs, b["target_probs"], b["inv_q"], VOCAB)
            assert both("sample_recovered_tokens_kernel", recovered, None, total, **no)
            precise = torch.full((total,), -1, dtype=torch.int32)
            ours.sample_recovered_tokens_kernel(
                precise, *recovered[:4], b["inv_q"].double(), VOCAB, 8192, USE_FP64_GUMBEL=True, **no
            )
            assert int(precise.min()) >= 0
        for dtype, value in ((torch.float32, 0.8), (torch.int32, 20), (torch.int64, 20)):
            x = torch.where(b["greedy"], 0, value).to(dtype)
            expanded = ours.expand_batch_to_tokens(x, b["cu"], total, 0, 1)
            counts = torch.diff(b["cu"], prepend=torch.zeros(1, dtype=torch.int32)).tolist()
            wanted = [v or 1 for v, n in zip(x.tolist(), counts, strict=True) for _ in range(n)]
            assert expanded.dtype == dtype and expanded.tolist() == wanted
    synthetic()
    distribution()
    print("done")


def synthetic() -> None:
    """Rates decide, and a padded draft token is never accepted."""
    cu, draft, target = torch.tensor([3]), torch.tensor([7, 8, 9]), torch.tensor([1, 2, 3])
    bonus, uniform = torch.tensor([[5]]), torch.tensor([0.1, 0.1, 0.9])
    for rates, wanted in (
        ([0.5, 0.5, 0.5], [7, 8, 3, -1]),
        ([1.0, 1.0, 1.0], [7, 8, 9, 5]),
        ([0.0] * 3, [1, -1, -1, -1]),
    ):
        output = torch.full((1, 4), -1)
        ours.rejection_greedy_sample_kernel(
            output, cu, draft, target, bonus, None, 3, uniform, torch.tensor(rates), True
        )
        assert output[0].tolist() == wanted, output
    output = torch.full((1, 4), -1)
    ours.rejection_random_sample_kernel(
        output,
        cu,
        torch.tensor([7, -1, 9]),
        None,
        torch.ones(3, 10),
        bonus,
        target,
        uniform,
        None,
        3,
        10,
        NO_DRAFT_PROBS=True,
    )
    assert output[0].tolist() == [7, 2, -1, -1], output


def distribution() -> None:
    """The first token out of rejection sampling is distributed as the target wants it, whatever the draft."""
    wanted, count = torch.tensor([0.5, 0.3, 0.15, 0.05]), 40000
    target = wanted.expand(count, 4).contiguous()
    for probs in (None, torch.tensor([0.1, 0.2, 0.3, 0.4]).expand(count, 4).contiguous()):
        draft = torch.full((count,), 2) if probs is None else probs.multinomial(1).squeeze(1)
        cu, uniform = torch.arange(1, count + 1), torch.rand(count, dtype=torch.float64)
        inv_q = torch.empty(count, 4).exponential_().reciprocal()
        recovered, output = torch.empty_like(draft), torch.full((count, 2), -1)
        no = {"NO_DRAFT_PROBS": probs is None}
        ours.sample_recovered_tokens_kernel(recovered, cu, draft, probs, target, inv_q, 4, **no)
        ours.rejection_random_sample_kernel(
            output,
            cu,
            draft,
            probs,
            target,
            torch.zeros(count, 1, dtype=torch.long),
            recovered,
            uniform,
            None,
            1,
            4,
            **no,
        )
        seen = torch.bincount(output[:, 0], minlength=4)
        chi_square = float(((seen - wanted * count) ** 2 / (wanted * count)).sum())
        assert chi_square < 16.27, (seen, chi_square)  # 3 degrees of freedom, one time in a thousand


if __name__ == "__main__":
    main()

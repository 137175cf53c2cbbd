"""The kernels of speculative sampling in PyTorch. Imported only where vLLM has imported torch already.

Parameters have the names and the order of vLLM's Triton kernels. Draft token i of request r stands at
``cu_num_draft_tokens[r - 1] + i``.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

torch: Any = importlib.import_module("torch")


def expand_batch_to_tokens(
    x: Any, cu_num_tokens: Any, num_tokens: int, replace_from: int = 0, replace_to: int = 0
) -> Any:
    """One value a token from one a request, one value replaced by another (temperature 0, by which logits are divided).

    ``num_tokens`` is the last of ``cu_num_tokens``.
    """
    return x.masked_fill(x == replace_from, replace_to).repeat_interleave(_counts(cu_num_tokens))


def rejection_greedy_sample_kernel(
    output_token_ids: Any,
    cu_num_draft_tokens: Any,
    draft_token_ids: Any,
    target_argmax: Any,
    bonus_token_ids: Any,
    is_greedy: Any,
    max_spec_len: int,
    uniform_probs: Any = None,
    synthetic_conditional_rates: Any = None,
    SYNTHETIC_MODE: bool = False,
) -> None:
    """Greedy requests take the target's tokens up to the first that differs from the draft's.

    In synthetic mode (a benchmark's) a given rate decides what is accepted, and not the target.
    """
    for request, tokens in _requests(cu_num_draft_tokens):
        if is_greedy is not None and not is_greedy[request]:
            continue
        draft, target = draft_token_ids[tokens], target_argmax[tokens]
        if SYNTHETIC_MODE:
            accepted = (uniform_probs[tokens] < synthetic_conditional_rates[: len(draft)]) & (draft >= 0)
        else:
            accepted = draft == target
        _write(output_token_ids[request], accepted, draft, target, bonus_token_ids[request])


def rejection_random_sample_kernel(
    output_token_ids: Any,
    cu_num_draft_tokens: Any,
    draft_token_ids: Any,
    draft_probs: Any,
    target_probs: Any,
    bonus_token_ids: Any,
    recovered_token_ids: Any,
    uniform_probs: Any,
    is_greedy: Any,
    max_spec_len: int,
    vocab_size: int,
    synthetic_conditional_rates: Any = None,
    NO_DRAFT_PROBS: bool = False,
    SYNTHETIC_MODE: bool = False,
) -> None:
    """A draft token is accepted with probability target / draft; the first that is not gives way to the recovered one.

    Without draft probabilities the draft was sure of its token. A draft token of -1 is padding.
    """
    for request, tokens in _requests(cu_num_draft_tokens):
        if is_greedy is not None and is_greedy[request]:
            continue
        draft = draft_token_ids[tokens]
        if SYNTHETIC_MODE:
            accepted = uniform_probs[tokens] < synthetic_conditional_rates[: len(draft)]
        else:
            index = draft.long().clamp(min=0).unsqueeze(1)
            target = target_probs[tokens].gather(1, index).squeeze(1)
            proposed = torch.ones_like(target) if NO_DRAFT_PROBS else draft_probs[tokens].gather(1, index).squeeze(1)
            accepted = (proposed > 0) & (target / proposed >= uniform_probs[tokens])
        _write(
            output_token_ids[request],
            accepted & (draft >= 0),
            draft,
            recovered_token_ids[tokens],
            bonus_token_ids[request],
        )


def sample_recovered_tokens_kernel(
    output_token_ids: Any,
    cu_num_draft_tokens: Any,
    draft_token_ids: Any,
    draft_probs: Any,
    target_probs: Any,
    inv_q: Any,
    vocab_size: int,
    BLOCK_SIZE: int = 0,
    NO_DRAFT_PROBS: bool = False,
    USE_FP64_GUMBEL: bool = False,
) -> None:
    """A token of what the target gives more probability than the draft, by the exponential noise ``1 / inv_q``.

    BLOCK_SIZE is a Triton tile. USE_FP64_GUMBEL says that ``inv_q`` is float64, and PyTorch then multiplies in float64.
    """
    if NO_DRAFT_PROBS:
        index = draft_token_ids.long().clamp(min=0).unsqueeze(1)
        surplus = target_probs.scatter(1, index, 0.0)
    else:
        surplus = (target_probs - draft_probs).clamp(min=0)
    noise = inv_q.repeat_interleave(_counts(cu_num_draft_tokens), dim=0)
    output_token_ids.copy_((surplus * noise).argmax(dim=1))


def _counts(cumulated: Any) -> Any:
    return torch.diff(cumulated.long(), prepend=cumulated.new_zeros(1, dtype=torch.long))


def _requests(cumulated: Any) -> Iterator[tuple[int, slice]]:
    """Each request and its draft tokens."""
    start = 0
    for request, end in enumerate(cumulated.tolist()):
        yield request, slice(start, end)
        start = end


def _write(row: Any, accepted: Any, draft: Any, otherwise: Any, bonus: Any) -> None:
    """The accepted draft tokens, then one more: instead of the first that is not, or the bonus after all of them."""
    count = int(accepted.long().cumprod(0).sum())
    row[:count] = draft[:count]
    row[count] = otherwise[count] if count < len(draft) else bonus.reshape(())

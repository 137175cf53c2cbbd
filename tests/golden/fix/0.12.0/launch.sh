#!/usr/bin/env bash
# /folder/models/target with /folder/models/draft (eagle3) on vllm 0.12.0. Options for `vllm serve` may follow: bash launch.sh --port 8001
set -euo pipefail
here=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)

export VLLM_PLUGINS=mine
export VLLM_ATTENTION_BACKEND=FLASHINFER

# this folder as a part of JSON text
quote='"' slash='\'
json=${here//"$slash"/"$slash$slash"} json=${json//"$quote"/"$slash$quote"}

exec vllm serve /folder/models/target \
  --max-model-len 8192 \
  --speculative-config '{"method": "eagle3", "num_speculative_tokens": 5, "model": "'"$json"'/draft"}' \
  "$@"

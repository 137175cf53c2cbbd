#!/usr/bin/env bash
# /folder/models/target with /folder/models/draft (eagle3) on vllm 0.32.0. Options for `vllm serve` may follow: bash launch.sh --port 8001
set -euo pipefail
here=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)

export VLLM_PLUGINS=mine,specfix_shim

# the shim is a vLLM plugin: it is found on PYTHONPATH, and left out where VLLM_PLUGINS is set and does not name it
export PYTHONPATH="$here/shim${PYTHONPATH:+:$PYTHONPATH}"
if [ -n "${VLLM_PLUGINS+set}" ]; then
  case ",$VLLM_PLUGINS," in
    *,specfix_shim,*) ;;
    *) export VLLM_PLUGINS="$VLLM_PLUGINS${VLLM_PLUGINS:+,}specfix_shim" ;;
  esac
fi

# this folder as a part of JSON text
quote='"' slash='\'
json=${here//"$slash"/"$slash$slash"} json=${json//"$quote"/"$slash$quote"}

exec vllm serve /folder/models/target \
  --max-model-len 8192 \
  --speculative-config '{"method": "eagle3", "num_speculative_tokens": 5, "model": "'"$json"'/draft"}' \
  "$@"

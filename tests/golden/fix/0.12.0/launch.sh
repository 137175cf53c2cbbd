#!/usr/bin/env bash
# /folder/models/target with /folder/models/draft (eagle3) on vllm 0.12.0. Options for `vllm serve` may follow: bash launch.sh --port 8001
set -euo pipefail

_specfix_folder() {  # of a file, all links followed; not every readlink has -f
  local file=$1 link
  while [ -L "$file" ]; do
    link=$(readlink -- "$file")
    case $link in /*) file=$link ;; *) file=$(dirname -- "$file")/$link ;; esac
  done
  CDPATH='' cd -P -- "$(dirname -- "$file")" && pwd -P
}
_specfix_here=$(_specfix_folder "${BASH_SOURCE[0]}")

# this folder as a part of JSON text
_specfix_quote='"' _specfix_slash='\'
_specfix_json=${_specfix_here//"$_specfix_slash"/"$_specfix_slash$_specfix_slash"}
_specfix_json=${_specfix_json//"$_specfix_quote"/"$_specfix_slash$_specfix_quote"}

export VLLM_PLUGINS=mine
export VLLM_ATTENTION_BACKEND=FLASHINFER

exec vllm serve /folder/models/target \
  --max-model-len 8192 \
  --additional-config '{"specfix_draft": "5d0ad4057b27e400"}' \
  --speculative-config '{"method": "eagle3", "num_speculative_tokens": 5, "model": "'"$_specfix_json"'/draft"}' \
  "$@"

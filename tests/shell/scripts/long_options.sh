#!/bin/bash
EXTRA=()
while [[ $# -gt 0 ]]; do
  key="$1"
  case "$key" in
    --tp) TP="$2"; shift 2 ;;
    --name=*) NAME="${key#*=}"; shift ;;
    --fp8) FP8=true; shift ;;
    --) shift; EXTRA+=("$@"); break ;;
    *) EXTRA+=("$1"); shift ;;
  esac
done
if ${FP8:-false}; then EXTRA+=(--fp8-format hybrid); fi
[ "$FP8" == true ] && EXTRA+=(--fp8)
torchrun --nproc_per_node 8 train.py --tp ${TP:-1} --name "${NAME:-default name}" "${EXTRA[@]}"

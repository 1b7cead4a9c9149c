#!/bin/bash
set -euo pipefail
trap 'echo done' EXIT
ulimit -n 1024 2>/dev/null || true
umask 022
shopt -s nullglob
LOG=${LOG:-log}
mkdir -p "$LOG"
N=0
N=$((N + 1))
command -v ls >/dev/null || true
if [[ "${WITH_PROFILE:-0}" == "1" ]]; then PROFILE=(--profile); else PROFILE=(); fi
python t.py ${PROFILE[@]+"${PROFILE[@]}"} --n $N "$@" |& tee "$LOG/out" || exit 1
(( N > 5 )) && echo big
[[ $N -eq 1 ]]
python t.py after
[[ $N -eq 2 ]]
python t.py never

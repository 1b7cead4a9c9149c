#!/bin/bash
set -eo pipefail
MODEL_SIZE=${MODEL_SIZE:-7B}
case $MODEL_SIZE in
  7B|7b) LAYERS=32; HIDDEN=4096; HEADS=32 ;;
  13?) LAYERS=40; HIDDEN=5120; HEADS=40 ;;
  [67]*B) LAYERS=80
      HIDDEN=8192
      HEADS=64 ;;
  *) echo unknown; exit 1;;
esac
if [ $LAYERS -gt 32 ] && [ "$HEADS" != 40 ]; then
  PARALLEL="--tp 8 --pp 4"
elif [ $LAYERS -eq 40 ]; then
  PARALLEL="--tp 4"
else
  PARALLEL="--tp 1"
fi
FFN=$(( (HIDDEN * 8 / 3 + 255) / 256 * 256 ))
torchrun --nnodes=2 --nproc-per-node=8 train.py --layers $LAYERS --hidden $HIDDEN --heads $HEADS --ffn $FFN $PARALLEL

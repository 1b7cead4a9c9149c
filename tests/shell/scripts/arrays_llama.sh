#!/bin/bash
export CUDA_DEVICE_MAX_CONNECTIONS=1
GPUS_PER_NODE=8
NNODES=${NNODES:-2}
NODE_RANK=${NODE_RANK:-0}
WORLD_SIZE=$(($GPUS_PER_NODE*$NNODES))
CKPT=${1:-"checkpoints/my run"}
TOKENIZER=$2

DIST=(
    --nproc_per_node $GPUS_PER_NODE   # per node
    --nnodes $NNODES
    # --standalone
    --node_rank $NODE_RANK
)
MODEL=(
    --num-layers 32 --hidden-size 4096
    --disable-bias-linear # no bias
    "--note" "two words here"
)
OPT=()
if [[ "$NNODES" -ge 2 && -n "$TOKENIZER" ]]; then
    OPT+=("--tokenizer-model $TOKENIZER" --overlap-grad-reduce)
else
    OPT+=(--no-overlap)
fi
MODEL+=("${OPT[@]}")
echo "starting ${WORLD_SIZE} ranks"
torchrun ${DIST[@]} pretrain_gpt.py "${MODEL[@]}" --save "$CKPT" --load ${CKPT} --n ${#MODEL[@]} 2>&1 | tee log.txt

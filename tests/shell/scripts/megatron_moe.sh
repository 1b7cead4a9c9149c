#!/usr/bin/env bash
set -x
ENABLE_MOE=${1:-1}
EP=${2:-8}; ETP=${3:-1}
[[ ${ENABLE_MOE} -eq 1 ]] && MOE="--num-experts 64 --expert-model-parallel-size ${EP} --moe-router-topk 6" || MOE=""
if [ $EP -gt 1 ]; then
    comm="--overlap-param-gather \
          --overlap-grad-reduce"
fi
if [ -z ${LOAD} ]; then
    load_option=" "
else
    load_option=" --load $LOAD"
fi
TOKENS=1000000000
SEQ=4096
GBS=512
ITERS=$(( ${TOKENS} / ${GBS} / ${SEQ} ))
WARMUP=$(( ${ITERS} / 100  + 1 ))
NAME="moe-ep-${EP}-etp-${ETP}-gbs-${GBS}"
megatron_options="  \
        --train-iters ${ITERS} \
        --lr-warmup-iters ${WARMUP} \
        --tensorboard-dir ./out/${NAME} \
        --seq-length ${SEQ}"
run_cmd="torchrun --nproc_per_node 8 pretrain_gpt.py
 ${megatron_options} ${MOE} ${comm} ${load_option}"
echo ${run_cmd}
eval ${run_cmd}
set +x

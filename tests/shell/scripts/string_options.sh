#!/bin/bash
DISTRIBUTED_ARGS="--nproc_per_node 8 --nnodes 1 --master_port 6001"
GPT_ARGS="
    --num-layers 24 \
    --hidden-size 1024 \
    --split '99,1,0'
    --lr 0.00015
"
EXTRA=" --fp16  --clip-grad   1.0"
GPT_ARGS="$GPT_ARGS $EXTRA"
torchrun $DISTRIBUTED_ARGS pretrain_gpt.py \
    $GPT_ARGS \
    --data-path $DATA_PATH \
    --save "" \
    --distributed-backend nccl
python -m torch.distributed.launch $DISTRIBUTED_ARGS pretrain_bert.py "$GPT_ARGS"

#!/bin/bash
TP=4 PP=2
OPTIONS=" --tp ${TP} --pp ${PP} --split '949, 50, 1' --blend \"0.5 data/a 0.5 data/b\""
run_cmd="torchrun --nproc_per_node 8 pretrain.py ${OPTIONS} --name \"a b\" > /dev/null"
echo $run_cmd
eval $run_cmd
eval "$run_cmd"
set +x

#!/bin/bash
export OUT=exported
HERE=local
TP=4
CMD="torchrun --nproc_per_node 8 train.py --tp $TP --name 'quoted name'"
bash -c "$CMD --out \$OUT --here \$HERE"
sh -c 'python train.py "$0" "$1" "$@"' zero one two
srun -N 4 --ntasks-per-node=8 bash -c "
  python train.py --rank-file x \
     --tp ${TP} --o \$OUT
"
srun --ntasks 16 --nodes 2 -l numactl --interleave=all python -u train.py --direct "$OUT"

#!/bin/bash
export A=1 B="two words" C
C=three
D=not-exported
export E=$A$B F=${D}
declare -x G=7
readonly H=8
export H
export -n A
A=5
NCCL_DEBUG=INFO OMP_NUM_THREADS=4 python train.py --a $A
export A
unset B
env I=9 J="x y" python train.py --b "$B"
K=1 L=2
(export K; python train.py --sub)
python train.py --outer $NCCL_DEBUG
set -a
M=10
set +a
N=11
python train.py

#!/bin/bash
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=8 --gpus-per-node=8
#SBATCH -J llama
NODES=4
GPUS=8
LAUNCHER="torchrun --nproc_per_node $GPUS --nnodes $NODES --rdzv_backend c10d"
TRAIN="train.py --micro 1 --global $((NODES * GPUS * 4))"
if [ "${DEBUG:-0}" -eq 1 ]; then TRAIN+=" --debug"; fi
export CMD="$LAUNCHER $TRAIN"
echo CMD: $CMD
srun --jobid 1 bash -c "$CMD --tail" 2>&1 | tee -a log
$LAUNCHER $TRAIN
nohup $LAUNCHER $TRAIN --bg > out.log 2>&1 &
wait

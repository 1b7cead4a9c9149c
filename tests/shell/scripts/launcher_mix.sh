#!/bin/bash
python -m torch.distributed.run --nproc_per_node=4 --nnodes=2 train.py --a
python3 -m pkg.train --config x.yaml
torchrun --standalone --nproc_per_node=8 -m pkg.train --b
deepspeed --num_gpus 8 --num_nodes 2 train.py --deepspeed --c
nsys profile -t cuda,nvtx -o out --capture-range=cudaProfilerApi python train.py --d
accelerate launch --num_processes 16 --multi_gpu train.py --e
timeout 10 python train.py --f
env X=1 python train.py --g
mpirun -np 8 -x NCCL_DEBUG python train.py --h
exec python train.py --i

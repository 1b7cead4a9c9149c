"""Trains a tiny model with the real DeepSpeed on a CPU: ``deepspeed_training.py FOLDER RANKS STEPS``.

The folder holds a bundle: ``ds_config.json``, and ``training_args.yaml``, whose schedule transformers builds where the
JSON has none, as its trainer does. The ranks are processes that talk through gloo. Prints one JSON object: what the
engine of rank 0 says of itself, and ``losses`` and ``rates`` (the learning rate that the next step will use), one for
every optimizer step; ``used`` are the rates that the optimizer had when it stepped.

What stands in, as the real ones are first compiled for minutes: torch's AdamW for the fused one, and gloo alone for the
shared-memory collectives.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

RUN = {
    "CROSS_RANK": "0",
    "CROSS_SIZE": "1",
    "DEEPSPEED_LOG_LEVEL": "error",
    "DS_ACCELERATOR": "cpu",
    "MASTER_ADDR": "127.0.0.1",
    "MASTER_PORT": "0",  # the ranks find each other through a file
}


def schedule(folder: Path) -> Any:
    """The trainer's schedule as a function of the optimizer; the engine calls it with its own."""
    import yaml
    from transformers import get_scheduler

    given = yaml.safe_load((folder / "training_args.yaml").read_text(encoding="utf-8"))
    return lambda optimizer: get_scheduler(
        given["lr_scheduler_type"],
        optimizer,
        given.get("warmup_steps", 0),
        given["max_steps"],
        scheduler_specific_kwargs=given.get("lr_scheduler_kwargs", {}),
    )


def train(rank: int, folder: Path, ranks: int, steps: int, scratch: str) -> None:
    """One rank: as many micro batches as the engine asks for, for every optimizer step."""
    os.environ.update(RUN, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(ranks), LOCAL_SIZE=str(ranks))
    import deepspeed
    import torch

    deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
    torch.manual_seed(0)
    deepspeed.init_distributed("gloo", init_method=f"file://{scratch}/ranks", rank=rank, world_size=ranks)
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
    config = json.loads((folder / "ds_config.json").read_text(encoding="utf-8"))
    config["optimizer"]["params"]["torch_adam"] = True
    engine, *_ = deepspeed.initialize(
        model=model,
        model_parameters=list(model.parameters()),
        config=config,
        lr_scheduler=None if "scheduler" in config else schedule(folder),
    )
    kind = next(engine.module.parameters()).dtype
    micro, accumulation = engine.train_micro_batch_size_per_gpu(), engine.gradient_accumulation_steps()
    torch.manual_seed(1 + rank)
    used, rates, losses = [], [], []
    for _ in range(steps):
        used.append(float(engine.optimizer.param_groups[0]["lr"]))
        total = 0.0
        for _ in range(accumulation):
            inputs = torch.randn(micro, 16)
            outputs = engine(inputs.to(kind)).float()
            loss = (outputs - inputs[:, :4]).square().mean()
            engine.backward(loss)
            engine.step()
            total += float(loss.detach())
        losses.append(total / accumulation)
        rates.append(float(engine.get_lr()[0]))
    if rank == 0:
        answer = {
            "accumulation": accumulation,
            "clip": engine.gradient_clipping(),
            "data_parallel": engine.dp_world_size,
            "dtype": str(kind),
            "losses": losses,
            "micro_batch": micro,
            "micro_steps": engine.micro_steps,
            "rates": rates,
            "skipped": engine.skipped_steps,
            "stage": engine.zero_optimization_stage(),
            "steps": engine.global_steps,
            "train_batch": engine.train_batch_size(),
            "used": used,
        }
        (Path(scratch) / "answer.json").write_text(json.dumps(answer), encoding="utf-8")
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


def main() -> None:
    """Start the ranks, which end with this process, and print what the first one found."""
    folder, ranks, steps = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    from torch import multiprocessing

    with tempfile.TemporaryDirectory() as scratch:
        with contextlib.redirect_stdout(sys.stderr):
            multiprocessing.spawn(train, (folder, ranks, steps, scratch), nprocs=ranks)
        print("\n" + (Path(scratch) / "answer.json").read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()

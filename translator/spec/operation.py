"""Sections on what a run needs besides: data, checkpoint, logging, launch."""

from __future__ import annotations

from typing import Literal

from translator.spec.base import NOTHING, OPERATION, SPEED, Section, leaf
from translator.spec.touches import Touches

TRAINING = Touches.TRAINING


class Data(Section):
    """Datasets, tokenizer, seeds."""

    dataset: list[str] | None = leaf("dataset names or paths, with weights where the source has them", OPERATION)
    format: Literal["indexed", "huggingface"] | None = leaf("what the dataset names lead to", OPERATION)
    split: str | None = leaf("shares of training, validation and test", OPERATION)
    mock: bool | None = leaf("random data instead of a dataset", OPERATION)
    tokenizer: str | None = leaf("path or name of the tokenizer", OPERATION)
    tokenizer_type: str | None = leaf("kind of tokenizer", OPERATION)
    seed: int | None = leaf("random seed; None is random", TRAINING)
    deterministic: bool | None = leaf("only deterministic kernels", SPEED)
    workers: int | None = leaf("loader processes per rank", SPEED, ge=0)
    reset_positions: bool | None = leaf("positions restart after each document", TRAINING)
    reset_attention: bool | None = leaf("documents in one sequence do not attend to each other", TRAINING)
    mask_end_of_document: bool | None = leaf("no loss on the token after a document's end", TRAINING)


class Checkpoint(Section):
    """Saving and loading."""

    save: str | None = leaf("folder to save to; None saves nothing", OPERATION)
    load: str | None = leaf("folder to load from", OPERATION)
    interval: int | None = leaf("steps between saves", OPERATION, ge=0)
    keep_latest: int | None = leaf("checkpoints kept; 0 for all", OPERATION, ge=0)
    asynchronous: bool | None = leaf("saving runs beside training", SPEED)
    format: str | None = leaf("checkpoint format", OPERATION)
    override_schedule: bool | None = leaf(
        "a resumed run takes the schedule of the configuration, not of the checkpoint"
    )
    weights_only: bool | None = leaf("load the weights and start afresh otherwise", TRAINING)


class Logging(Section):
    """What is printed, recorded and evaluated."""

    interval: int | None = leaf("steps between log lines", OPERATION, ge=1)
    tensorboard: bool | None = leaf("write TensorBoard events", OPERATION)
    tensorboard_dir: str | None = leaf("folder of the TensorBoard events", OPERATION)
    wandb: bool | None = leaf("log to Weights & Biases", OPERATION)
    evaluate: bool | None = leaf("evaluate during training", OPERATION)
    eval_interval: int | None = leaf("steps between evaluations", OPERATION, ge=1)
    eval_steps: int | None = leaf("micro batches that each replica evaluates at a time; -1 for all", OPERATION)
    profile: bool | None = leaf("record a profile", OPERATION)


class Launch(Section):
    """The machines and the environment."""

    nodes: int | None = leaf("machines", OPERATION, ge=1)
    gpus_per_node: int | None = leaf("GPUs on each machine", OPERATION, ge=1)
    environment: dict[str, str] | None = leaf("environment variables that belong to the configuration", SPEED)
    program: str | None = leaf("the training program", NOTHING)
    compile: bool | None = leaf("the model is compiled", SPEED)
    garbage_collection_interval: int | None = leaf(
        "steps between manual garbage collections; 0 leaves it to Python", SPEED
    )
    process_group_timeout_seconds: int | None = leaf("how long a collective may take", OPERATION, ge=1)
    cuda_graphs: str | None = leaf("what is captured as CUDA graphs: none, full, or module names", SPEED)

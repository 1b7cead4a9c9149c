"""Codes of what the reader of Megatron-DeepSpeed scripts says: code -> (title, documentation).

Lines are of deepspeedai/Megatron-DeepSpeed at 4efb479d and of DeepSpeed 0.19.2.
"""
# ruff: noqa: E501 - documentation in strings

from __future__ import annotations

CODES: dict[str, tuple[str, str]] = {
    "R143": (
        "argument that no fork of Megatron-DeepSpeed has",
        "The script starts a fork of Megatron-LM with `--deepspeed`; neither deepspeedai's nor bigscience's has this argument, and their parser stops at it. A changed copy may have it.\n"
        "Example: `--num-kv-heads 8`. Way out: the message has the nearest names.",
    ),
    "R152": (
        "script read as Megatron-DeepSpeed",
        "Megatron-LM arguments beside `--deepspeed` belong to one of two forks, which are read with their own defaults: deepspeedai/Megatron-DeepSpeed, or bigscience-workshop/Megatron-DeepSpeed where only that one has the arguments.\n"
        "Example: `deepspeed pretrain_gpt.py --num-layers 24 --deepspeed --deepspeed_config ds.json`. Way out: none needed; `--from megatron` reads the arguments as Megatron-LM's.",
    ),
    "S215": (
        "batch sizes of script and JSON that disagree",
        "The loop sets the engine's global batch from `--global-batch-size` before each step (megatron/training.py:1253), so that one is in force. Micro batches are cut by `--micro-batch-size`, but the engine divides by its own `train_micro_batch_size_per_gpu` (deepspeed/runtime/engine.py:779): another number there scales the loss, or changes how many micro batches a pipeline runs.\n"
        'Example: `--micro-batch-size 4` with `"train_micro_batch_size_per_gpu": 2`. Way out: write the same size in both.',
    ),
    "S219": (
        "precision of script and JSON that disagree",
        "`--fp16` and `--bf16` say in which type the script builds the model and casts between its parts; the engine casts its parameters to the JSON's (deepspeed/runtime/engine.py:1573), and without one there expects fp32. bigscience's fork asserts that both agree.\n"
        'Example: `--bf16` with `"fp16": {"enabled": true}`. Way out: state the same in both.',
    ),
    "S223": (
        "argument of the script that the JSON overrules",
        "With `--deepspeed` the fork returns its plain optimizer (megatron/optimizer/__init__.py:118): clipping and loss scaling are the engine's, as the JSON says. The ZeRO stage is the JSON's too; `--zero-stage 3` only has the model built in shards.\n"
        "Example: `--clip-grad 1.0`, the default, and no `gradient_clipping`: nothing is clipped. Way out: state it in the JSON.",
    ),
    "S226": (
        "section of the JSON that the script overrules",
        "The fork hands its own optimizer and scheduler to `deepspeed.initialize` (megatron/training.py:617), which then uses neither section.\n"
        'Example: `"scheduler": {"type": "WarmupLR"}` beside `--lr-decay-style cosine`. Way out: drop the section.',
    ),
    "S227": (
        "layout that fork or engine refuse",
        "Degrees must divide the ranks (megatron/arguments.py:110). Without `--no-pipeline-parallel` the model is a PipelineModule, even with one stage: its engine takes ZeRO up to stage 1 (deepspeed/runtime/pipe/engine.py:76) and knows no sequence parallelism. An offloaded optimizer must be `--cpu-optimizer`'s.\n"
        'Example: `"stage": 2` without `--no-pipeline-parallel`. Way out: the message has it.',
    ),
    "S228": (
        "arguments that the fork refuses together",
        "`validate_args` stops where iterations and samples mix, where the floor of the rate is above its peak, or where a sequence is longer than its positions (megatron/arguments.py:245-315).\n"
        "Example: `--train-iters` with `--lr-warmup-samples`. Way out: the message has it.",
    ),
    "S244": (
        "recomputation that is not in force",
        "`--deepspeed-activation-checkpointing` says how activations are recomputed; `--checkpoint-activations` or `--recompute-granularity` that they are. The pipeline only recomputes uniformly (megatron/model/gpt_model.py:446).\n"
        "Example: the former alone. Way out: add `--checkpoint-activations`.",
    ),
}

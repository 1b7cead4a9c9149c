"""Options without a neutral meaning, by section: what each touches, and whether leaving it out is a loss."""

from __future__ import annotations

from collections.abc import Iterable

from translator.ledger import Entry
from translator.mapping.rows import Row, own
from translator.spec.touches import Touches

_NONE, _SPEED, _MEMORY = Touches.NOTHING, Touches.SPEED, Touches.MEMORY
_OPERATION, _TRAINING = Touches.OPERATION, Touches.TRAINING
_LOST, _OWN, _FOLDED = Entry.UNSUPPORTED, Entry.IRRELEVANT, Entry.ADAPTED
# The longest prefix that fits an address counts; an address that none fits is a fault that building the table shows.
SECTIONS: dict[str, tuple[Touches, Entry, str]] = {
    "activation_checkpointing.": (_NONE, _OWN, "read by deepspeed.checkpointing alone; it turns nothing on"),
    "aio.": (_SPEED, _OWN, "DeepSpeed's own reading and writing of NVMe"),
    "allgather_size": (_SPEED, _OWN, "a bucket of DeepSpeed's own"),
    "amp.": (_TRAINING, _LOST, "apex decides which products run in fp16"),
    "autotuning.": (_NONE, _OWN, "a search for a configuration, not a part of one"),
    "bf16.": (_TRAINING, _OWN, "a check or an order of DeepSpeed's own"),
    "checkpoint.": (_OPERATION, _OWN, "how DeepSpeed writes its checkpoints"),
    "comet.": (_OPERATION, _OWN, "a monitor"),
    "comms_logger.": (_OPERATION, _OWN, "a log of collectives"),
    "compile.": (_SPEED, _OWN, "DeepCompile, which the program turns on"),
    "compression_training": (_TRAINING, _LOST, "compression during training"),
    "csv_monitor.": (_OPERATION, _OWN, "a monitor"),
    "curriculum_learning": (_TRAINING, _LOST, "a curriculum of sequence lengths"),
    "data_efficiency.": (_TRAINING, _LOST, "sampling and routing of data"),
    "data_types.": (_MEMORY, _OWN, "the format of parameters or buffers where it is not the model's"),
    "dataloader_drop_last": (_OPERATION, _OWN, "whether the last, smaller batch is left out"),
    "datastates_ckpt": (_OPERATION, _OWN, "another writer of checkpoints"),
    "disable_allgather": (_SPEED, _OWN, "a switch of DeepSpeed's own collectives"),
    "disable_python_gc": (_SPEED, _OWN, "whether Python collects garbage"),
    "dump_state": (_OPERATION, _OWN, "prints the configuration"),
    "eigenvalue": (_TRAINING, _LOST, "eigenvalues for quantisation"),
    "elasticity.": (_TRAINING, _LOST, "elastic training picks the batch by the number of GPUs"),
    "expert_parallel.": (_SPEED, _OWN, "how AutoEP finds and runs experts"),
    "flops_profiler.": (_OPERATION, _OWN, "how the profile is printed"),
    "fp16.": (_TRAINING, _OWN, "a detail of DeepSpeed's loss scaling"),
    "gradient_allreduce_op": (_TRAINING, _LOST, "gradients are summed instead of averaged"),
    "gradient_predivide_factor": (_NONE, _OWN, "when gradients are divided"),
    "graph_harvesting": (_SPEED, _OWN, "CUDA graphs of DeepSpeed's own"),
    "hybrid_engine.": (_SPEED, _OWN, "generation between training steps"),
    "log_level": (_OPERATION, _OWN, "how much is printed"),
    "managed_gradient_accumulation": (_NONE, _OWN, "who counts micro batches"),
    "memory_breakdown": (_OPERATION, _OWN, "prints memory"),
    "nebula.": (_OPERATION, _OWN, "another writer of checkpoints"),
    "optimizer.legacy_fusion": (_SPEED, _OWN, "an older kernel"),
    "optimizer.params.": (_TRAINING, _LOST, "an argument of this optimizer alone"),
    "optimizer.params.fp32_optimizer_states": (_MEMORY, _OWN, "the format of states on the host"),
    "optimizer.params.set_grad_none": (_NONE, _OWN, "how gradients are cleared"),
    "optimizer.params.max_grad_norm": (_TRAINING, _LOST, "the engine refuses it; gradient_clipping clips"),
    "pipeline.": (_SPEED, _OWN, "read by PipelineModule alone, which has its degree from the program"),
    "prescale_gradients": (_NONE, _OWN, "when gradients are divided"),
    "progressive_layer_drop": (_TRAINING, _LOST, "layers are dropped at random"),
    "quantize_training": (_TRAINING, _LOST, "weights are quantised during training"),
    "scheduler.params.": (_TRAINING, _LOST, "an argument of this scheduler alone"),
    "scheduler.params.last_batch_iteration": (_OPERATION, _OWN, "where a resumed run goes on"),
    "sparse_attention": (_TRAINING, _LOST, "attention over a sparse pattern"),
    "sparse_gradients": (_SPEED, _OWN, "how gradients of embeddings are reduced"),
    "tensor_parallel.": (_SPEED, _OWN, "how AutoTP finds the linears that it splits"),
    "tensorboard.": (_OPERATION, _OWN, "a monitor"),
    "timers.": (_OPERATION, _OWN, "timers"),
    "torch_autocast.": (_TRAINING, _LOST, "which modules run in the lower precision"),
    "use_data_before_expert_parallelism": (_SPEED, _OWN, "the order of ranks in expert groups"),
    "vocabulary_size": (_NONE, _OWN, "a warning about its divisibility"),
    "wall_clock_breakdown": (_OPERATION, _OWN, "prints times"),
    "wandb.": (_OPERATION, _OWN, "a monitor"),
    "weight_quantization.": (_TRAINING, _LOST, "weights are quantised"),
    "zero_allow_untested_optimizer": (_NONE, _OWN, "permission for an optimizer of torch's own"),
    "zero_force_ds_cpu_optimizer": (_SPEED, _OWN, "whose kernel updates on the host"),
    "zero_optimization.": (_SPEED, _OWN, "how ZeRO does its work"),
    "zero_optimization.zero_quantized": (_TRAINING, _LOST, "weights or gradients travel quantised"),
    "zero_optimization.zenflow.": (_TRAINING, _LOST, "most of the update is done later, on the host"),
    "zero_optimization.zeropp_loco_param": (_TRAINING, _LOST, "quantised gradients with a feedback of the error"),
    "zero_optimization.stage3_param_persistence_threshold": (_MEMORY, _OWN, "small parameters stay on every rank"),
    "zero_optimization.stage3_max_live_parameters": (_MEMORY, _OWN, "how much is gathered at once"),
    "zero_optimization.sub_group_size": (_MEMORY, _OWN, "how much is updated at once"),
    "zero_optimization.compute_grad_norm": (_OPERATION, _OWN, "whether the norm is computed without clipping"),
    "@accelerate.": (_NONE, _OWN, "concerns accelerate's launcher alone"),
    "@accelerate.deepspeed_moe_layer_cls_names": (_MEMORY, _OWN, "modules that ZeRO-3 gathers as a whole"),
    "@accelerate.dynamo": (_SPEED, _OWN, "how torch compiles"),
    "@accelerate.fp8_config": (_TRAINING, _LOST, "products in fp8"),
    "@accelerate.zero3_init_flag": (_MEMORY, _OWN, "whether the model is built in shards from the start"),
    "hf.": (_NONE, _OWN, "concerns transformers' Trainer alone"),
    "hf.label_smoothing_factor": (_TRAINING, _LOST, "smoothed labels"),
    "hf.neftune_noise_alpha": (_TRAINING, _LOST, "noise on the embeddings"),
    "hf.use_lora": (_TRAINING, _LOST, "low-rank adapters are trained, not the model"),
    "hf.lora_r": (_TRAINING, _LOST, "low-rank adapters are trained, not the model"),
    "hf.finetuning_type": (_TRAINING, _LOST, "which part of the model is trained"),
    "hf.optim_args": (_TRAINING, _LOST, "further arguments of the optimizer"),
    "hf.optim_target_modules": (_TRAINING, _LOST, "which modules the optimizer treats apart"),
    "hf.model_name_or_path": (_OPERATION, _OWN, "the model whose weights are loaded; its config.json counts"),
    "hf.train_sampling_strategy": (_TRAINING, _OWN, "the order of samples"),
    "hf.data_seed": (_TRAINING, _OWN, "the seed of the order of samples"),
    "hf.dataloader_": (_SPEED, _OWN, "how data are loaded"),
    "hf.torch_": (_SPEED, _OWN, "how torch compiles"),
    "hf.save_": (_OPERATION, _OWN, "how checkpoints are saved"),
    "hf.logging_": (_OPERATION, _OWN, "what is logged"),
    "hf.eval_": (_OPERATION, _OWN, "how it is evaluated"),
}


def rows(addresses: Iterable[str]) -> tuple[Row, ...]:
    """A row per section for the addresses that no other row owns."""
    grouped: dict[str, list[str]] = {}
    prefixes = sorted(SECTIONS, key=len, reverse=True)
    for address in sorted(addresses):
        prefix = next((prefix for prefix in prefixes if address.startswith(prefix)), None)
        if prefix is not None:
            grouped.setdefault(prefix, []).append(address)
    return tuple(
        own(names, SECTIONS[prefix][0], SECTIONS[prefix][2], SECTIONS[prefix][1]) for prefix, names in grouped.items()
    )

"""DeepSpeed, with transformers around it, on the model, the loss, the optimizer, the schedule and the data."""

from __future__ import annotations

from translator.comparison.registry import how

_ENGINE = "deepspeed/runtime/engine.py::DeepSpeedEngine"
_CONFIG = "deepspeed/runtime/config.py::DeepSpeedConfig"
_TRAINER = "transformers/trainer.py::Trainer"
_ULYSSES = "deepspeed/runtime/sequence_parallel/ulysses_sp.py"

CONCEPTS = {
    "model-definition": how(
        "Any torch module: DeepSpeed wraps it and knows nothing of its architecture. With transformers the model is a "
        "name or a folder with a config.json, and the class that this names.",
        "deepspeed/__init__.py::initialize",
        "transformers/modeling_utils.py::PreTrainedModel.from_pretrained",
        options=("hf.model_name_or_path", "hf.config_name", "hf.config_overrides"),
    ),
    "attention": how(
        "The implementation that the model is asked for: torch's scaled dot product, flash, flex or eager, which "
        "makes the whole matrix. Masks are made by the model from lengths and positions.",
        "transformers/modeling_utils.py::AttentionInterface",
        "transformers/masking_utils.py::create_causal_mask",
        memory="Eager attention keeps heads x sequence x sequence numbers per sequence.",
    ),
    "rope-scaling": how(
        "From the model's configuration: linear, dynamic, YaRN, longrope or llama3, with all constants. Halves are "
        "rotated.",
        "transformers/modeling_rope_utils.py::_compute_llama3_parameters",
        "transformers/modeling_rope_utils.py::_compute_yarn_parameters",
        "transformers/models/llama/modeling_llama.py::LlamaRotaryEmbedding",
    ),
    "multi-token-prediction": how(
        "None: extra depths in published weights are left out when the model is loaded.",
        "transformers/models/deepseek_v3/modeling_deepseek_v3.py::DeepseekV3PreTrainedModel",
    ),
    "initialisation": how(
        "Published weights as a rule; else a normal distribution with the model's one standard deviation. At stage 3 "
        "parameters are partitioned as soon as they are made, and gathered to be drawn.",
        "transformers/modeling_utils.py::PreTrainedModel.init_weights",
        "deepspeed/runtime/zero/partition_parameters.py::Init",
    ),
    "batch": how(
        "Global batch, micro batch per GPU and accumulation; any two give the third, and the product over data ranks "
        "has to be right. Elastic training picks a batch that many numbers of ranks divide.",
        f"{_CONFIG}._set_batch_related_parameters",
        "deepspeed/elasticity/elasticity.py::compute_elastic_config",
        memory="One micro batch's activations.",
        options=("elasticity.enabled", "elasticity.max_train_batch_size", "elasticity.micro_batch_sizes"),
    ),
    "loss-normalisation": how(
        "The engine divides the loss that it is handed by the accumulation, and averages ranks: means of micro "
        "batches in a loop of one's own. transformers' Trainer hands it a loss over all tokens of the step instead, "
        "or over those of a rank where it is told not to count tokens across devices.",
        f"{_ENGINE}._scale_loss_by_gas",
        f"{_TRAINER}.compute_loss",
        f"{_TRAINER}.get_batch_samples",
        "transformers/loss/loss_utils.py::ForCausalLMLoss",
    ),
    "cross-entropy": how(
        "The model's: torch's cross entropy on fp32 logits of all tokens. Ulysses programs can compute logits and "
        "loss in tiles, and Liger's kernel can fuse them.",
        "transformers/loss/loss_utils.py::fixed_cross_entropy",
        f"{_ULYSSES}::TiledFusedLogitsLoss",
        memory="About 14 bytes x tokens x vocabulary at the peak, the model's output included.",
        options=("hf.liger_kernel_config",),
    ),
    "gradient-clipping": how(
        "The engine or ZeRO finds the norm over partitions and ranks and scales within the step; without a bound "
        "nothing is clipped.",
        f"{_ENGINE}.clip_fp32_gradients",
        "deepspeed/runtime/zero/stage_1_and_2.py::DeepSpeedZeroOptimizer.unscale_and_clip_grads",
    ),
    "optimizers": how(
        "A section of the JSON names Adam, AdamW, Lamb, Lion, Muon, Adagrad, one-bit ones or any of torch; else the "
        "Trainer's or the program's. Offloading brings its own Adam.",
        f"{_ENGINE}._configure_basic_optimizer",
        "deepspeed/ops/adam/fused_adam.py::FusedAdam",
        f"{_TRAINER}.get_optimizer_cls_and_kwargs",
        options=("zero_allow_untested_optimizer", "optimizer.legacy_fusion"),
    ),
    "weight-decay": how(
        "By the groups of parameters that the program makes: the Trainer's leave out biases and norms. A constant.",
        f"{_TRAINER}.get_decay_parameter_names",
        "transformers/integrations/deepspeed.py::deepspeed_optim_sched",
    ),
    "learning-rate-schedules": how(
        "A section of the JSON names a warm-up with or without linear or cosine decay, one cycle, or a range test; "
        "else the Trainer's. All count optimizer steps, and the warm-up is logarithmic unless told otherwise.",
        "deepspeed/runtime/lr_schedules.py::WarmupCosineLR",
        "deepspeed/runtime/lr_schedules.py::WarmupLR",
        "transformers/optimization.py::get_scheduler",
    ),
    "data-pipeline": how(
        "The program's loader: the Trainer's over a Hugging Face dataset, shuffled by epoch. DeepSpeed can sample by "
        "difficulty. A resumed run skips the batches of the epoch that it has seen.",
        f"{_TRAINER}.get_train_dataloader",
        "deepspeed/runtime/dataloader.py::DeepSpeedDataLoader",
        "deepspeed/runtime/data_pipeline/data_sampling/data_sampler.py::DeepSpeedDataSampler",
        options=("data_efficiency.enabled", "curriculum_learning", "hf.ignore_data_skip"),
    ),
    "packing": how(
        "By the collator: padding, or flattening without padding, where positions that restart keep documents apart in "
        "flash attention. Labels of -100 do not count.",
        "transformers/data/data_collator.py::DataCollatorWithFlattening",
        "transformers/masking_utils.py::packed_sequence_mask_function",
    ),
    "tokenizer": how(
        "That of the model's repository, in the program; DeepSpeed sees tensors alone.",
        "transformers/tokenization_utils_base.py::PreTrainedTokenizerBase",
    ),
    "seeds": how(
        "The Trainer seeds all generators alike on every rank, the order of data by a seed of its own if stated; full "
        "determinism is another option. Tensor ranks share or part their randomness as checkpointing is configured.",
        "transformers/trainer_utils.py::set_seed",
        "transformers/trainer_utils.py::enable_full_determinism",
        options=("hf.data_seed",),
    ),
}

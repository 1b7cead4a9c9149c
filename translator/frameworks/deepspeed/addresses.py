"""Addresses of a DeepSpeed configuration beyond the keys of its JSON.

``hf.*`` are arguments of a Hugging Face trainer, ``model_config.*`` the entries of a Hugging Face ``config.json``.
Those that begin with ``@`` are what `settle` derives; they hold what is in force:

===================================== ================================================================================
``@dp``                               ranks that the batch sizes are computed with (`DeepSpeedConfig.world_size`)
``@data_parallel``                    ranks that really see different samples: world size over tensor, sequence and
                                      pipeline degrees
``@tensor`` ``@sequence`` ``@expert`` degrees of AutoTP, Ulysses and AutoEP
``@global_batch``                     samples that one optimizer step really consumes
``@trainer``                          ``transformers``, ``accelerate`` or ``deepspeed``: who fills "auto" in
``@sharding``                         what ZeRO shards: ``none optimizer optimizer_gradients full``
``@engine_optimizer``                 the wrapper that the engine picks: ``BF16_Optimizer``, ``ZeRO``, ``FP16``,
                                      ``BF16``, ``AMP``, ``none``
``@compute_dtype`` ``@grad_dtype``    ``fp32 fp16 bf16``: of the model, of gradient accumulation
``@reduce_dtype``                     of gradient reduction
``@param_dtype``                      of the weights that the model itself holds
``@master_dtype``                     of the optimizer's copy of the weights; None where there is none
``@optimizer``                        ``adamw adam sgd lamb ...``, as it behaves
``@optimizer.<name>``                 ``lr beta1 beta2 eps weight_decay`` in force
``@optimizer.decay_all``              whether weight decay covers norms and biases too
``@clip``                             global norm to clip to; 0.0 when off
``@total_steps``                      optimizer steps of the run
``@schedule``                         the type in force: DeepSpeed's, ``hf.<type>``, or None
``@schedule.<name>``                  its parameters, see `schedules.Curve`
===================================== ================================================================================
"""

from __future__ import annotations

DP = "@dp"
DATA_PARALLEL = "@data_parallel"
TENSOR, SEQUENCE, EXPERT, PIPELINE = "@tensor", "@sequence", "@expert", "@pipeline"
GLOBAL_BATCH = "@global_batch"
TRAINER = "@trainer"
SHARDING = "@sharding"
ENGINE_OPTIMIZER = "@engine_optimizer"
COMPUTE_DTYPE, GRAD_DTYPE, REDUCE_DTYPE = "@compute_dtype", "@grad_dtype", "@reduce_dtype"
PARAM_DTYPE, MASTER_DTYPE = "@param_dtype", "@master_dtype"
OPTIMIZER = "@optimizer"
DECAY_ALL = "@optimizer.decay_all"
CLIP = "@clip"
TOTAL_STEPS = "@total_steps"
SCHEDULE = "@schedule"

TRAIN_BATCH = "train_batch_size"
MICRO_BATCH = "train_micro_batch_size_per_gpu"
ACCUMULATION = "gradient_accumulation_steps"
STAGE = "zero_optimization.stage"
FP16, BF16 = "fp16.enabled", "bf16.enabled"
# Keys of accelerate's own (``accelerate/commands/config/config_args.py`` at 1.15.0), which no JSON holds.
ACCELERATE = "@accelerate."
ACCELERATE_KEYS = frozenset(
    {"parallelism_config", "tpu_vm", "zero3_init_flag", "deepspeed_multinode_launcher", "deepspeed_hostfile"}
    | {
        "deepspeed_exclusion_filter",
        "deepspeed_inclusion_filter",
        "deepspeed_moe_layer_cls_names",
        "deepspeed_config_file",
    }
    | {
        "compute_environment",
        "distributed_type",
        "mixed_precision",
        "use_cpu",
        "debug",
        "machine_rank",
        "main_process_ip",
    }
    | {
        "rdzv_backend",
        "main_process_port",
        "main_training_function",
        "same_network",
        "downcast_bf16",
        "enable_cpu_affinity",
    }
    | {"gpu_ids", "tpu_env", "tpu_use_cluster", "tpu_use_sudo", "tpu_name", "tpu_zone", "commands", "command_file"}
    | {"dynamo_config", "dynamo_backend", "fsdp_config", "megatron_lm_config", "fp8_config", "mpirun_config"}
    | {"ipex_config", "num_cpu_threads_per_process", "deepspeed_fields_from_accelerate_config"}
)

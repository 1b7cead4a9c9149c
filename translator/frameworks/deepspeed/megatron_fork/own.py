"""The forks' arguments without a neutral meaning: what each touches, and whether leaving it out is a loss.

Those that Megatron-LM 0.12.0 has by the same name, and that mean nothing neutral there either, take its notes.
"""

from __future__ import annotations

from translator.ledger import Entry
from translator.mapping.rows import Row, own
from translator.spec.touches import Touches

_NONE, _SPEED, _MEMORY = Touches.NOTHING, Touches.SPEED, Touches.MEMORY
_OPERATION, _TRAINING = Touches.OPERATION, Touches.TRAINING
_LOST, _OWN, _FOLDED = Entry.UNSUPPORTED, Entry.IRRELEVANT, Entry.ADAPTED

GROUPS: tuple[tuple[str, Touches, Entry, str], ...] = (
    ("deepspeed deepscale", _NONE, _OWN, "hands the training to DeepSpeed's engine"),
    ("deepspeed_config deepscale_config", _TRAINING, _OWN, "names the JSON, whose keys stand on lines of their own"),
    (
        "clip_grad loss_scale initial_loss_scale min_loss_scale loss_scale_window hysteresis",
        _TRAINING,
        _OWN,
        "not in force: the engine clips and scales as the JSON says",
    ),
    (
        "zero_stage zero_reduce_scatter zero_contigious_gradients zero_reduce_bucket_size zero_allgather_bucket_size",
        _MEMORY,
        _OWN,
        "not in force: the JSON says what ZeRO does; at stage 3 the model is built in shards",
    ),
    ("remote_device use_pin_memory", _MEMORY, _OWN, "where parameters rest while ZeRO-3 builds the model"),
    (
        "accumulate_allreduce_grads_in_fp32 use_distributed_optimizer DDP_impl use_contiguous_buffers_in_ddp "
        "use_contiguous_buffers_in_local_ddp async_tensor_model_parallel_allreduce",
        _NONE,
        _OWN,
        "of Megatron-LM's own data parallelism, which the engine replaces",
    ),
    ("create_moe_param_group", _NONE, _OWN, "experts get optimizer groups of their own, as the engine needs them"),
    ("no_pipeline_parallel", _NONE, _FOLDED, "one pipeline stage, and no pipeline engine"),
    ("cpu_optimizer cpu_torch_adam ds_fused_adam use_bnb_optimizer", _SPEED, _OWN, "which kernel updates the weights"),
    (
        "num_layers_per_virtual_pipeline_stage overlap_p2p_comm",
        _NONE,
        _OWN,
        "of Megatron-LM's interleaved schedule, which the engine does not run",
    ),
    (
        "enable_zbh1_pipeline enable_zbh1_exact_semantics",
        _SPEED,
        _LOST,
        "a zero-bubble order of the backward passes; the result idles longer and gets the same gradients",
    ),
    ("force_ds_sequence_parallel", _NONE, _OWN, "distributed attention on one rank too"),
    (
        "ds_sequence_parallel_fpdt ds_sequence_parallel_fpdt_chunk_size ds_sequence_parallel_fpdt_offloading",
        _MEMORY,
        _LOST,
        "sequences are processed in chunks that rest on the host; the result keeps their activations on the GPU",
    ),
    (
        "checkpoint_in_cpu contigious_checkpointing",
        _MEMORY,
        _LOST,
        "where saved activations rest; the result keeps them on the GPU as they come",
    ),
    ("synchronize_each_layer profile_backward", _SPEED, _OWN, "waits and timers around recomputed layers"),
    (
        "distribute_checkpointed_activations",
        _NONE,
        _OWN,
        "asks for --checkpoint-activations; --partition-activations splits what DeepSpeed saves",
    ),
    ("mlp_type", _TRAINING, _LOST, "residual experts: a dense feed-forward beside the experts, weighed by a gate"),
    ("num_experts_switch", _TRAINING, _LOST, "Megatron-LM's first mixture of experts, which no leaf says"),
    ("moe_min_capacity", _TRAINING, _LOST, "the least number of tokens that an expert takes"),
    ("moe_eval_capacity_factor", _NONE, _OWN, "concerns evaluation only"),
    (
        "moe_top2_2nd_expert_sampling",
        _TRAINING,
        _LOST,
        "whether noise picks the second expert; the result takes the one with the second highest score",
    ),
    ("use_tutel", _SPEED, _OWN, "another kernel of the expert layer"),
    ("embed_layernorm", _TRAINING, _LOST, "a norm behind the embedding; the result has none"),
    ("embedding_weights_in_fp32", _TRAINING, _LOST, "embedding weights are cast to fp32 for the look-up"),
    ("scattered_embeddings split_transformers", _NONE, _OWN, "no code reads it"),
    (
        "memory_centric_tiled_linear tile_factor standalone_embedding_stage",
        _MEMORY,
        _LOST,
        "a way to cut the model up; the result holds whole linears, and the embedding beside the first layers",
    ),
    ("sync_tp_duplicated_parameters", _NONE, _OWN, "keeps norms equal on all tensor ranks, as they are elsewhere"),
    ("mem_efficient_ln abort_on_unmet_fused_kernel_constraints", _SPEED, _OWN, "a kernel of the fork's own"),
    (
        "apply_query_key_layer_scaling",
        _TRAINING,
        _OWN,
        "scores are divided by the layer's number before the softmax, which takes it back: other rounding only",
    ),
    ("random_ltd", _TRAINING, _LOST, "layers skip random tokens; the result trains on all of them"),
    (
        "data_efficiency_curriculum_learning train_idx_path train_desc_path train_doc_idx_path train_sample_idx_path "
        "train_shuffle_idx_path train_data_exact_num_epochs return_data_index",
        _TRAINING,
        _LOST,
        "the order of samples comes from DeepSpeed's analysis of the data; the result shuffles",
    ),
    (
        "kd kd_alpha_ce kd_beta_ce kd_temp mos load_teacher num_layers_teacher num_experts_teacher hidden_size_teacher "
        "num_attention_heads_teacher reset_iteration",
        _TRAINING,
        _LOST,
        "a teacher is distilled into the model; the result trains on the data alone",
    ),
    (
        "train_weighted_split_paths valid_weighted_split_paths test_weighted_split_paths "
        "train_weighted_split_paths_path valid_weighted_split_paths_path test_weighted_split_paths_path",
        _OPERATION,
        _LOST,
        "a blend of indexed files with shares of their own; name them with data.dataset=[...]",
    ),
    ("aml_data_download_path", _OPERATION, _OWN, "a folder in front of the data paths"),
    ("data_impl mmap_warmup repeated_dataloader valid_num_workers", _OPERATION, _OWN, "how the data is read"),
    (
        "loss_on_targets_only reweight_loss_based_on_position_frequency noise_density mean_noise_span_length",
        _TRAINING,
        _LOST,
        "weighs or masks tokens for another objective; the result predicts every next token",
    ),
    ("skip_train_iteration_range", _TRAINING, _LOST, "the batches of these steps are skipped"),
    ("eval_only inference ds_inference", _OPERATION, _LOST, "ends before training; the result trains"),
    ("no_load_lr_state use_checkpoint_lr_scheduler", _OPERATION, _OWN, "what a resumed run takes from its checkpoint"),
    ("load_tag universal_checkpoint", _OPERATION, _OWN, "which checkpoint of DeepSpeed's is loaded, and in which form"),
    ("retro_workdir retro_return_doc_ids", _NONE, _OWN, "concerns retrieval-enhanced models only"),
    ("img_dim use_dataset_only", _NONE, _OWN, "concerns other programs only"),
    (
        "log_batch_size_to_tensorboard log_learning_rate_to_tensorboard log_optimizer_states_to_tensorboard "
        "log_level log_level_replica log_path codecarbon_dir profile_steps",
        _OPERATION,
        _OWN,
        "what is logged, and where",
    ),
    ("kill_switch_file kill_switch_path", _OPERATION, _OWN, "a file that ends the run"),
)


def rows(dests: frozenset[str], name: str, notes: dict[str, Row]) -> list[Row]:
    """One row for each group of the arguments, whose addresses begin with ``name``; ``notes`` are Megatron-LM's."""
    left = set(dests)
    found: list[Row] = []
    for listed, touches, entry, note in GROUPS:
        group = [dest for dest in listed.split() if dest in left]
        left.difference_update(group)
        if group:
            found.append(own([name + dest for dest in group], touches, note, entry))
    for dest in sorted(left & notes.keys()):
        theirs = notes[dest]
        found.append(own([name + dest], theirs.touches, theirs.note, theirs.entry or Entry.IRRELEVANT))
    return found

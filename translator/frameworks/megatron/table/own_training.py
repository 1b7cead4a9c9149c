"""Options without a neutral meaning: optimizers, schedules, batches, evaluation, the end of a run."""

from __future__ import annotations

from translator.frameworks.megatron.table.own_group import lost, machinery
from translator.mapping.rows import Row
from translator.spec.touches import Touches

ROWS: tuple[Row, ...] = (
    lost("batch_size", Touches.TRAINING, "Megatron-LM refuses it; --micro-batch-size replaced it"),
    lost("warmup", Touches.TRAINING, "Megatron-LM refuses it; --lr-warmup-fraction replaced it"),
    lost("model_parallel_size", Touches.MEMORY, "Megatron-LM refuses it; --tensor-model-parallel-size replaced it"),
    lost("checkpoint_activations", Touches.MEMORY, "Megatron-LM refuses it; --recompute-activations replaced it"),
    lost(
        "decrease_batch_size_if_needed",
        Touches.TRAINING,
        "the global batch shrinks until it divides evenly; the result states the batch as it stands",
    ),
    lost(
        """
        muon_coefficient_type muon_extra_scale_factor muon_fp32_matmul_prec muon_momentum muon_nesterov
        muon_num_ns_steps muon_scalar_optimizer muon_scale_mode muon_split_qkv muon_tp_mode
        """,
        Touches.TRAINING,
        "shapes Muon's update; no leaf says it",
    ),
    lost("lion_beta1 lion_beta2", Touches.TRAINING, "a decay rate of Lion; no leaf says it"),
    lost(
        "head_lr_mult",
        Touches.TRAINING,
        "the learning rate of a fine-tuning head is scaled; the result uses one rate",
    ),
    lost(
        "use_checkpoint_opt_param_scheduler",
        Touches.TRAINING,
        "the learning rate schedule comes from the checkpoint, which is not read here",
    ),
    lost("iterations_to_skip", Touches.TRAINING, "the batches of these steps are skipped; the result trains on them"),
    lost(
        "phase_transition_iterations",
        Touches.TRAINING,
        "the datasets change at these steps; the result has one phase",
    ),
    lost(
        "exit_interval exit_duration_in_mins skip_train",
        Touches.OPERATION,
        "ends the program before training is complete; the result runs to the end",
    ),
    lost(
        """
        eval_global_batch_size eval_micro_batch_size full_validation multiple_validation_sets start_eval_at_iter
        validation_set_names
        """,
        Touches.OPERATION,
        "says how evaluation runs in detail; the result evaluates in its own way",
    ),
    machinery("test_mode", Touches.OPERATION, "checks along the run that data and resumption are as expected"),
    machinery(
        "dump_param_to_param_group_map",
        Touches.OPERATION,
        "writes down which parameters belong to which optimizer group",
    ),
    lost(
        "logits_load_dir logits_load_kd_loss_alpha",
        Touches.TRAINING,
        "the loss also follows the stored logits of a teacher; the result has the language loss only",
    ),
    machinery(
        "logits_load_decode_threads logits_load_ignore_errors logits_load_msc_prefetch_depth "
        "logits_load_prefetch_factor",
        Touches.OPERATION,
        "says how stored logits of a teacher are read",
    ),
    machinery(
        "logits_save_dir logits_save_dtype logits_save_top_k logits_save_top_p logits_save_top_p_min_k",
        Touches.OPERATION,
        "stores logits for a later distillation",
    ),
)

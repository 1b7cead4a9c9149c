"""torchtitan on the model, the loss, the optimizer, the schedule and the data."""

from __future__ import annotations

from translator.comparison.registry import how

_MODEL = "torchtitan/models/llama3/model/"
_TRAIN = "torchtitan/train.py"
_UTILS = "torchtitan/distributed/utils.py"
_OPTIMIZER = "torchtitan/components/optimizer.py"
_DATA = "torchtitan/hf_datasets/text_datasets.py"

CONCEPTS = {
    "model-definition": how(
        "A name and a flavor choose a row of a table in the code; dimensions are not options. Another architecture is "
        "a new flavor, or a train spec registered from a module of one's own.",
        "torchtitan/protocols/train_spec.py::TrainSpec",
        "torchtitan/protocols/train_spec.py::get_train_spec",
        f"{_MODEL}args.py::TransformerModelArgs",
        options=("experimental.custom_args_module",),
    ),
    "attention": how(
        "torch's scaled dot product, which chooses among flash, cuDNN and efficient kernels, flex attention with block "
        "masks, or variable-length flash attention: the flavor decides.",
        "torchtitan/models/attention.py::ScaledDotProductAttentionWrapper",
        "torchtitan/models/attention.py::FlexAttentionWrapper",
        "torchtitan/models/attention.py::VarlenAttentionWrapper",
    ),
    "rope-scaling": how(
        "Part of the flavor: base, and llama3's or YaRN's stretching with all their constants. Neighbouring pairs are "
        "rotated in llama, halves in qwen3; converters from Hugging Face permute the weights to fit.",
        f"{_MODEL}model.py::precompute_freqs_cis",
        f"{_MODEL}args.py::RoPEScalingArgs",
        "torchtitan/models/deepseek_v3/model/model.py::precompute_freqs_cis",
    ),
    "multi-token-prediction": how(
        "None in this version.",
        "torchtitan/models/deepseek_v3/model/model.py::DeepSeekV3Model",
    ),
    "initialisation": how(
        "A truncated normal distribution of 0.02 inside, by depth for the last linear of a sublayer, and by width for "
        "the output layer; embeddings are drawn from a normal distribution of 1 in llama. Weights are drawn as "
        "DTensors, so they do not depend on the degrees.",
        f"{_MODEL}model.py::Transformer.init_weights",
        f"{_MODEL}model.py::TransformerBlock.init_weights",
        "torchtitan/models/utils.py::trunc_normal_",
    ),
    "batch": how(
        "A local batch per data-parallel rank and a global batch; accumulation is their quotient. Under a pipeline the "
        "local batch is cut into pipeline micro batches. Sizes are constant.",
        f"{_TRAIN}::Trainer",
        "torchtitan/distributed/pipeline_parallel.py::build_pipeline_schedule",
        memory="The local batch's activations, or one pipeline micro batch's per micro batch in flight.",
    ),
    "loss-normalisation": how(
        "Sums, divided by all valid tokens of the step over all data ranks and micro batches, which are counted "
        "before the first forward pass. Gradients are summed, not averaged.",
        f"{_TRAIN}::Trainer.train_step",
        "torchtitan/components/loss.py::cross_entropy_loss",
    ),
    "cross-entropy": how(
        "torch's cross entropy on fp32 logits, compiled where the loss is among the compiled components, cut over the "
        "vocabulary with parallel loss.",
        "torchtitan/components/loss.py::build_cross_entropy_loss",
        "torch/distributed/tensor/parallel/loss.py::loss_parallel",
        memory="Eager: about 12 bytes x tokens x vocabulary / tensor ranks at the peak; compiled, 4.",
        moves=("vocabulary",),
    ),
    "gradient-clipping": how(
        "The norm of DTensors is reduced over their meshes and then over pipeline stages; with expert parallelism in "
        "two parts. The norm is found and logged in every step.",
        f"{_UTILS}::clip_grad_norm_",
        f"{_UTILS}::_clip_grad_norm_with_ep",
    ),
    "optimizers": how(
        "Adam and AdamW of torch, fused unless told otherwise; others by code. The update can run inside the backward "
        "pass, which then leaves out clipping and accumulation.",
        f"{_OPTIMIZER}::build_optimizers",
        f"{_OPTIMIZER}::OptimizersInBackwardContainer",
        options=("optimizer.early_step_in_backward",),
    ),
    "weight-decay": how(
        "One group with all parameters: norms, biases and embeddings decay as well, by a constant.",
        f"{_OPTIMIZER}::OptimizersContainer",
    ),
    "learning-rate-schedules": how(
        "One function of steps: linear warm-up, a stable part and a linear, square-root or cosine decay, whose length "
        "is a share of the run. The floor is a factor of the peak.",
        "torchtitan/components/lr_scheduler.py::build_lr_schedulers",
        "torchtitan/components/lr_scheduler.py::LRSchedulersContainer",
    ),
    "data-pipeline": how(
        "A Hugging Face dataset, streamed or local, split by rank, tokenised on the fly and cut into sequences. "
        "The loader's state is part of the checkpoint, and fits the same number of data ranks alone.",
        f"{_DATA}::HuggingFaceTextDataset",
        "torchtitan/components/dataloader.py::ParallelAwareDataloader",
        options=("training.dataloader.prefetch_factor", "training.dataloader.persistent_workers"),
    ),
    "packing": how(
        "Documents with a begin and an end token fill sequences end to end. They see each other with plain causal "
        "attention; flex or variable-length attention with a document mask keeps them apart, if the flavor says so.",
        f"{_DATA}::HuggingFaceTextDataset",
        "torchtitan/models/attention.py::get_document_mask_mod",
        "torchtitan/models/attention.py::create_varlen_metadata_for_document",
    ),
    "tokenizer": how(
        "The tokenizer files of a Hugging Face repository, read from a folder; whether begin and end tokens are added "
        "is inferred from its configuration.",
        "torchtitan/components/tokenizer.py::HuggingFaceTokenizer",
    ),
    "seeds": how(
        "One seed for all ranks of a mesh, different along the pipeline; DTensor keeps random draws consistent. "
        "Without a seed rank 0 draws one. A switch asks torch for deterministic kernels.",
        f"{_UTILS}::set_determinism",
        options=("debug.deterministic_warn_only",),
    ),
}

"""Megatron-LM on the model, the loss, the optimizer, the schedule and the data."""

from __future__ import annotations

from translator.comparison.registry import how

_CORE = "megatron/core/"
_GPT = f"{_CORE}models/gpt/"
_DATA = f"{_CORE}datasets/"
_TRAINING = "megatron/training/training.py"
_ARGUMENTS = "megatron/training/arguments.py"

CONCEPTS = {
    "model-definition": how(
        "Every dimension is an option of the command line; nothing has the name of a published model. A layer "
        "specification composes the modules, of TransformerEngine or of core.",
        f"{_GPT}gpt_model.py::GPTModel",
        f"{_GPT}gpt_layer_specs.py::get_gpt_layer_with_transformer_engine_spec",
        f"{_CORE}transformer/transformer_config.py::TransformerConfig",
    ),
    "attention": how(
        "TransformerEngine's attention, which chooses among flash, fused (cuDNN) and unfused kernels or takes the one "
        "that is named; core's own unfused one otherwise. Masks are causal, with an optional window; masks that the "
        "loader makes take memory.",
        f"{_CORE}transformer/attention.py::SelfAttention",
        f"{_CORE}extensions/transformer_engine.py::TEDotProductAttention",
        f"{_CORE}transformer/dot_product_attention.py::DotProductAttention",
    ),
    "rope-scaling": how(
        "Frequencies from a base and a share of the head's width; llama3's stretching by one factor, with the other "
        "constants fixed, linear interpolation by another option, and YaRN. Halves are rotated unless interleaving is "
        "asked for.",
        f"{_CORE}models/common/embeddings/rotary_pos_embedding.py::RotaryEmbedding._apply_scaling",
        f"{_CORE}models/common/embeddings/yarn_rotary_pos_embedding.py::YarnRotaryEmbedding",
    ),
    "multi-token-prediction": how(
        "So many extra depths after the last layer, each a projection and a transformer layer, on the last stage or on "
        "stages of their own. Their losses are averaged, scaled and added without changing the reported loss.",
        f"{_CORE}transformer/multi_token_prediction.py::MultiTokenPredictionLayer",
        f"{_CORE}transformer/multi_token_prediction.py::process_mtp_loss",
        memory="Each depth adds a layer, a projection of 2 x hidden x hidden, and logits of its own.",
    ),
    "initialisation": how(
        "A normal distribution with one standard deviation, and for the last linear of a sublayer that over "
        "sqrt(2 x layers). Each tensor rank draws its own part, so the first weights depend on the degree.",
        f"{_CORE}utils.py::init_method_normal",
        f"{_CORE}utils.py::scaled_init_method_normal",
        f"{_CORE}tensor_parallel/layers.py::_initialize_affine_weight_gpu",
    ),
    "batch": how(
        "Micro and global batch are stated in sequences; accumulation is the global batch over micro batch and data "
        "ranks. The global batch can grow by a list of thresholds; the linear ramp of older versions is ignored.",
        f"{_CORE}num_microbatches_calculator.py::init_num_microbatches_calculator",
        f"{_CORE}num_microbatches_calculator.py::StepBatchsizeNumMicroBatchesCalculator",
        memory="One micro batch's activations per micro batch in flight; the global batch costs none.",
    ),
    "loss-normalisation": how(
        "By default each micro batch's mean over its own tokens, averaged over micro batches and data ranks. With "
        "per-token loss the sums and the numbers of tokens are reduced, and gradients are divided once at the end.",
        f"{_CORE}pipeline_parallel/schedules.py::forward_step_calc_loss",
        f"{_CORE}distributed/finalize_model_grads.py::finalize_model_grads",
    ),
    "cross-entropy": how(
        "A vocabulary-parallel cross entropy in fp32, eager, fused by the compiler, or TransformerEngine's. It writes "
        "over its input and keeps the softmax for the backward pass.",
        f"{_CORE}tensor_parallel/cross_entropy.py::VocabParallelCrossEntropy",
        f"{_CORE}fusions/fused_cross_entropy.py::fused_vocab_parallel_cross_entropy",
        memory="6 bytes x tokens x vocabulary / tensor ranks: logits in bf16 and the softmax in fp32.",
        moves=("vocabulary",),
    ),
    "gradient-clipping": how(
        "The L2 norm over all parameters, each counted once across tensor, pipeline and data ranks; gradients are "
        "scaled in place in fp32. Without a bound no norm is found, and none is logged.",
        f"{_CORE}optimizer/clip_grads.py::get_grad_norm_fp32",
        f"{_CORE}optimizer/clip_grads.py::clip_grad_by_total_norm_fp32",
    ),
    "optimizers": how(
        "Adam with decoupled decay (or coupled, by an option), SGD, Muon and its like, from fused kernels of "
        "TransformerEngine or Apex, else from torch.",
        f"{_CORE}optimizer/__init__.py::get_megatron_optimizer",
        f"{_CORE}optimizer/optimizer_config.py::OptimizerConfig",
        memory="Adam keeps two moments, SGD with momentum and Muon one.",
    ),
    "weight-decay": how(
        "Biases and tensors of one dimension do not decay (norms of queries and keys can be made to). The decay may "
        "grow from a start to an end along the run.",
        f"{_CORE}optimizer/__init__.py::_get_param_groups",
        f"{_CORE}optimizer_param_scheduler.py::OptimizerParamScheduler.get_wd",
    ),
    "learning-rate-schedules": how(
        "One scheduler with linear warm-up and constant, linear, cosine, inverse-square-root or WSD decay, counted in "
        "samples: iterations are multiplied by the global batch. The floor is absolute.",
        f"{_CORE}optimizer_param_scheduler.py::OptimizerParamScheduler.get_lr",
        f"{_TRAINING}::get_optimizer_param_scheduler",
    ),
    "data-pipeline": how(
        "Tokenised beforehand into indexed binary files, mixed by weights through index files that fix the order of "
        "the whole run. A restart computes its place from the samples consumed, so nothing of the loader is saved.",
        f"{_DATA}gpt_dataset.py::GPTDataset",
        f"{_DATA}blended_megatron_dataset_builder.py::BlendedMegatronDatasetBuilder",
        "megatron/training/datasets/data_samplers.py::MegatronPretrainingSampler",
    ),
    "packing": how(
        "Documents are laid end to end and cut into sequences. They see each other unless positions and masks "
        "are told to restart, which makes a mask in the loader; fine-tuning data have packed sequences with lengths.",
        f"{_DATA}gpt_dataset.py::_get_ltor_masks_and_position_ids",
        f"{_CORE}packed_seq_params.py::PackedSeqParams",
        memory="A mask from the loader is sequence x sequence bytes per sequence of a micro batch.",
    ),
    "tokenizer": how(
        "Used when data are prepared; in training it decides the size of the vocabulary and the token that ends a "
        "document. Types range from GPT-2's BPE to SentencePiece, tiktoken and Hugging Face's.",
        "megatron/training/global_vars.py::_build_tokenizer",
        f"{_CORE}tokenizers/megatron_tokenizer.py::MegatronTokenizer",
    ),
    "seeds": how(
        "One seed, offset by the pipeline stage; generators of their own for tensor-parallel, expert and data-parallel "
        "randomness. A deterministic mode demands kernels and environment variables that allow it.",
        "megatron/training/initialize.py::_set_random_seed",
        f"{_CORE}tensor_parallel/random.py::model_parallel_cuda_manual_seed",
        f"{_ARGUMENTS}::validate_args",
    ),
}

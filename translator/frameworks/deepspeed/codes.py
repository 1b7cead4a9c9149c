"""Codes of what the DeepSpeed reader says: code -> (title, documentation).

``R130`` to ``R149`` are about reading, ``S200`` to ``S229`` about what DeepSpeed or transformers refuses, ``S230`` to
``S249`` about keys that work otherwise than they look. Files are those of DeepSpeed 0.19.2 unless it says otherwise.
"""
# ruff: noqa: E501 - documentation in strings

from __future__ import annotations

_CONFIG = "deepspeed/runtime/config.py"
_ENGINE = "deepspeed/runtime/engine.py"
_UTILS = "deepspeed/runtime/config_utils.py"
_SCHEDULES = "deepspeed/runtime/lr_schedules.py"
_HF = "transformers/integrations/deepspeed.py"

CODES: dict[str, tuple[str, str]] = {
    "R130": (
        "unknown key in a strict section",
        f"The section is a pydantic model that takes no other keys ({_UTILS}:110), so DeepSpeed stops at it.\n"
        'Example: `"zero_optimization": {"stages": 2}`. Way out: the message has the nearest names.',
    ),
    "R131": (
        "unknown key, ignored",
        "DeepSpeed looks its keys up in a plain dictionary here and never sees others: a misspelt key does nothing, and nothing says so.\n"
        'Example: `"gradient_cliping": 1.0`. Way out: the message has the nearest names; drop the key otherwise.',
    ),
    "R132": (
        "argument that the class does not take",
        f"`params` go to the class as keyword arguments ({_ENGINE}:1822, {_ENGINE}:1440), which stops at one that it does not know.\n"
        'Example: `"scheduler": {"type": "WarmupLR", "params": {"total_num_steps": 100}}`. Way out: correct the name, or the type.',
    ),
    "R133": (
        "value of another type in a strict section",
        'The section is a pydantic model that checks its values: `5e8` is an integer, `"2"` too, `"5e8"` is not.\n'
        'Example: `"min_loss_scale": 1e-10`. Way out: write what the message asks for.',
    ),
    "R134": (
        "value of another type",
        "Nothing checks the value when the file is read; it fails where it is used, or counts as true.\n"
        'Example: `"prescale_gradients": "false"`, which is true. Way out: write the value without quotes.',
    ),
    "R135": (
        "more than JSON",
        f"`deepspeed.initialize` reads its file with hjson ({_CONFIG}:653), which takes comments, trailing commas and missing quotes. transformers and accelerate read the same file with `json.load` and stop.\n"
        'Example: `{"train_batch_size": 8,}`. Way out: write plain JSON.',
    ),
    "R136": (
        "key twice",
        f"DeepSpeed refuses a key that stands twice in one object ({_UTILS}:205); other readers take the last. An alias counts as the key.\n"
        'Example: `"stage3_prefetch_bucket_size"` beside `"prefetch_bucket_size"`. Way out: keep one.',
    ),
    "R137": (
        "deprecated spelling",
        f"The key is read as the one that took its place ({_UTILS}:63).\n"
        'Example: `"cpu_offload": true` is `"offload_optimizer": {"device": "cpu"}`. Way out: write the new one.',
    ),
    "R138": (
        "key of another version",
        "Another version has the key. In a strict section this one stops at it; elsewhere it ignores it. 0.19.8 stops at the keys of features that it dropped (runtime/config.py:81 there).\n"
        'Example: `"elasticity"` at 0.19.8. Way out: drop it, or read the file as the other version (`--from deepspeed@0.16.9`).',
    ),
    "R139": (
        '"auto" that nothing here fills',
        f'transformers replaces "auto" by its TrainingArguments ({_HF}:138 at 5.24.0). The files hold neither them nor a value, so the settings stay open.\n'
        'Example: `"train_batch_size": "auto"` alone. Way out: give the launch line or the arguments (`--args`), the model, or `--set per_device_train_batch_size=4`.',
    ),
    "R140": (
        "variable of a template",
        "A script fills the value in before the run, and the file alone does not tell it.\n"
        'Example: `"stage": $ZERO_STAGE`. Way out: `--set ZERO_STAGE=1`, or read the script itself.',
    ),
    "R141": (
        "value without quotes",
        "hjson takes the rest of the line for the value, comma included; a Python literal is such a word.\n"
        'Example: `"enabled": True,` is the text `True,`. Way out: write JSON.',
    ),
    "R142": (
        "value in the place of a section",
        "The key holds an object; DeepSpeed takes the value apart as one and stops.\n"
        'Example: `"fp16": true`. Way out: `"fp16": {"enabled": true}`.',
    ),
    "R144": (
        "configuration not found",
        "The launch line or YAML file names a configuration that is neither written by the script nor beside it, or only the machine knows its name.\n"
        "Example: `--deepspeed $CONFIG`. Way out: `--set CONFIG=ds.json`, or read the configuration itself.",
    ),
    "R145": (
        "argument of an older transformers",
        "The argument has another name in transformers 5.24.0 and is read as that.\n"
        "Example: `--evaluation_strategy`. Way out: none needed.",
    ),
    "R146": (
        "unusable argument",
        "The argument's type does not take the value, so the program stops at it.\n"
        "Example: `--learning_rate fast`. Way out: write a value of the type.",
    ),
    "R147": (
        "a choice among several, or arguments of the program's own",
        "A script with several launches or configurations is read as one of them; arguments that no trainer knows are kept and not read.\n"
        "Way out: `--launch N` picks another.",
    ),
    "R148": (
        "remark in the place of a key",
        "JSON has no comments, so people write keys for them; DeepSpeed ignores these.\n"
        'Example: `"_comment": "for 8 GPUs"`. Way out: none needed.',
    ),
    "R149": (
        "key handed on as it is",
        "DeepSpeed gives the key to something else, which knows its names: apex, an optimizer of its own, a pipeline. Nothing is translated.\n"
        'Example: `"amp": {"opt_level": "O1"}`. Way out: none needed.',
    ),
    "R150": (
        "model of an unknown kind",
        "No family that ttx knows has this `model_type`. The entries that most configurations share are read; biases, norms, positions and the like stay open.\n"
        'Example: `"model_type": "bloom"`. Way out: set what is missing by hand (`model.norm=layernorm`).',
    ),
    "R151": (
        "entry of a model that nothing says",
        "The family is known, and this entry of its `config.json` has no field in the spec, such as another scale of queries. A conversion leaves it out.\n"
        'Example: `"query_pre_attn_scalar": 256`. Way out: none; check that the target model has it.',
    ),
    "S200": (
        "no batch size",
        f"One of `train_batch_size` and `train_micro_batch_size_per_gpu` must be there ({_CONFIG}:950).\n"
        'Example: `{"gradient_accumulation_steps": 4}`. Way out: write one of them.',
    ),
    "S201": (
        "a batch size of zero",
        f"All three sizes must be positive ({_CONFIG}:893). Those left out come from whole divisions, so a global batch smaller than the ranks gives 0.\n"
        'Example: `"train_batch_size": 4` on 8 GPUs. Way out: make the sizes divisible.',
    ),
    "S202": (
        "batch sizes that do not agree",
        f"`train_batch_size` must be micro batch times accumulation times ranks ({_CONFIG}:899). Sizes that do not divide end here too.\n"
        'Example: `"train_batch_size": 6` with a micro batch of 1 on 8 GPUs. Way out: leave one of the three out.',
    ),
    "S203": (
        "a batch size that is no number",
        'DeepSpeed computes with the sizes as they stand and fails with a TypeError. "auto" is only for transformers and accelerate.\n'
        'Example: `"train_batch_size": "auto"` with `deepspeed.initialize`. Way out: write numbers.',
    ),
    "S204": (
        "an impossible precision",
        f"fp16 and bf16 exclude each other ({_CONFIG}:793); since 0.19.8 dynamic loss scaling needs a positive window and minimum.\n"
        "Example: both sections enabled. Way out: turn one off.",
    ),
    "S205": (
        "an unknown way to reduce",
        f"Communication is in fp16, bf16 or fp32 ({_CONFIG}:219); the operation is mean or sum, the latter not at stage 3 (0.19.8).\n"
        'Example: `"communication_data_type": "float32"`. Way out: write one of those.',
    ),
    "S206": (
        "16-bit master weights without what they need",
        f"They need stage 1, 2 or 3 ({_CONFIG}:993), up to 0.16.9 stage 2; and an optimizer that is offloaded to the CPU and Adam (deepspeed/runtime/base_optimizer.py:493), or, for bf16, `bf16_optimizer_states`.\n"
        'Example: `"bf16_master_weights_and_grads": true` at stage 0. Way out: turn ZeRO on.',
    ),
    "S207": (
        "bf16 optimizer states without bf16 master weights",
        f"`bf16_optimizer_states` needs `bf16_master_weights_and_grads` ({_CONFIG}:1005).\n"
        "Example: the former alone. Way out: set both.",
    ),
    "S208": (
        "an option of another ZeRO stage",
        "Offloading a part of the optimizer (`ratio` below 1) is for stage 3 (runtime/zero/config.py:385); leaving out the gradient norm for stages 1 and 2 (0.19.8).\n"
        'Example: `"ratio": 0.5` at stage 2. Way out: another stage, or drop the key.',
    ),
    "S209": (
        "a type that the engine cannot do",
        f"Without ZeRO, gradients are accumulated in the model's own type ({_ENGINE}:1715); the types of `data_types` and `torch_autocast` are bf16, fp16 or fp32 ({_CONFIG}:98).\n"
        'Example: bf16 with `"grad_accum_dtype": "fp32"` at stage 0. Way out: stage 1.',
    ),
    "S210": (
        "AutoTP with ZeRO stage 3",
        f"Tensor parallelism from the JSON goes with stages 0 to 2 ({_ENGINE}:575).\n"
        'Example: `"autotp_size": 2` at stage 3. Way out: stage 2.',
    ),
    "S211": (
        "max_grad_norm among the optimizer's arguments",
        f"The engine refuses it there ({_ENGINE}:1777).\n"
        'Example: `"params": {"max_grad_norm": 1.0}`. Way out: `"gradient_clipping": 1.0` at the top level.',
    ),
    "S212": (
        "elastic training that does not start",
        f"Elastic training picks the batch from `max_train_batch_size`, `micro_batch_sizes` and the number of ranks (deepspeed/elasticity/elasticity.py:287). It refuses stated sizes ({_CONFIG}:727), a section that lacks or mistypes what it needs, and a number of ranks that the batch does not divide among.\n"
        "Example: `train_batch_size` with `elasticity.enabled`. Way out: drop one, or change the key in the message.",
    ),
    "S213": (
        "configuration and trainer disagree",
        f"transformers compares stated values with its TrainingArguments and refuses a difference ({_HF}:265 at 5.24.0).\n"
        'Example: `"lr": 1e-4` with `--learning_rate 5e-5`. Way out: write "auto" in the JSON.',
    ),
    "S214": (
        '"auto" in a place where nobody fills it in',
        "transformers and accelerate know a fixed list of keys. Elsewhere DeepSpeed gets the word itself: a strict section drops it for the default, a lax one computes with it.\n"
        'Example: `"steps_per_print": "auto"`. Way out: write a value.',
    ),
    "S216": (
        "optimizer that the engine does not take",
        f"Names that are not DeepSpeed's own are looked up in torch.optim, as they are spelt there, and ZeRO takes most of them only with `zero_allow_untested_optimizer` ({_ENGINE}:1683). 0.19.8 has no 1-bit optimizers; Lamb needs dynamic loss scaling; torch's classes check their numbers.\n"
        'Example: `"type": "SGD"` at stage 2. Way out: set `zero_allow_untested_optimizer`.',
    ),
    "S217": (
        "scheduler that the engine does not take, or that lacks what it needs",
        f"WarmupDecayLR and WarmupCosineLR need `total_num_steps` ({_SCHEDULES}:753), OneCycle its two rates, and all of them `params`. Other names are looked up in torch.optim.lr_scheduler ({_ENGINE}:1431), whose classes refuse the engine's optimizers of ZeRO, fp16 and bf16. Since 0.19.8 `warmup_num_steps` must be positive.\n"
        'Example: `{"type": "WarmupDecayLR"}`. Way out: write the key.',
    ),
    "S218": (
        "a checkpoint setting that does not exist",
        f"`tag_validation` is Warn, Ignore or Fail ({_CONFIG}:610), the writer MOCK, PYTHON or FAST (runtime/model_checkpointing/config.py:29).\n"
        'Example: `"tag_validation": "off"`. Way out: write one of those.',
    ),
    "S220": (
        "apex amp beside other precision",
        f"amp goes with neither ZeRO, fp16 nor bf16 ({_ENGINE}:1678).\n"
        "Example: `amp.enabled` at stage 1. Way out: use bf16.",
    ),
    "S221": (
        "1-bit optimizer with ZeRO",
        f"OneBitAdam, OneBitLamb and ZeroOneAdam do not go with ZeRO ({_ENGINE}:1839).\n"
        "Example: `OneBitAdam` at stage 1. Way out: stage 0, or AdamW.",
    ),
    "S222": (
        "a section that lacks what it needs",
        f"Some sections are taken apart without asking ({_CONFIG}:150-170, deepspeed/runtime/data_pipeline/curriculum_scheduler.py:15, deepspeed/compression/config.py:74).\n"
        'Example: `"progressive_layer_drop": {"theta": 0.5}`. Way out: write the key in the message.',
    ),
    "S224": (
        "old and new spelling together",
        f"A deprecated key and the one that took its place may not both be there ({_UTILS}:93).\n"
        "Example: `cpu_offload` beside `offload_optimizer`. Way out: drop the old one.",
    ),
    "S225": (
        "gradient clipping",
        "Without the key, clipping is off up to 0.19.2 and at 1.0 in 0.19.8. A value that is no number fails at the first step.\n"
        "Example: no `gradient_clipping`. Way out: write it, `0.0` for off.",
    ),
    "S229": (
        "a value that stops the run where it is used",
        f"Nothing checks the value when the file is read; the engine or its first step stops at it: a switch that is combined with another ({_CONFIG}:821), a number of steps that is divided by ({_ENGINE}:3020), a bucket that holds nothing.\n"
        'Example: `"wall_clock_breakdown": "false"`, or `"steps_per_print": 0`. Way out: write what the message asks for.',
    ),
    "S230": (
        "another optimizer class for fp32 accumulation",
        f"bf16 with fp32 gradient accumulation at stage 1 and without offload runs BF16_Optimizer, which keeps the full fp32 gradients on every rank ({_ENGINE}:1688).\n"
        'Example: `"grad_accum_dtype": "fp32"` at stage 1. Way out: none needed; stage 2 shards them.',
    ),
    "S231": (
        "gradients accumulated in bf16",
        f"Gradients are accumulated and reduced in the model's type unless `data_types.grad_accum_dtype` and `communication_data_type` say otherwise ({_ENGINE}:1317, {_ENGINE}:1232). Megatron-LM does both in fp32.\n"
        "Example: bf16 with 8 accumulation steps. Way out: set the types.",
    ),
    "S232": (
        "a setting that does less or more than it says",
        f"`activation_checkpointing` turns nothing on: it configures functions that the program must call. WarmupCosineLR rises again after its end up to 0.19.2 ({_SCHEDULES}:848).\n"
        "Example: `partition_activations` with a Hugging Face model. Way out: the model's own switch.",
    ),
    "S233": (
        "Adam is AdamW",
        f"Weight decay is decoupled for the type Adam too, unless `adam_w_mode` is false ({_ENGINE}:1787).\n"
        'Example: `{"type": "Adam", "params": {"weight_decay": 0.1}}`. Way out: none needed.',
    ),
    "S234": (
        "peak that is not the optimizer's rate",
        f"WarmupDecayLR goes to `warmup_max_lr`, whose default is 0.001 whatever the optimizer's rate ({_SCHEDULES}:757).\n"
        "Example: lr 3e-4 and no `warmup_max_lr`. Way out: write it.",
    ),
    "S235": (
        "logarithmic warm-up",
        f"Without `warmup_type` the warm-up follows the logarithm of the step ({_SCHEDULES}:664): a tenth of the steps gives most of the rate. transformers and Megatron-LM warm up linearly.\n"
        'Example: `{"type": "WarmupLR"}`. Way out: `"warmup_type": "linear"`.',
    ),
    "S236": (
        "pipeline keys that nobody reads",
        f"`pipeline.stages` and `pipeline.partition` are parsed ({_CONFIG}:413) and never used; the program gives the degree to PipelineModule.\n"
        'Example: `"pipeline": {"stages": 4}`. Way out: drop them.',
    ),
    "S237": (
        "tensor parallel ranks count as data parallel",
        f"With AutoTP from the JSON the batch sizes are computed with all ranks ({_CONFIG}:693), although the ranks of a group work on the same samples.\n"
        'Example: `"autotp_size": 2` on 8 GPUs: `train_batch_size` says twice what is consumed. Way out: count per group.',
    ),
    "S238": (
        "degrees that do not divide the world",
        "The number of ranks must be a multiple of the tensor, sequence and expert degrees.\n"
        'Example: `"autotp_size": 3` on 8 GPUs. Way out: another degree.',
    ),
    "S239": (
        "ranks divided by sequence_parallel_size",
        f"`sequence_parallel_size` divides the world size with `/` ({_CONFIG}:691), so sizes become fractional numbers. Where that fails, as with 0 or a text, the batch sizes are computed for one rank.\n"
        'Example: 8 GPUs with `"sequence_parallel_size": 2` give `train_batch_size` 8.0. Way out: none needed.',
    ),
    "S240": (
        "parameter offload without stage 3",
        "`offload_param` is for stage 3; at others it does nothing.\n"
        'Example: `"offload_param": {"device": "cpu"}` at stage 2. Way out: drop it.',
    ),
    "S241": (
        "compilation that the program must start",
        "`compile` configures DeepCompile; nothing is compiled unless the program calls `engine.compile()`.\n"
        "Example: `compile.deepcompile`. Way out: call it.",
    ),
    "S242": (
        "prescaling with reduce_scatter",
        "Stages 2 and 3 do not prescale gradients that they reduce-scatter (runtime/zero/stage_1_and_2.py:296, runtime/zero/stage3.py:374).\n"
        "Example: `prescale_gradients` at stage 2. Way out: set `reduce_scatter` to false.",
    ),
    "S243": (
        "expert parallelism that AutoEP does not do",
        "`load_balance_coeff` must be null, and AutoEP does not go with AutoTP (module_inject/auto_ep_config.py:100).\n"
        "Example: `expert_parallel` beside `tensor_parallel`. Way out: use one.",
    ),
}

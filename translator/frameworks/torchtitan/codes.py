"""Codes of what the torchtitan reader says: code -> (title, documentation).

``R090`` to ``R109`` are about reading TOML (``R102`` about Python too), ``S140`` to ``S199`` about what torchtitan itself refuses.
"""
# ruff: noqa: E501 - documentation in strings

from __future__ import annotations

_MANAGER = "torchtitan/config/manager.py"
_DIMS = "torchtitan/distributed/parallel_dims.py"
_PIPELINE = "torchtitan/distributed/pipeline_parallel.py"

CODES: dict[str, tuple[str, str]] = {
    "R090": (
        "unknown option",
        "The catalogue of this version has no such option in that section, and torchtitan stops at it: every name in a "
        f"TOML file must be a field of the configuration ({_MANAGER}:167 at 0.2.2). The value is kept as it is and "
        "nothing is translated.\n"
        "Example: `parallelism.tensor_paralel_degree = 2`. Way out: the message has the nearest names.",
    ),
    "R091": (
        "unknown section",
        f"No section of this version has that name, and torchtitan stops at it ({_MANAGER}:167 at 0.2.2).\n"
        "Example: `[trainin]`. Way out: correct the name, or name the module that adds the section in "
        "`job.custom_config_module`.",
    ),
    "R092": (
        "name from before the first release",
        "Layouts of 2024 kept the degrees under `[training]` and `[experimental]` and had `training.batch_size`. The option "
        "is read as what it became in 0.1.0. 0.1.0 itself would stop at it.\n"
        "Example: `training.batch_size = 8`. Way out: write the new name.",
    ),
    "R093": (
        "name of another version",
        "Another version calls this option so; the one that the file is read as stops at it.\n"
        "Example: `training.compile` is `compile.enable` in 0.2.2. Way out: the message has the name in force; or read "
        "the file as the other version (`--from torchtitan@0.1.0`).",
    ),
    "R094": (
        "option of another version",
        "Another version has this option, and the one that the file is read as has none in its place.\n"
        "Example: `parallelism.enable_compiled_autograd` (removed before 0.2.2). Way out: drop it, or read the file as "
        "the other version.",
    ),
    "R095": (
        "value of another type",
        "The value is not of the option's type, but says what is meant. torchtitan does not check the types of a TOML "
        f"file ({_MANAGER}:161-185 at 0.2.2): it takes the value as it is, and what then happens depends on where it is used.\n"
        'Example: `steps = "1000"`, which fails at the first comparison. Way out: write the value as the type says.',
    ),
    "R096": (
        "unusable value",
        "The value is not of the option's type. torchtitan takes it all the same and fails later, or worse, does not. It is "
        "kept, the default is read.\n"
        "Example: `steps = [1, 2]`. Way out: write a value of the type in the message.",
    ),
    "R097": (
        "value not among the choices",
        "The option takes one of a few values. torchtitan only warns when it loads the file, and fails later.\n"
        'Example: `lr_scheduler.decay_type = "exp"`, refused at the first step (components/lr_scheduler.py:187 at 0.2.2). '
        "Way out: the message lists the choices.",
    ),
    "R098": (
        "section of an extension",
        "The section or option is unknown, and `job.custom_config_module` names a module that may add it. ttx does not run "
        "that module: the values are kept and not translated.\n"
        "Example: `[encoder]` in a FLUX configuration. Way out: none is needed.",
    ),
    "R099": (
        "imported module not read",
        "`experimental.custom_import` names a module that torchtitan imports before it looks up the model "
        "(torchtitan/train.py:83 at 0.2.2). It was not found beside the file, or holds more than literals, so the model "
        "that it registers is not known here.\n"
        'Example: `custom_import = "my_models"` without `my_models.py` in the folder. Way out: put the module there.',
    ),
    "R100": (
        "table and value confused",
        "A section is given as a plain value, or an option as a table.\n"
        "Example: `training = 3`. Way out: write `[training]` and its options below.",
    ),
    "R101": (
        "byte order mark",
        "The file begins with a byte order mark, which TOML does not allow; torchtitan stops at it. It is ignored here.\n"
        "Way out: save the file as UTF-8 without the mark.",
    ),
    "R102": (
        "unknown model",
        "No flavor of that name is known for the model, in this version's own tables or in a module beside the file. "
        "torchtitan stops with a KeyError when it builds the model (torchtitan/train.py:135 at 0.2.2).\n"
        'Example: `flavor = "9B"`. Way out: the message lists the flavors.',
    ),
    "R103": (
        "unreadable hint",
        "A comment `# ttx: key=value` tells the reader what the file itself cannot say (the world size). The value is no "
        "positive number.\n"
        "Example: `# ttx: world_size=many`. Way out: write a number.",
    ),
    "R104": (
        "field of a class of one's own",
        "The configuration class is not one of torchtitan's, and so is this field. It is kept as it is and not translated.\n"
        "Example: `MyTrainer.Config(curriculum=...)`. Way out: none is needed.",
    ),
    "R105": (
        "part of a Python configuration not read",
        "A class, or what is done with it, is not known here. The rest is read; this part is kept as far as it is plain.\n"
        "Example: a model that is changed after `model_registry` made it. Way out: build the model from its classes, or name "
        "a flavor.",
    ),
    "R107": (
        "words that the command line does not take",
        "A flag has a value, an option has none, a subcommand is not one, or a word belongs to nothing; tyro stops at it "
        f"({_MANAGER}:50 at 0.3.0).\n"
        "Example: `--compile.enable True`. Way out: write `--compile.enable`, or `--compile.no-enable`.",
    ),
    "R108": (
        "option on the wrong side of a subcommand",
        "`activation-checkpoint:full` and its like are subcommands: their options stand behind them, all others before. tyro "
        "stops otherwise; here it is read as what it says.\n"
        "Example: `activation-checkpoint:full --training.steps 3`. Way out: move the option.",
    ),
    "S140": (
        "unknown dataset",
        "torchtitan knows its datasets by name and stops at any other, whatever dataset_path says "
        "(torchtitan/hf_datasets/text_datasets.py:59 at 0.2.2, :61 at 0.3.0): c4, c4_test and c4_validation.\n"
        'Example: `dataset = "wikitext"`. Way out: one of the names with dataset_path, or a loader of your own.',
    ),
    "S141": (
        "number that torch does not take",
        "Adam and AdamW take a learning rate, eps and weight decay of 0 or more, and betas from 0 up to, but not, 1 "
        "(torch/optim/adam.py:58-67 at 2.13); a seed fits 64 bits; a data loader has 0 workers or more. Of parameter groups torch "
        "checks nothing, and such numbers spoil the run instead of stopping it.\n"
        "Example: `beta2 = 1.0`. Way out: a number in the range that the message names.",
    ),
    "S142": (
        "interval of no steps",
        "A frequency of 0 divides by zero in the first step, and torchtitan asserts that others fit: gc_freq is positive "
        "(tools/utils.py:48 at 0.2.2), an evaluation has 1 step or more, or -1 for all data (config/job_config.py:979), a "
        "profile has room for its warm-up and active steps (tools/profiling.py:65).\n"
        "Example: `metrics.log_freq = 0`. Way out: a number of steps; to switch something off, use its own switch.",
    ),
    "S143": (
        "no such part of a checkpoint",
        "What `exclude_from_loading` names must be in the checkpoint (components/checkpoint.py:768 at 0.2.2, "
        "components/checkpointer/dcp.py:737 at 0.3.0): optimizer, lr_scheduler, dataloader, train_state.\n"
        'Example: `exclude_from_loading = ["scheduler"]`. Way out: the names in the message.',
    ),
    "S144": (
        "training goes on beyond the schedule",
        "A schedule shorter than the run goes on along its decay; where there is none (decay_ratio 0, or a warm-up that takes "
        "all steps) an assertion fails in the first step beyond (components/lr_scheduler.py:177 at 0.2.2).\n"
        "Example: total_steps 50 and decay_ratio 0 with steps 100. Way out: leave total_steps out.",
    ),
    "S145": (
        "no model",
        "Trainer.Config has no model by default, and the trainer asserts that there is one (trainer.py:294 at 0.3.0).\n"
        'Example: `Trainer.Config(training=...)` alone. Way out: model_spec=model_registry("8B").',
    ),
    "S150": (
        "a degree is not positive",
        "Parallel degrees are 1 or more; only `data_parallel_shard_degree` may be -1, for what is left "
        f"({_DIMS}:45-48 at 0.2.2).\n"
        "Example: `tensor_parallel_degree = 0`. Way out: give a positive degree.",
    ),
    "S151": (
        "degrees do not multiply to the world size",
        "replicate * shard * context * tensor * pipeline must be the number of ranks "
        f"({_DIMS}:53-56 at 0.2.2, and :47 at 0.1.0). A shard degree of -1 takes what the others leave.\n"
        "Example: tensor 4 on 6 ranks. Way out: change a degree or the number of ranks.",
    ),
    "S152": (
        "expert tensor degree is neither 1 nor the tensor degree",
        f"With expert parallelism, experts have the whole tensor group or none of it ({_DIMS}:59 at 0.2.2).\n"
        "Example: tensor 8, expert_tensor 2. Way out: set it to 1 or to the tensor degree.",
    ),
    "S153": (
        "expert degrees do not fit",
        "Experts are spread over shard * context * tensor ranks: expert * expert_tensor must divide that product, or the "
        f"device mesh cannot be built ({_DIMS}:138 at 0.2.2). It enters the mesh even at expert degree 1.\n"
        "Example: expert 16 on 8 ranks. Way out: lower the degree.",
    ),
    "S154": (
        "sequence length does not divide",
        "The sequence length must divide by tensor * 2 * context, the factor 2 also at context degree 1 "
        f"({_DIMS}:372, asserted in models/llama3/infra/parallelize.py:71 at 0.2.2).\n"
        "Example: seq_len 1026 at tensor 4. Way out: round the length.",
    ),
    "S155": (
        "global batch does not divide",
        "The global batch is a whole number of local batches over the data-parallel ranks (torchtitan/train.py:202 at 0.2.2).\n"
        "Example: global 100, local 8, data-parallel 4. Way out: change one of them.",
    ),
    "S156": (
        "local batch does not divide into micro batches",
        f"Under pipeline parallelism the local batch is cut into micro batches ({_PIPELINE}:190 at 0.2.2).\n"
        "Example: local_batch_size 8, pipeline_parallel_microbatch_size 3. Way out: change one of them.",
    ),
    "S157": (
        "unknown pipeline schedule",
        "torch has no schedule of that name (torch/distributed/pipelining/schedules.py:3620 at 2.13), or only an abstract one.\n"
        'Example: `pipeline_parallel_schedule = "ZB1"`. Way out: the message lists the schedules.',
    ),
    "S158": (
        "layers cannot be split so",
        f"The number of stages does not fit the schedule, the ranks or the layers ({_PIPELINE}:86-105, :270-294, :456-463 at "
        "0.2.2; distributed/pipeline.py:71-102 at 0.1.0).\n"
        "Example: 1F1B with two stages per rank. Way out: change layers_per_stage, the weights or the schedule.",
    ),
    "S159": (
        "the model cannot be split into stages",
        "Its training specification has no function for pipelines (torchtitan/train.py:220 at 0.2.2): qwen3 and gpt_oss.\n"
        "Way out: pipeline_parallel_degree 1, or another family.",
    ),
    "S160": (
        "stages do not hold the whole model once",
        "`module_fqns_per_model_part` must name the embedding, every layer, the norm and the output exactly once. torchtitan "
        f"does not check it: what is missing is not trained, what stands twice is two copies ({_PIPELINE}:385-430 at 0.2.2).\n"
        "Way out: complete the lists.",
    ),
    "S161": (
        "unknown model converter",
        "No converter is registered under that name; building the model ends in a KeyError "
        "(torchtitan/protocols/model_converter.py:62 at 0.2.2). The names of 0.1.0 (`float8`, `mx`) are among them, also in "
        "a file that 0.2.2 ships.\n"
        'Example: `converters = ["float8"]`. Way out: `quantize.linear.float8`.',
    ),
    "S162": (
        "converters of different kinds",
        "Linears and experts must be quantised in the same format (components/quantization/__init__.py:51 at 0.2.2).\n"
        "Way out: use float8 or mx for both.",
    ),
    "S163": (
        "float8 recipe with float8 all-gather",
        "A recipe cannot be combined with enable_fsdp_float8_all_gather (components/quantization/float8.py:66 at 0.2.2).\n"
        "Way out: drop one of them.",
    ),
    "S164": (
        "float8 experts with pipeline or context parallelism",
        "Not supported (components/quantization/float8.py:193-199 at 0.2.2).\nWay out: degree 1, or experts in bf16.",
    ),
    "S165": (
        "replicas with other parallelism",
        "Without sharding, replicas run under DDP, which refuses every other degree "
        "(models/llama3/infra/parallelize.py:151 at 0.2.2).\n"
        "Example: data_parallel_replicate_degree 2, shard 1, tensor 2. Way out: shard over the replicas instead.",
    ),
    "S166": (
        "asynchronous tensor parallelism without compile",
        "It is a pass of the compiler (distributed/tensor_parallel.py:21 at 0.2.2; models/llama3/infra/parallelize.py:54 at 0.1.0).\n"
        'Way out: compile.enable with "model" among the components.',
    ),
    "S167": (
        "memory budget without compile",
        "The mode is a pass of the compiler (distributed/activation_checkpoint.py:227 at 0.2.2).\n"
        'Way out: compile.enable with "model" among the components.',
    ),
    "S168": (
        "optimizer in backward with pipeline or expert parallelism",
        "Not supported (components/optimizer.py:280-284 at 0.2.2).\nWay out: early_step_in_backward = false.",
    ),
    "S169": (
        "unknown optimizer",
        "Only Adam and AdamW exist (components/optimizer.py:319 at 0.2.2).\n"
        'Example: `name = "SGD"`. Way out: AdamW, or a module of your own.',
    ),
    "S170": (
        "a single checkpoint is kept",
        "keep_latest_k is 0 (all) or 2 and more, for the last one may be half written "
        "(components/checkpoint.py:299 at 0.2.2).\n"
        "Way out: 2.",
    ),
    "S171": (
        "selective recomputation option",
        'The option is "op" or a whole number (distributed/activation_checkpoint.py:180 at 0.2.2).\n'
        'Example: `selective_ac_option = "attn"`. Way out: "op", or every n-th layer.',
    ),
    "S172": (
        "attention does not run context parallel",
        "The model's attention refuses context parallelism: flex and varlen attention of most families, gpt_oss altogether "
        "(models/qwen3/infra/parallelize.py:70, models/gpt_oss/model/args.py:98 at 0.2.2).\n"
        "Way out: a flavor with sdpa attention, or context_parallel_degree 1.",
    ),
    "S173": (
        "tied embeddings with pipeline parallelism",
        "Every stage asserts that it holds both embedding and output (models/qwen3/model/model.py:500 at 0.2.2).\n"
        "Way out: pipeline_parallel_degree 1.",
    ),
    "S174": (
        "DualPipeV with expert parallelism and recomputation",
        "The three cannot be combined (distributed/dual_pipe_v.py:46 at 0.2.2).\n"
        'Way out: activation_checkpoint.mode = "none".',
    ),
    "S175": (
        "DeepEP without expert parallelism, or with expert tensor parallelism",
        "It needs an expert degree above 1 and an expert tensor degree of 1 (models/llama4/infra/parallelize.py:116-122 at "
        '0.2.2).\nWay out: expert_parallel_comm_backend = "standard".',
    ),
    "S176": (
        "compute runs in fp32",
        "With tensor or pipeline parallelism and neither sharding nor context parallelism, nothing applies "
        "mixed_precision_param: training runs in the format of the parameters, with a warning in the log "
        "(distributed/utils.py:252 at 0.2.2).\n"
        "Example: tensor 8 on 8 ranks. Way out: leave a shard degree above 1.",
    ),
    "S177": (
        "mxfp8 with compile and tensor parallelism",
        "Not supported (components/quantization/mx.py:50 at 0.2.2).\nWay out: one of them off.",
    ),
    "S178": (
        "warm-up longer than training",
        "It is cut to the number of steps, with a warning in the log (components/lr_scheduler.py:117 at 0.2.2). Warm-up and decay "
        "together are cut in the same way, at the cost of the decay.\n"
        "Way out: shorten the warm-up.",
    ),
    "S179": (
        "sequence longer than the model's positions",
        "torchtitan warns and builds positions for the longer sequence (models/llama3/model/args.py:49 at 0.2.2).\n"
        "Way out: check that this is meant.",
    ),
    "S180": (
        "heads do not divide over tensor ranks",
        "Every tensor rank holds whole heads: the numbers of attention heads and of key-value heads divide by the tensor degree. torchtitan 0.2.2 does not check it; the first forward pass fails (models/llama3/model/model.py:257).\n"
        "Example: 8 key-value heads at tensor 16. Way out: a smaller tensor degree.",
    ),
    "S181": (
        "sequence longer than the model's positions",
        "0.3.0 refuses a sequence beyond the rotary positions of the model (models/common/decoder.py:169), where 0.2.2 only "
        "warned.\n"
        "Example: seq_len 16384 with qwen3's debugmodel. Way out: a shorter sequence, or a model with max_seq_len raised.",
    ),
    "S182": (
        "sequence length does not divide",
        "The sequence length must divide by the tensor degree under sequence parallelism, times 2 * context when there is "
        "context parallelism (trainer.py:306-316 at 0.3.0).\n"
        "Example: seq_len 1026 at tensor 4. Way out: round the length.",
    ),
    "S183": (
        "CUDA graphs where none can be captured",
        "0.3.0 captures CUDA graphs unless told otherwise, and refuses pipeline parallelism and the expert parallelism that "
        "waits for the host (trainer.py:179-210 at 0.3.0).\n"
        "Example: pipeline_parallel_degree 2 without more. Way out: training.disable_cuda_graphs=True.",
    ),
    "S184": (
        "sequence does not divide into loss chunks",
        "The chunked loss splits what a rank has of the sequence into equal pieces (components/loss.py:681 at 0.3.0).\n"
        "Example: seq_len 4100 with num_chunks 8. Way out: another number of chunks, or CrossEntropyLoss alone.",
    ),
    "S187": (
        "no loss",
        "The default of `loss` is an abstract class; the first step fails (trainer.py:118 at 0.3.0).\n"
        "Way out: loss=ChunkedLossWrapper.Config(loss_fn=CrossEntropyLoss.Config(global_vocab_size=...)).",
    ),
    "S188": (
        "parameter groups do not cover the model",
        "Every pattern must match a parameter in every part of the model, and a pipeline stage is such a part; parameters "
        "that no pattern matches are refused (components/optimizer/optimizer.py:203 at 0.3.0).\n"
        'Example: pattern "tok_embeddings" under pipeline parallelism. Way out: patterns that occur in every stage, and '
        '".*" as the last one.',
    ),
    "S189": (
        "unknown attention backend",
        "Attention is flex, flex_flash or varlen; sdpa is gone, for it knows no documents "
        "(models/common/config_utils.py:89-96 at 0.3.0).\n"
        'Way out: attn_backend="flex".',
    ),
    "S190": (
        "checkpoint options that exclude each other",
        "initial_load_path is absolute or an address, and Hugging Face weights hold the model only "
        "(components/checkpointer/base.py:295-307 at 0.3.0).\n"
        'Example: initial_load_path="./seed". Way out: write the whole path.',
    ),
    "S191": (
        "token dispatcher that cannot run so",
        "DeepEP, HybridEP and MinimalAsyncEP need an expert degree above 1 (models/common/token_dispatcher.py:1238 at 0.3.0), "
        "and quantised experts need a dispatcher that pads (components/quantization/utils.py:60).\n"
        'Way out: moe_comm_backend="standard".',
    ),
    "S185": (
        "option without effect",
        "torchtitan reads the option nowhere in this configuration. Of context_parallel_rotate_method, training knows nothing "
        "at 0.2.2 (components/validate.py:213); a section of `quantize` counts only with its name in model.converters; a converter of experts "
        "converts the modules in its fqns, and none without (components/quantization/float8.py:222, mx.py:152 at 0.2.2).\n"
        'Example: `[quantize.linear.float8]` without `converters = ["quantize.linear.float8"]`. Way out: the message says it.',
    ),
    "S186": (
        "clipping to nothing",
        "Gradients are always clipped: no value of max_norm turns it off, and 0 scales them to nothing "
        "(distributed/utils.py:475 at 0.2.2, :675 at 0.3.0). A translation takes it as no clipping, as other frameworks do.\n"
        "Example: `max_norm = 0`. Way out: a bound that is never reached, such as 1e9.",
    ),
    "S192": (
        "float8 is not gathered over tensor ranks",
        'Tensor parallelism of 0.2.2 asks whether "float8" is among the converters, a name that this version does not take: '
        "activations are always gathered in the compute format (models/llama3/infra/parallelize.py:77 at 0.2.2). The numbers are "
        "right, the speed is not.\n"
        'Example: `converters = ["quantize.linear.float8"]` at tensor 8. Way out: 0.3.0, or recipe_name = "rowwise".',
    ),
    "S193": (
        "micro batches that the pipeline schedule does not take",
        "1F1B and DualPipeV need a micro batch for every stage, interleaved schedules whole rounds over the pipeline ranks "
        "(torch/distributed/pipelining/schedules.py:1020, :3439, :2937, :3048 at 2.13). Other schedules take fewer and leave "
        f"stages idle, with a warning in the log ({_PIPELINE}:199 at 0.2.2).\n"
        "Example: local_batch_size 2 at pipeline 4. Way out: a larger local batch.",
    ),
    "S194": (
        "converter that converts something else",
        "Lists of a converter are matched as parts of names. MXFP8 and NVFP4 convert everything, lm_head as well, where they "
        "list nothing; a name of an older version matches nothing (components/quantization/mx.py:83, utils.py:28 at 0.3.0).\n"
        'Example: `filter_fqns=["output"]`, which leaves lm_head in float8. Way out: the names of 0.3.0.',
    ),
    "S195": (
        "last checkpoint without optimizer",
        "The last checkpoint of a run holds the model only by default (components/checkpoint.py:787 at 0.2.2, "
        "components/checkpointer/base.py at 0.3.0); 0.1.0 saved everything. To train on needs the one before.\n"
        "Way out: checkpoint.last_save_model_only = false, or true if it is meant.",
    ),
    "S196": (
        "load balancer that is none, or not for this attention",
        "Context parallelism deals out a sequence by headtail, ptrr, or as it comes (distributed/context_parallel.py:208, "
        "config/job_config.py:440 at 0.2.2); ptrr needs the block masks of flex attention (:192).\n"
        'Example: `context_parallel_load_balancer = ""`. Way out: leave it out.',
    ),
    "S197": (
        "experts do not divide over the ranks",
        "Every expert rank holds equally many experts. No check says so; the first step fails "
        "(distributed/expert_parallel.py:124 at 0.2.2, models/common/token_dispatcher.py:262 at 0.3.0).\n"
        "Example: 6 experts at expert degree 4. Way out: a degree that divides.",
    ),
    "S198": (
        "module behind a name of torchtitan's own",
        "`--module` looks among torchtitan's own models and experiments first: a file of that name beside the launch is never "
        "read. What an own module fails to import is not shown either, only that the module cannot be imported "
        f"({_MANAGER}:103-141 at 0.3.0).\n"
        "Example: `--module llama3` with an own llama3.py. Way out: another name, such as my_llama3.py.",
    ),
    "S199": (
        "debugging option that does not run so",
        "Batch-invariant mode is not for training, and the check of SPMD types runs without pipeline parallelism and without "
        "selective recomputation of flex attention (trainer.py:119, :143, :153 at 0.3.0).\n"
        "Way out: turn the option off.",
    ),
}

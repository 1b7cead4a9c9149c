"""Codes of what the Megatron-LM reader says: code -> (title, documentation).

The documentation says what is meant, why it matters, gives an example and the way out, and names the upstream file
and line that it was read from. ``R010`` to ``R049`` are about reading, ``S100`` to ``S149`` about what Megatron-LM
itself refuses.
"""

from __future__ import annotations

_A = "megatron/training/arguments.py"
_TC = "megatron/core/transformer/transformer_config.py"

CODES: dict[str, tuple[str, str]] = {
    "R010": (
        "unknown option",
        "The catalogue of this version has no such option. The entry point or an installed package may add it "
        "(modelopt, a fork); "
        "Megatron-LM's own parser would stop. The option and the words after it are kept as they are, and nothing is "
        "translated.\n"
        "Example: `--my-own-flag 3`. Way out: name the right version, or correct the spelling.",
    ),
    "R011": (
        "misspelt option",
        "The option is unknown and looks much like a known one. Abbreviations count as misspelt, too: the parser is "
        "built with "
        f"allow_abbrev=False ({_A}:130 at core 0.18.0).\n"
        "Example: `--tensor-model-paralel-size 2`. Way out: the message names the nearest options.",
    ),
    "R012": (
        "option removed",
        "An older version has the option, this one refuses it.\n"
        "Example: `--use-legacy-models` at 0.18.0 (removed in 0.18.0). Way out: drop it, or read the file as an "
        "older version.",
    ),
    "R013": (
        "option added later",
        "A later version has the option, this one refuses it.\n"
        "Example: `--padded-vocab-size` at 0.12.0. Way out: read the file as a version that has it.",
    ),
    "R014": (
        "option renamed",
        "This version calls the option otherwise and refuses the old name.\n"
        "Example: `--muon-use-nesterov` became `--muon-nesterov` in 0.18.0. Way out: the message has the name in "
        "force.",
    ),
    "R015": (
        "mistyped value",
        "The value does not have the type that the parser converts to; Megatron-LM would stop.\n"
        "Example: `--train-iters 1e5` (an int; Python's int() refuses exponents). Way out: write the value as the "
        "type says.",
    ),
    "R016": (
        "value not among the choices",
        "The option takes one of a few values, and this is none of them.\n"
        "Example: `--lr-decay-style cosin`. Way out: the message lists the choices.",
    ),
    "R017": (
        "value missing",
        "The option takes one or more values and too few follow it. A word that begins with `-` is a value only when "
        "it is "
        "a plain negative number (`-1`, `-0.5`, not `-1e-5`): argparse takes the rest for options.\n"
        "Example: `--lr --min-lr 0`. Way out: give the value, or write `--option=value`.",
    ),
    "R018": (
        "value for a bare flag",
        "The option is a switch; `--flag=value` is an error of argparse.\n"
        "Example: `--bf16=true`. Way out: write the flag alone, or leave it out.",
    ),
    "R019": (
        "stray word",
        "Megatron-LM takes no positional arguments, so the parser stops at a word that belongs to no option. Often "
        'a switch was given a value (`--bf16 true`), or one word holds an option and its value (`"--lr 1e-4"`).\n'
        "Way out: remove the word, or split it.",
    ),
    "R020": (
        "option repeated with another value",
        "The option stands twice with different values; argparse keeps the later one.\n"
        "Example: `--lr 1e-4 ... --lr 3e-4`. Way out: remove one.",
    ),
    "R021": (
        "unresolved word where an option is expected",
        "A variable that the files do not determine stands where options are expected, so it may hold any number of "
        "them.\n"
        "Example: `$EXTRA_ARGS`. Way out: `--set EXTRA_ARGS='...'` (an empty value says that there are none).",
    ),
    "R022": (
        "environment variable not determined",
        "An environment variable of the launch has a value that the files do not determine.\n"
        "Way out: `--set NAME=value`.",
    ),
    "R023": (
        "several launches",
        "The file starts training more than once; one is read.\nWay out: `--launch N` picks another, counted from 1.",
    ),
    "R025": (
        "world size not determined",
        "Nothing says how many processes run, so the data parallel degree, and whatever depends on it, stays open.\n"
        "Way out: `--world-size N`.",
    ),
    "R026": (
        "quote characters inside a value",
        "The value begins and ends with a quote character that bash passed on, because it was written inside other "
        "quotes "
        "or came out of a variable; Megatron-LM takes it as part of the value.\n"
        "Example: `\"--split '99,1,0'\"` expanded unquoted gives `'99,1,0'` with the quotes. Way out: drop the inner "
        "quotes.",
    ),
    "R027": (
        "--yaml-cfg replaces all options",
        f"The YAML file takes the place of every option on the command line ({_A}:150 at core 0.18.0); it has names "
        f"of its own "
        "and is not read here.\n"
        "Way out: give the options on the command line.",
    ),
    "R028": (
        "options come from a checkpoint",
        f"`--use-checkpoint-args` overwrites model options with those stored in a checkpoint ({_A}:101 at core "
        f"0.18.0), which is "
        "not read here.\n"
        "Way out: check the model section against the checkpoint.",
    ),
    "R029": (
        "key repeated in YAML",
        "A key stands twice in one mapping; the runner keeps the later one.\nWay out: remove one.",
    ),
    "R030": (
        "entry of the YAML file not read",
        "The entry is not what the runner of `model_config.yaml` can turn into words (a nested mapping, a key that "
        "is no word).\n"
        "Way out: write `--option: value`.",
    ),
    "R031": (
        "empty value drops the option",
        "The runner skips an option whose value is an empty string "
        "(tests/functional_tests/shell_test_utils/_run_training.sh:114 at "
        "core 0.18.0).\n"
        "Way out: `true` for a bare flag, or a value.",
    ),
    "R033": (
        "world size stated twice",
        "`--world-size` and the script disagree; the flag is believed.\nWay out: give one of them.",
    ),
    "R034": (
        "help requested",
        "`--help` prints the options and ends the program.\nWay out: remove it.",
    ),
    "R035": (
        "not a Megatron-LM entry point",
        "No program of the file has the name of a Megatron-LM entry point; the one with most of its options is read.\n"
        "Way out: `--launch N` picks another.",
    ),
    "R036": (
        "shell syntax in a YAML value",
        "The runner hands the value to bash's eval, and it is not one that can be split into words without running "
        "it.\n"
        "Way out: quote the value.",
    ),
    "R037": (
        "secrets are not carried over",
        "The script exports variables that look like secrets by their names. They are left out of everything that is "
        "written: a configuration is passed round.\n"
        "Example: `export WANDB_API_KEY=...`. Way out: set them where the result runs.",
    ),
    "R038": (
        "the program trains another kind of model",
        "Its name says that it trains something other than a decoder of text (pretrain_bert.py, pretrain_t5.py, "
        "pretrain_vlm.py and their like). The options are read, but as those of a decoder: objective, data and layers "
        "of the other model are not in the result.\n"
        "Example: `torchrun pretrain_t5.py --encoder-num-layers 12`. Way out: none; the result is a starting point.",
    ),
    "R039": (
        "option repeated with the same value",
        "The option stands twice and says the same both times, so nothing is wrong until somebody changes one of the "
        "two: argparse takes the later one (CPython Lib/argparse.py, _StoreAction).\n"
        "Example: `--bf16 --lr 3e-4 --bf16`.\n"
        "Way out: remove one of them.",
    ),
    "S100": (
        "world size does not fit the parallel sizes",
        f"The world size must be a multiple of tensor x pipeline x context parallel size ({_A}:425 at core 0.18.0), "
        f"and of "
        "expert tensor x expert x pipeline parallel size (megatron/core/parallel_state.py:787). The second is "
        "checked when "
        "the process groups are made, not by the argument parser.\n"
        "Example: 8 GPUs with TP 3. Way out: change one of them.",
    ),
    "S101": (
        "batch sizes do not divide",
        "The global batch must be a multiple of micro batch x data parallel size; the evaluation batch is checked "
        "first "
        f"({_A}:710, megatron/core/num_microbatches_calculator.py:381 at core 0.18.0).\n"
        "Example: global batch 24, micro batch 2, 8 replicas. Way out: change the batch sizes, or "
        "--decrease-batch-size-if-needed.",
    ),
    "S102": (
        "layers do not divide over pipeline stages",
        "Without a split of its own the layers, and the embedding and the loss where they are counted, must divide "
        "over the "
        f"pipeline stages, and over the virtual stages within them ({_A}:977, {_TC}:1764 at core 0.18.0).\n"
        "Example: 30 layers over 4 stages. Way out: another degree, --decoder-first-pipeline-num-layers, "
        "--account-for-embedding-in-pipeline-split or --pipeline-model-parallel-layout.",
    ),
    "S103": (
        "interleaved pipeline cannot be formed",
        "The virtual stages are stated in at most one way, and there is more than one pipeline stage (more than two "
        f"without p2p overlap) ({_A}:908 at core 0.18.0).\n"
        "Example: --num-virtual-stages-per-pipeline-rank 2 with --pipeline-model-parallel-size 1. Way out: remove one.",
    ),
    "S104": (
        "sequence length does not fit",
        "The sequence must not exceed the positions, and context parallelism cuts it into two pieces per rank "
        f"({_A}:1287, {_A}:1299 at core 0.18.0).\n"
        "Example: --seq-length 4096 --max-position-embeddings 2048. Way out: raise --max-position-embeddings.",
    ),
    "S105": (
        "precision options contradict each other",
        "fp16 and bf16 exclude each other, as do fp8 and fp4; parameters in low precision need the format "
        f"({_A}:1075, {_A}:1163 at core 0.18.0).\n"
        "Example: --bf16 --fp16. Way out: keep one.",
    ),
    "S106": (
        "attention heads do not divide",
        "The heads must be a multiple of the tensor parallel size, the query groups a multiple or a divisor of it "
        f"({_TC}:1197, {_TC}:1215 at core 0.18.0); multi-latent attention has no query groups.\n"
        "Example: 12 heads with TP 8. Way out: another tensor parallel size.",
    ),
    "S107": (
        "mixture of experts cannot be formed",
        "The experts must be a multiple of the expert parallel size, those with biases need an expert tensor "
        "parallel size "
        f"of 1, and top-1 routing the softmax first ({_A}:1489, {_TC}:2058, {_TC}:2112 at core 0.18.0).\n"
        "Example: 6 experts with EP 4. Way out: change one of them.",
    ),
    "S108": (
        "recomputation options contradict each other",
        "Full recomputation needs a method and a number of layers, selective takes neither; TransformerConfig checks "
        f"this, the argument parser does not ({_TC}:1544 at core 0.18.0).\n"
        "Example: --recompute-granularity full alone. Way out: add --recompute-method uniform --recompute-num-layers "
        "1.",
    ),
    "S109": (
        "optimizer options contradict each other",
        "Gathering parameters early needs the distributed optimizer and gradients reduced early; an optimizer on the "
        "CPU "
        f"needs the precision-aware one ({_A}:1003, {_A}:1664 at core 0.18.0).\n"
        "Example: --overlap-param-gather alone. Way out: add the options that the message names.",
    ),
    "S110": (
        "FSDP does not go with other options",
        f"What torch's FSDP2 ({_A}:1010 at core 0.18.0) and Megatron-FSDP ({_A}:1107) exclude.\n"
        "Example: --use-torch-fsdp2 without --no-gradient-accumulation-fusion. Way out: change what the message names.",
    ),
    "S111": (
        "CUDA_DEVICE_MAX_CONNECTIONS",
        "Before Blackwell, tensor or context parallelism requires CUDA_DEVICE_MAX_CONNECTIONS=1, FSDP requires another "
        f"value ({_A}:1422 at core 0.18.0). A warning when the files do not set it, since it may be set outside of "
        f"them.\n"
        "Example: --tensor-model-parallel-size 2 without it. Way out: `export CUDA_DEVICE_MAX_CONNECTIONS=1`.",
    ),
    "S112": (
        "training length stated in two units",
        "Iterations and samples exclude each other, and so do the length and the fraction of the warm-up "
        f"({_A}:1231 at core 0.18.0).\n"
        "Example: --train-iters 100 --lr-warmup-samples 10. Way out: keep one unit.",
    ),
    "S113": (
        "required option missing, or a size below one",
        f"The model cannot be built without its dimensions ({_A}:1265 at core 0.18.0), whose sizes are at least 1.\n"
        "Example: no --max-position-embeddings, which is required even with rotary positions. Way out: give it.",
    ),
    "S114": (
        "learning rate, schedule or weight decay range is empty",
        f"The floor must not be above the peak ({_A}:1305 at core 0.18.0), nor the start of the warm-up, which must be "
        "shorter than the decay (megatron/core/optimizer_param_scheduler.py:152-167); a weight decay that grows needs "
        f"both ends, a constant one has none ({_A}:1339).\n"
        "Example: --lr 1e-4 --min-lr 1e-3. Way out: change one of them.",
    ),
    "S115": (
        "data sources exclude each other",
        f"One source of data is read ({_A}:1513 at core 0.18.0).\n"
        "Example: --mock-data --data-path x. Way out: keep one.",
    ),
    "S116": (
        "CUDA graph options contradict each other",
        f"Old and new spellings exclude each other ({_A}:609 at core 0.18.0), and a graph of the whole iteration "
        f"leaves no "
        "module out and checks no NaN.\n"
        "Example: --enable-cuda-graph --cuda-graph-impl local. Way out: keep the new one.",
    ),
    "S117": (
        "hybrid layer pattern cannot be used",
        f"A pattern states layers and pipeline stages by itself ({_A}:737 at core 0.18.0).\n"
        "Example: three segments over two pipeline stages. Way out: change the pattern.",
    ),
    "S118": (
        "retired option",
        f"The parser still knows the option, only to stop with advice ({_A}:589 at core 0.18.0).\n"
        "Example: --batch-size 4. Way out: --micro-batch-size 4.",
    ),
    "S119": (
        "checkpoint options contradict each other",
        f"Saving needs an interval ({_A}:1306 at core 0.18.0); some formats belong to one kind of FSDP.\n"
        "Example: --save ckpt without --save-interval. Way out: add it.",
    ),
    "S120": (
        "deterministic mode cannot hold",
        f"Determinism excludes two kernels and needs a fixed all-reduce algorithm ({_A}:1529 at core 0.18.0).\n"
        "Example: --deterministic-mode --use-flash-attn. Way out: remove it; `export NCCL_ALGO=Ring`.",
    ),
    "S121": (
        "position embeddings cannot be used",
        f"({_A}:1464 at core 0.18.0, and what follows.) Multi-token prediction needs rotary positions or none.\n"
        "Example: --no-position-embedding with learned positions. Way out: --position-embedding-type none.",
    ),
    "S122": (
        "option without effect",
        "The parser accepts the option and nothing reads it at this version.\n"
        "Example: `--rampup-batch-size` since 0.18.0: the batch size is constant "
        "(megatron/training/global_vars.py:127 at core 0.18.0). Way out: --step-batch-size-schedule.",
    ),
    "S123": (
        "tensor parallel options contradict each other",
        f"Overlap of tensor parallel communication needs sequence parallelism, which is off at a size of 1 ({_A}:1386 "
        f"at "
        "core 0.18.0).\n"
        "Example: --tp-comm-overlap without --sequence-parallel. Way out: add it.",
    ),
}

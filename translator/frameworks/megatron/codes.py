"""Codes of what the Megatron-LM reader says: code -> (title, documentation).

The documentation says what is meant, why it matters, gives an example and the way out, and names the upstream file and line
that it was read from. ``R010`` to ``R049`` are about reading, ``S100`` to ``S149`` about what Megatron-LM itself refuses.
"""

from __future__ import annotations

_A = "megatron/training/arguments.py"
_TC = "megatron/core/transformer/transformer_config.py"

CODES: dict[str, tuple[str, str]] = {
    "R010": (
        "unknown option",
        "The catalogue of this version has no such option. The entry point or an installed package may add it (modelopt, a fork); "
        "Megatron-LM's own parser would stop. The option and the words after it are kept as they are, and nothing is translated.\n"
        "Example: `--my-own-flag 3`. Way out: name the right version, or correct the spelling.",
    ),
    "R011": (
        "misspelt option",
        "The option is unknown and looks much like a known one. Abbreviations count as misspelt, too: the parser is built with "
        f"allow_abbrev=False ({_A}:129 at core 0.18.0).\n"
        "Example: `--tensor-model-paralel-size 2`. Way out: the message names the nearest options.",
    ),
    "R012": (
        "option removed",
        "An older version has the option, this one refuses it.\n"
        "Example: `--use-legacy-models` at 0.18.0 (removed in 0.18.0). Way out: drop it, or read the file as an older version.",
    ),
    "R013": (
        "option added later",
        "A later version has the option, this one refuses it.\n"
        "Example: `--padded-vocab-size` at 0.12.0. Way out: read the file as a version that has it.",
    ),
    "R014": (
        "option renamed",
        "This version calls the option otherwise and refuses the old name.\n"
        "Example: `--muon-use-nesterov` became `--muon-nesterov` in 0.18.0. Way out: the message has the name in force.",
    ),
    "R015": (
        "mistyped value",
        "The value does not have the type that the parser converts to; Megatron-LM would stop.\n"
        "Example: `--train-iters 1e5` (an int; Python's int() refuses exponents). Way out: write the value as the type says.",
    ),
    "R016": (
        "value not among the choices",
        "The option takes one of a few values, and this is none of them.\n"
        "Example: `--lr-decay-style cosin`. Way out: the message lists the choices.",
    ),
    "R017": (
        "value missing",
        "The option takes one or more values and too few follow it. A word that begins with `-` is a value only when it is "
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
        "a switch was given a value (`--bf16 true`), or one word holds an option and its value (`\"--lr 1e-4\"`).\n"
        "Way out: remove the word, or split it.",
    ),
    "R020": (
        "option repeated with another value",
        "The option stands twice with different values; argparse keeps the later one.\n"
        "Example: `--lr 1e-4 ... --lr 3e-4`. Way out: remove one.",
    ),
    "R021": (
        "unresolved word where an option is expected",
        "A variable that the files do not determine stands where options are expected, so it may hold any number of them.\n"
        "Example: `$EXTRA_ARGS`. Way out: `--set EXTRA_ARGS='...'` (an empty value says that there are none).",
    ),
    "R022": (
        "environment variable not determined",
        "An environment variable of the launch has a value that the files do not determine.\n"
        "Way out: `--set NAME=value`.",
    ),
    "R023": (
        "several launches",
        "The file starts training more than once; one is read.\n"
        "Way out: `--launch N` picks another, counted from 1.",
    ),
    "R024": (
        "no launch found",
        "The script starts no program that takes Megatron-LM's options, as far as it can be followed without running it.\n"
        "Way out: give the arguments as plain text, or the values it depends on with `--set NAME=value`.",
    ),
    "R025": (
        "world size not determined",
        "Nothing says how many processes run, so the data parallel degree, and whatever depends on it, stays open.\n"
        "Way out: `--world-size N`.",
    ),
    "R026": (
        "quote characters inside a value",
        "The value begins and ends with a quote character that bash passed on, because it was written inside other quotes "
        "or came out of a variable; Megatron-LM takes it as part of the value.\n"
        "Example: `\"--split '99,1,0'\"` expanded unquoted gives `'99,1,0'` with the quotes. Way out: drop the inner quotes.",
    ),
    "R027": (
        "--yaml-cfg replaces all options",
        f"The YAML file takes the place of every option on the command line ({_A}:145 at core 0.18.0); it has names of its own "
        "and is not read here.\n"
        "Way out: give the options on the command line.",
    ),
    "R028": (
        "options come from a checkpoint",
        f"`--use-checkpoint-args` overwrites model options with those stored in a checkpoint ({_A}:103 at core 0.18.0), which is "
        "not read here.\n"
        "Way out: check the model section against the checkpoint.",
    ),
    "R029": (
        "key repeated in YAML",
        "A key stands twice in one mapping; the runner keeps the later one.\n"
        "Way out: remove one.",
    ),
    "R030": (
        "entry of the YAML file not read",
        "The entry is not what the runner of `model_config.yaml` can turn into words (a nested mapping, a key that is no word).\n"
        "Way out: write `--option: value`.",
    ),
    "R031": (
        "empty value drops the option",
        "The runner skips an option whose value is an empty string (tests/functional_tests/shell_test_utils/_run_training.sh:111 at "
        "core 0.18.0).\n"
        "Way out: `true` for a bare flag, or a value.",
    ),
    "R032": (
        "false is passed as a word",
        "The runner makes a bare flag of `true` only; `false` follows the option as a word, which the parser refuses for a "
        "switch (tests/functional_tests/shell_test_utils/_run_training.sh:111 at core 0.18.0).\n"
        "Way out: leave the option out.",
    ),
    "R033": (
        "world size stated twice",
        "`--world-size` and the script disagree; the flag is believed.\n"
        "Way out: give one of them.",
    ),
    "R034": (
        "help requested",
        "`--help` prints the options and ends the program.\n"
        "Way out: remove it.",
    ),
    "R035": (
        "not a Megatron-LM entry point",
        "No program of the file has the name of a Megatron-LM entry point; the one with most of its options is read.\n"
        "Way out: `--launch N` picks another.",
    ),
    "R036": (
        "shell syntax in a YAML value",
        "The runner hands the value to bash's eval, and it is not one that can be split into words without running it.\n"
        "Way out: quote the value.",
    ),
    "S100": (
        "world size does not fit the model parallel sizes",
        f"world size must be a multiple of tensor x pipeline x context parallel size ({_A}:430 at core 0.18.0).\n"
        "Example: 8 GPUs, TP 3. Way out: change one of them.",
    ),
    "S101": (
        "batch sizes do not divide",
        "The global batch must be a multiple of micro batch x data parallel size; the evaluation batch is checked first "
        f"({_A}:710, megatron/core/num_microbatches_calculator.py:364 at core 0.18.0).\n"
        "Way out: change the batch sizes, or --decrease-batch-size-if-needed.",
    ),
    "S102": (
        "layers do not divide over pipeline stages",
        f"({_A}:975, {_TC}:1735 at core 0.18.0.)\n"
        "Way out: another degree, or a split of its own by --decoder-first-pipeline-num-layers, "
        "--account-for-...-in-pipeline-split or --pipeline-model-parallel-layout.",
    ),
    "S103": (
        "interleaved pipeline cannot be formed",
        f"At most one way to state the virtual stages, and more than one pipeline stage (two, without p2p overlap) ({_A}:906 at "
        "core 0.18.0).",
    ),
    "S104": (
        "sequence length does not fit",
        "seq-length must not exceed max-position-embeddings and must be a multiple of twice the context parallel size "
        f"({_A}:1284 at core 0.18.0).",
    ),
    "S105": (
        "precision options contradict each other",
        f"fp16 with bf16, fp8 with fp4, low-precision parameters without the format ({_A}:1085 at core 0.18.0).",
    ),
    "S106": (
        "attention heads do not divide",
        f"heads must be a multiple of TP; query groups a multiple or a divisor of it ({_TC}:1190 at core 0.18.0).",
    ),
    "S107": (
        "mixture of experts cannot be formed",
        f"({_A}:1486, {_TC}:2060 at core 0.18.0.)",
    ),
    "S108": (
        "recomputation options contradict each other",
        "full needs a method and a number of layers, selective forbids both; TransformerConfig checks this, the argument parser does "
        f"not ({_TC}:1560 at core 0.18.0).",
    ),
    "S109": (
        "optimizer options contradict each other",
        f"({_A}:1003, {_A}:1664 at core 0.18.0.)",
    ),
    "S110": (
        "FSDP cannot be combined with other options",
        f"({_A}:1010 for torch FSDP2, {_A}:1107 for Megatron-FSDP at core 0.18.0.)",
    ),
    "S111": (
        "CUDA_DEVICE_MAX_CONNECTIONS",
        "Before Blackwell, tensor or context parallelism requires CUDA_DEVICE_MAX_CONNECTIONS=1, FSDP requires another value "
        f"({_A}:1422 at core 0.18.0).\n"
        "Way out: `export CUDA_DEVICE_MAX_CONNECTIONS=1`.",
    ),
    "S112": (
        "training length stated in two units",
        f"Iterations and samples exclude each other, and so do a warm-up length and a warm-up fraction ({_A}:1223 at core 0.18.0).",
    ),
    "S113": (
        "required option missing",
        f"({_A}:1262 at core 0.18.0.)",
    ),
    "S114": (
        "learning rate or weight decay range is empty",
        f"({_A}:1294, {_A}:1330 at core 0.18.0.)",
    ),
    "S115": (
        "data sources exclude each other",
        f"({_A}:1512 at core 0.18.0.)",
    ),
    "S116": (
        "CUDA graph options contradict each other",
        f"({_A}:608, {_A}:1740 at core 0.18.0.)",
    ),
    "S117": (
        "hybrid layer pattern cannot be used",
        f"({_A}:754 at core 0.18.0.)",
    ),
    "S118": (
        "retired option",
        f"The parser still knows the option, only to stop with advice ({_A}:589 at core 0.18.0).",
    ),
    "S119": (
        "checkpoint options contradict each other",
        f"({_A}:401, {_A}:1296 at core 0.18.0.)",
    ),
    "S120": (
        "deterministic mode cannot hold",
        f"({_A}:1530 at core 0.18.0.)",
    ),
    "S121": (
        "position embeddings cannot be used",
        f"({_A}:1458 at core 0.18.0.)",
    ),
    "S122": (
        "option without effect",
        "The parser accepts the option and nothing reads it at this version.\n"
        "Example: `--rampup-batch-size` since 0.18.0: the batch size is constant "
        "(megatron/training/global_vars.py:127 at core 0.18.0). Way out: --step-batch-size-schedule.",
    ),
    "S123": (
        "tensor parallel options contradict each other",
        f"({_A}:1391 at core 0.18.0.)",
    ),
}

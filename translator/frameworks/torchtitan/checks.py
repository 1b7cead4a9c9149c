"""What torchtitan accepts and should not: rules on a settled configuration, for both syntaxes."""

from __future__ import annotations

from collections.abc import Iterator

from translator.checks.registry import rule
from translator.findings import Level
from translator.frameworks.torchtitan import addresses as at
from translator.subject import Remark, Subject

_P = "parallelism."
_PYTHON = (0, 3, 0)
# Tokens of the 2,000 documents of tests/assets/c4_test, about 500 each, and how often they may be read.
_TEST_TOKENS = 1_000_000
_EPOCHS = 50
_LONG_RUN_STEPS = 1000
_TRACES = 100
_MANY_COLLECTIONS = 10
_LOG_EACH = 1


def _python(subject: Subject) -> bool:
    return subject.version >= _PYTHON


def _number(subject: Subject, address: str, default: int = 0) -> int:
    value = subject.value(address, default)
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def _steps(subject: Subject) -> int:
    return _number(subject, "training.steps")


@rule("P550")
def test_data_again_and_again(subject: Subject) -> Iterator[Remark]:
    """The test data set in a long run.

    `c4_test` is 2,000 documents, made for trials of a few steps. It is the default of 0.1.0 and 0.2.2, and it starts
    over whenever it ends, with nothing but a line in the log.

    Why: the model learns 2,000 documents by heart, and the loss falls as if training went well.
    Example: 10,000 steps of 64 sequences of 2,048 tokens read c4_test more than a thousand times.
    Fix: dataset = "c4", or dataset_path with data of your own.
    Source: torchtitan/hf_datasets/text_datasets.py:42 and :139 (0.2.2), :44 and :186 (0.3.0).
    """
    option = "dataloader.dataset" if _python(subject) else "training.dataset"
    batch = _number(subject, "training.global_batch_size", _number(subject, "training.local_batch_size"))
    tokens = _steps(subject) * batch * _number(subject, "training.seq_len")
    if subject.value(option) == "c4_test" and tokens > _EPOCHS * _TEST_TOKENS:
        times = tokens // _TEST_TOKENS
        message = f"c4_test holds about a million tokens, and this run reads {tokens:,}: some {times:,} times each"
        yield Remark(message, 'dataset = "c4", or data of your own', option=option)


@rule("P551")
def nothing_is_saved(subject: Subject) -> Iterator[Remark]:
    """A long run that saves nothing.

    Checkpoints are off by default.

    Why: what was trained is gone when the run ends, or when a node fails on the way.
    Example: 10,000 steps without `[checkpoint] enable = true`.
    Fix: checkpoint.enable = true with an interval.
    Source: torchtitan/config/job_config.py:488 and components/checkpoint.py:814 (0.2.2),
    components/checkpointer/dcp.py:798 (0.3.0).
    """
    option = "checkpoint.enable_checkpoint" if subject.version == (0, 1, 0) else "checkpoint.enable"
    steps = _steps(subject)
    if subject.value(option) is False and steps > _LONG_RUN_STEPS:
        yield Remark(f"{steps:,} steps, and no checkpoint is ever saved", f"{option} = true", option=option)


@rule("P552")
def interval_beyond_the_end(subject: Subject) -> Iterator[Remark]:
    """A checkpoint interval that is longer than the run.

    Only the last step is saved then, and by default that one holds the model without the optimizer.

    Why: a failure on the way costs the whole run, and nothing can be resumed.
    Example: interval 500 in a run of 200 steps.
    Fix: an interval below the number of steps.
    Source: torchtitan/components/checkpoint.py:813-826 (0.2.2), components/checkpointer/dcp.py:794-810 (0.3.0).
    """
    interval, steps = _number(subject, "checkpoint.interval"), _steps(subject)
    enabled = subject.value("checkpoint.enable", subject.value("checkpoint.enable_checkpoint"))
    if enabled and not subject.value("checkpoint.load_only") and interval > steps > 0:
        message = f"a checkpoint every {interval:,} steps in a run of {steps:,}: only the last step is saved"
        yield Remark(message, f"checkpoint.interval of {max(1, steps // 4)} or less", option="checkpoint.interval")


@rule("P553")
def collects_garbage_often(subject: Subject) -> Iterator[Remark]:
    """Garbage collection every few steps.

    torchtitan switches Python's own collection off and runs it by hand every gc_freq steps on all ranks at once.

    Why: each collection stops all ranks for some hundred milliseconds.
    Example: gc_freq 1.
    Fix: 50, the default, or more.
    Source: torchtitan/tools/utils.py:46-67 (0.2.2), :101-128 (0.3.0).
    """
    each = _number(subject, "training.gc_freq", 50)
    if 0 < each < _MANY_COLLECTIONS and _steps(subject) > _LONG_RUN_STEPS:
        yield Remark(f"garbage is collected every {each} steps", "training.gc_freq = 50", option="training.gc_freq")


@rule("P554", Level.NOTE)
def gathered_under_pipeline(subject: Subject) -> Iterator[Remark]:
    """Sharded parameters that stay gathered under pipeline parallelism.

    With fsdp_reshard_after_forward = "default", FSDP frees gathered parameters after the forward pass only without a
    pipeline; with one, each rank holds the whole parameters of its stages, and their unsharded gradients, until the
    step ends.

    Why: memory that a plan with sharded parameters does not count.
    Example: 70B at pipeline 4 and shard 16: 35 GB of gathered bf16 parameters on each rank.
    Fix: fsdp_reshard_after_forward = "always" where memory is short; it gathers once more per micro batch.
    Source: torchtitan/models/llama3/infra/parallelize.py:318-326 (0.2.2), distributed/fsdp.py:75 (0.3.0).
    """
    sharded = _number(subject, f"{_P}data_parallel_shard_degree", 1) > 1
    piped = _number(subject, f"{_P}pipeline_parallel_degree", 1) > 1
    option = f"{_P}fsdp_reshard_after_forward"
    if sharded and piped and subject.value(option) == "default":
        message = "under a pipeline the default keeps gathered parameters and whole gradients until the step ends"
        yield Remark(message, f'{option} = "always" where memory is short, "never" to say so', option=option)


@rule("P555")
def replicas_hold_everything(subject: Subject) -> Iterator[Remark]:
    """Replicas without sharding.

    With data_parallel_shard_degree 1 the replicas run under DDP: each rank holds all parameters in fp32, all gradients
    and all of the optimizer's state, 16 bytes a parameter.

    Why: a model of 8 billion parameters takes 128 GB on each GPU before the first activation.
    Example: data_parallel_replicate_degree = 8 and data_parallel_shard_degree = 1.
    Fix: shard over the same ranks (data_parallel_shard_degree = -1), or at least within a node.
    Source: torchtitan/models/llama3/infra/parallelize.py:148-157 (0.2.2).
    """
    replicas = _number(subject, f"{_P}data_parallel_replicate_degree", 1)
    if not _python(subject) and replicas > 1 and subject.value(at.FSDP) is False:
        message = f"{replicas} replicas under DDP: each rank holds all parameters, gradients and optimizer states"
        option = f"{_P}data_parallel_replicate_degree"
        yield Remark(message, f"{_P}data_parallel_shard_degree = -1 and no replicas", option=option)


@rule("P556")
def deterministic_without_seed(subject: Subject) -> Iterator[Remark]:
    """Deterministic kernels without a seed.

    Without debug.seed rank 0 draws one, a different one in every run.

    Why: deterministic kernels cost speed, and two runs still differ from their first weight on.
    Example: `[debug] deterministic = true` alone.
    Fix: debug.seed = 42, or any other number.
    Source: torchtitan/distributed/utils.py:144 (0.2.2), :258 (0.3.0).
    """
    if subject.value("debug.deterministic") and subject.value("debug.seed", 0) is None:
        message = "kernels are deterministic, and the seed is drawn anew in every run"
        yield Remark(message, "debug.seed = 42, or any number", option="debug.deterministic")


@rule("P557")
def logits_in_full(subject: Subject) -> Iterator[Remark]:
    """Loss parallelism switched off under tensor parallelism.

    Every tensor rank then gathers the logits of the whole vocabulary for the loss.

    Why: vocabulary * local batch * sequence length values more on each rank, in fp32, and as much again for gradients.
    Example: a vocabulary of 128,256 and 8,192 tokens: 4.2 GB of logits a sequence on every rank.
    Fix: disable_loss_parallel = false.
    Source: torchtitan/models/llama3/infra/parallelize.py:184 and train.py:314-318 (0.2.2).
    """
    tensor = _number(subject, f"{_P}tensor_parallel_degree", 1)
    option = f"{_P}disable_loss_parallel"
    if tensor > 1 and subject.value(option) is True:
        vocab, tokens = _number(subject, f"{at.MODEL}vocab"), _number(subject, "training.seq_len")
        size = f", {vocab * tokens * 4 / 1e9:.1f} GB a sequence" if vocab and tokens else ""
        message = f"each of {tensor} tensor ranks gathers the logits of the whole vocabulary{size}"
        yield Remark(message, f"{option} = false", option=option)


@rule("P558")
def experts_of_a_dense_model(subject: Subject) -> Iterator[Remark]:
    """Expert parallelism for a model without experts.

    The degree shapes the device meshes and has no other effect.

    Why: whoever wrote it expects less memory per rank, and nothing changes.
    Example: llama3 with expert_parallel_degree = 8.
    Fix: leave it out, or choose a model with experts.
    Source: torchtitan/distributed/parallel_dims.py:135-150 (0.2.2), config/configs.py:279 (0.3.0).
    """
    option = f"{_P}expert_parallel_degree"
    degree, experts = _number(subject, option, 1), _number(subject, f"{at.MODEL}moe.experts")
    if degree > 1 and not experts and f"{at.MODEL}layers" in subject.values:
        message = f"expert degree {degree}, and {subject.value(f'{at.MODEL}name')} has no experts"
        yield Remark(message, f"leave {option} out", option=option)


@rule("P559")
def offload_without_sharding(subject: Subject) -> Iterator[Remark]:
    """CPU offload where nothing is sharded.

    enable_cpu_offload puts the weights on the CPU, and it is FSDP that brings them to the GPU. Without FSDP nobody
    does, and the first forward pass finds weights and tokens on different devices.

    Why: the run ends in the first step.
    Example: enable_cpu_offload = true at tensor degree 8 on 8 ranks.
    Fix: a shard degree above 1, or enable_cpu_offload = false.
    Source: torchtitan/train.py:184 and models/llama3/infra/parallelize.py:125-147 (0.2.2).
    """
    option = "training.enable_cpu_offload"
    if not _python(subject) and subject.value(option) is True and subject.value(at.FSDP) is False:
        message = "weights start on the CPU, and without sharding nothing brings them to the GPU"
        yield Remark(message, f"shard, or {option} = false", option=option)


@rule("P560", Level.NOTE)
def default_sequence_length(subject: Subject) -> Iterator[Remark]:
    """The default sequence length under a model made for longer ones.

    Where training.seq_len is not set it is 2,048, whatever the model.

    Why: a context of 8,192 or more is what most of these models are trained with.
    Example: the flavor 8B of llama3 without seq_len.
    Fix: state seq_len.
    Source: torchtitan/config/job_config.py:261 (0.2.2), config/configs.py:52 (0.3.0).
    """
    option = "training.seq_len"
    longest, length = _positions(subject), _number(subject, option)
    flavor = str(subject.value(f"{at.MODEL}name", ""))
    if subject.given(option) is None and longest > 2 * length > 0 and "debug" not in flavor:
        message = f"seq_len is not set, so it is {length:,}; {flavor} has {longest:,} positions"
        yield Remark(message, "state training.seq_len", option=option)


def _positions(subject: Subject) -> int:
    """The positions of the flavor itself, which 0.2.2 adjusts to the sequence (models/llama3/model/args.py:49)."""
    if _python(subject):
        return _number(subject, f"{at.MODEL}max_positions")
    from translator.frameworks.torchtitan.flavors import arguments

    version = ".".join(map(str, subject.version))
    found = arguments(str(subject.value("model.name")), str(subject.value("model.flavor")), version)
    longest = (found or {}).get("max_seq_len")
    return longest if isinstance(longest, int) else 0


@rule("P561")
def evaluates_to_the_end(subject: Subject) -> Iterator[Remark]:
    """Evaluation over all data on several data ranks.

    steps = -1 reads until the data end, and ranks whose share is shorter leave their collectives first.

    Why: the others wait for them until the timeout ends the run.
    Example: `[validation] enable = true` on 8 ranks without steps.
    Fix: a number of steps that every rank has data for.
    Source: torchtitan/components/validate.py:86-91 (0.2.2), :133-138 (0.3.0).
    """
    section = "validator" if _python(subject) else "validation"
    option = f"{section}.steps"
    ranks = _number(subject, at.DP_DEGREE, 1)
    if subject.value(f"{section}.enable") and subject.value(option) == -1 and ranks > 1:
        message = f"{ranks} data ranks evaluate until their own data end, and may wait for one another for ever"
        yield Remark(message, f"{option} = 100, or another number", option=option)


@rule("P562")
def traces_all_along(subject: Subject) -> Iterator[Remark]:
    """A profiler that traces a whole run.

    Every profile_freq steps each rank writes a trace of some hundred megabytes.

    Why: the disk fills, and every traced step is slow.
    Example: enable_profiling = true with profile_freq 10 in 10,000 steps: 1,000 traces of each rank.
    Fix: enable_profiling = false, or a longer profile_freq.
    Source: torchtitan/tools/profiling.py:33-88 (0.2.2), tools/profiler.py:282-340 (0.3.0).
    """
    section = "profiler" if _python(subject) else "profiling"
    each, steps = _number(subject, f"{section}.profile_freq"), _steps(subject)
    limited = subject.value(f"{section}.profiler_repeat")
    if subject.value(f"{section}.enable_profiling") and not limited and each > 0 and steps // each > _TRACES:
        message = f"a trace every {each} steps for {steps:,} steps: {steps // each:,} traces of each rank"
        yield Remark(message, "switch it off, or trace less often", option=f"{section}.profile_freq")


@rule("P563", Level.NOTE)
def logs_every_step(subject: Subject) -> Iterator[Remark]:
    """Logging in every step of a long run.

    A step that is logged reduces the loss over all ranks and waits for the GPU.

    Why: the CPU cannot run ahead of the GPU, which costs some percent of the speed.
    Example: `log_freq = 1` in 10,000 steps.
    Fix: log_freq = 10, the default.
    Source: torchtitan/train.py:607-650 (0.2.2), trainer.py:930-952 (0.3.0).
    """
    option = "metrics.log_freq"
    if _number(subject, option, 10) == _LOG_EACH and _steps(subject) > _LONG_RUN_STEPS:
        message = f"every one of {_steps(subject):,} steps is logged, and each waits for the GPU"
        yield Remark(message, f"{option} = 10", option=option)


@rule("P564")
def quantised_sizes(subject: Subject) -> Iterator[Remark]:
    """Linears whose sizes the quantised kernels do not take.

    float8 linears need sizes that divide by 16, MXFP8 blocks are 32 wide, and NVFP4 takes multiples of 128 on every
    tensor rank. torchtitan 0.2.2 leaves float8 linears of other sizes in bf16 without a word; NVFP4 of 0.3.0 raises.

    Why: the speed that was expected does not come, or the run does not start.
    Example: NVFP4 with an ffn of 11,008 at tensor degree 4: 2,752 on each rank.
    Fix: a smaller tensor degree, other sizes, or the linears left out by fqns.
    Source: torchtitan/components/quantization/utils.py:20 (0.2.2), components/quantization/nvfp4.py:106 (0.3.0).
    """
    found = _quantiser(subject)
    if found is None:
        return
    kind, block, option = found
    tensor = max(1, _number(subject, f"{_P}tensor_parallel_degree", 1))
    head = _number(subject, f"{at.MODEL}head_dim")
    sizes = {
        "hidden size": (_number(subject, f"{at.MODEL}hidden"), 1),
        "ffn": (_number(subject, f"{at.MODEL}ffn"), tensor),
        "queries": (_number(subject, f"{at.MODEL}heads") * head, tensor),
        "keys": (_number(subject, f"{at.MODEL}kv_heads") * head, tensor),
    }
    for name, (size, ranks) in sizes.items():
        if size and (size % ranks or size // ranks % block):
            place = f" on each of {ranks} tensor ranks" if ranks > 1 else ""
            message = f"{kind} wants multiples of {block}, and the {name} is {size // ranks}{place}"
            yield Remark(message, "a smaller tensor degree, or leave such linears out by name", option=option)
            return


def _quantiser(subject: Subject) -> tuple[str, int, str] | None:
    """Its name, what sizes must divide by, and the option that asks for it."""
    if not _python(subject):
        names = subject.value("model.converters")
        for name in names if isinstance(names, list) else ():
            if "linear.float8" in str(name) or name == "float8":
                return "float8", 16, "model.converters"
            if "linear.mx" in str(name) or name == "mx":
                return "MXFP8", 32, "model.converters"
        return None
    converters = subject.value("model_spec.converters")
    kinds = {"Float8LinearConverter": ("float8", 16), "MXFP8LinearConverter": ("MXFP8", 32)}
    kinds["NVFP4LinearConverter"] = ("NVFP4", 128)
    for item in converters if isinstance(converters, list) else ():
        found = kinds.get(str(item.get("class"))) if isinstance(item, dict) else None
        if found is not None:
            return (*found, "model_spec.converters")
    return None


@rule("P565", Level.NOTE)
def no_tokenizer_of_its_own(subject: Subject) -> Iterator[Remark]:
    """The tokenizer of the tests for a real model.

    Where hf_assets_path is not set it is ./tests/assets/tokenizer, a tokenizer of 2,048 words made for trials.

    Why: from a checkout the run starts with it and uses a small part of the vocabulary; elsewhere the path is missing.
    Example: the flavor 8B of llama3 without hf_assets_path.
    Fix: hf_assets_path = "./assets/hf/Llama-3.1-8B", as scripts/download_hf_assets.py writes it.
    Source: torchtitan/config/job_config.py:107 and components/tokenizer.py:94 (0.2.2), trainer.py:89 (0.3.0).
    """
    option = "hf_assets_path" if _python(subject) else "model.hf_assets_path"
    flavor = str(subject.value(f"{at.MODEL}name", ""))
    if subject.value(option) == "./tests/assets/tokenizer" and flavor and "debug" not in flavor:
        message = f"{flavor} with the tokenizer of the tests, which knows 2,048 words"
        yield Remark(message, f"{option} with the files of the model", option=option)

"""Models that are not the ones that their options read like."""

from __future__ import annotations

from collections.abc import Iterator

from translator.checks.registry import rule
from translator.findings import Level
from translator.subject import Remark, Subject

_LONG_SEQUENCE = 8192
_DEFAULT_ROPE_BASE = 10000


def _modern(subject: Subject) -> bool:
    """Whether the options are those of the family of Llama: rotary positions and RMSNorm or SwiGLU."""
    rotary = subject.value("position_embedding_type") == "rope"
    return rotary and bool(subject.value("swiglu") or subject.value("normalization") == "RMSNorm")


@rule("P520")
def query_groups_without_their_switch(subject: Subject) -> Iterator[Remark]:
    """--num-query-groups without --group-query-attention.

    Why: the number is ignored and every head has keys and values of its own. Nothing is said, and the checkpoint has
    another shape than the model that was meant.
    Example: --num-attention-heads 32 --num-query-groups 8 trains 32 key-value heads.
    Fix: add --group-query-attention.
    Source: megatron/training/argument_utils.py:325 (core 0.18.0) hands on the groups with the switch only.
    """
    given, heads = subject.given("num_query_groups"), subject.value("num_attention_heads")
    if given is None or subject.value("group_query_attention") or subject.value("multi_latent_attention"):
        return
    if isinstance(given.value, int) and given.value != heads:
        message = f"{given.written} {given.value} is ignored without --group-query-attention"
        message += f": the model has {heads} key-value heads"
        yield Remark(message, "add --group-query-attention", option="num_query_groups")


@rule("P521")
def grouped_queries_without_a_number(subject: Subject) -> Iterator[Remark]:
    """--group-query-attention without --num-query-groups.

    Why: the default is one group, so all heads share one key and one value (multi-query attention).
    Example: --group-query-attention alone.
    Fix: state --num-query-groups.
    Source: megatron/core/transformer/transformer_config.py:152 (core 0.18.0): the parser's default is 1.
    """
    stated = subject.stated("num_query_groups")
    if subject.value("group_query_attention") and not stated and (subject.value("num_attention_heads") or 1) > 1:
        message = "--group-query-attention without --num-query-groups gives one key-value head for all queries"
        yield Remark(message, "state --num-query-groups", option="group_query_attention")


@rule("P522")
def default_dropout(subject: Subject) -> Iterator[Remark]:
    """Dropout of 0.1, by default, in a model of the family of Llama.

    Why: both dropouts are 0.1 unless stated. Models with rotary positions, RMSNorm and SwiGLU are trained without, and
    a checkpoint of theirs that is trained on changes its behaviour.
    Example: a Llama without --hidden-dropout and --attention-dropout.
    Fix: --hidden-dropout 0 --attention-dropout 0, or state 0.1 to keep it.
    Source: megatron/core/transformer/transformer_config.py:165 and :168 (core 0.18.0).
    """
    options = ("hidden_dropout", "attention_dropout")
    left = [name for name in options if not subject.stated(name) and subject.value(name)]
    if left and _modern(subject) and not subject.value("skip_train"):
        flags = " and ".join("--" + name.replace("_", "-") for name in left)
        yield Remark(
            f"{flags} {'are' if len(left) > 1 else 'is'} 0.1 by default",
            " ".join(f"--{name.replace('_', '-')} 0" for name in left),
            option=left[0],
        )


@rule("P523", Level.NOTE)
def default_biases(subject: Subject) -> Iterator[Remark]:
    """Biases in all linear layers of a model of the family of Llama.

    Why: biases are on unless switched off, so that the model differs from the published ones.
    Example: --swiglu --position-embedding-type rope without --disable-bias-linear.
    Fix: --disable-bias-linear (and --add-qkv-bias where only the query, key and value projections have some).
    Source: megatron/training/arguments.py:1441 (core 0.18.0).
    """
    if _modern(subject) and subject.value("swiglu") and subject.value("add_bias_linear"):
        message = "all linear layers have biases, which models with SwiGLU and rotary positions go without"
        yield Remark(message, "add --disable-bias-linear", option="add_bias_linear")


@rule("P524")
def width_by_default(subject: Subject) -> Iterator[Remark]:
    """SwiGLU without --ffn-hidden-size.

    Why: the width is then 8/3 of the hidden size, cut to whole 64s, which is the width of no published model.
    Example: --hidden-size 4096 --swiglu gives 10880; Llama 2 7B has 11008, Llama 3 8B 14336.
    Fix: state --ffn-hidden-size.
    Source: megatron/training/arguments.py:1278 (core 0.18.0).
    """
    if subject.value("swiglu") and not subject.stated("ffn_hidden_size"):
        width, hidden = subject.value("ffn_hidden_size"), subject.value("hidden_size")
        if isinstance(width, int) and isinstance(hidden, int):
            message = f"--swiglu without --ffn-hidden-size gives a width of {width} for a hidden size of {hidden}"
            yield Remark(message, "state --ffn-hidden-size", option="swiglu")


@rule("P525")
def short_rotation(subject: Subject) -> Iterator[Remark]:
    """A long sequence with the rotary base of a short one.

    Why: with a base of 10000 the slowest rotations come round too early to tell positions of a long sequence apart;
    models for long sequences use 500000 and more.
    Example: --seq-length 32768 without --rotary-base.
    Fix: --rotary-base 500000, or --use-rope-scaling.
    Source: megatron/training/arguments.py:2125 (core 0.18.0): the default is 10000.
    """
    length = subject.value("seq_length")
    if subject.value("position_embedding_type") != "rope" or not isinstance(length, int) or length <= _LONG_SEQUENCE:
        return
    scaled = subject.value("use_rope_scaling") or subject.value("config.rope_type") == "yarn"
    if not subject.stated("rotary_base") and not scaled and subject.value("rotary_base") == _DEFAULT_ROPE_BASE:
        message = f"a sequence of {length} with the default rotary base of {_DEFAULT_ROPE_BASE}"
        yield Remark(message, "state --rotary-base", option="seq_length")


@rule("P526")
def experts_without_balance(subject: Subject) -> Iterator[Remark]:
    """Experts that nothing keeps in balance.

    Why: the loss that balances experts has the coefficient 0 unless stated, so the router may send all tokens to few
    of them.
    Example: --num-experts 8 without --moe-aux-loss-coeff.
    Fix: --moe-aux-loss-coeff 1e-2, or --moe-router-enable-expert-bias.
    Source: megatron/core/transformer/transformer_config.py:776 and moe/router.py:295 (core 0.18.0).
    """
    kinds = subject.value("moe_router_load_balancing_type")
    names = kinds if isinstance(kinds, list) else [kinds]
    weight, experts = subject.value("moe_aux_loss_coeff"), subject.value("num_experts")
    silent = not any(weight) if isinstance(weight, list) else not weight
    if not experts or not silent or subject.value("moe_router_enable_expert_bias") or subject.value("skip_train"):
        return
    if any(isinstance(name, str) and name.endswith("aux_loss") for name in names):
        message = f"the load balancing loss of {experts} experts has the coefficient 0"
        yield Remark(message, "state --moe-aux-loss-coeff, such as 1e-2", option="num_experts")


@rule("P527", Level.NOTE)
def gathered_tokens(subject: Subject) -> Iterator[Remark]:
    """Many expert ranks with the dispatcher for few.

    Why: the allgather dispatcher, the default, brings every token to every rank; alltoall sends each
    only where it goes.
    Example: --expert-model-parallel-size 8 without --moe-token-dispatcher-type.
    Fix: --moe-token-dispatcher-type alltoall.
    Source: megatron/core/transformer/moe/README.md:312 and transformer_config.py:792 (core 0.18.0).
    """
    ranks, kind = subject.value("expert_model_parallel_size"), subject.value("moe_token_dispatcher_type")
    if isinstance(ranks, int) and ranks > 2 and kind == "allgather" and subject.value("num_experts"):
        message = f"the allgather dispatcher brings all tokens to all {ranks} expert-parallel ranks"
        yield Remark(message, "use --moe-token-dispatcher-type alltoall", option="expert_model_parallel_size")


@rule("P528")
def positions_of_no_use(subject: Subject) -> Iterator[Remark]:
    """Learned positions far beyond the sequence.

    Why: embeddings beyond the sequence are never trained; they cost memory and say nothing at inference.
    Example: --seq-length 1024 --max-position-embeddings 8192 with learned positions.
    Fix: --max-position-embeddings as long as the sequence, or rotary positions.
    Source: megatron/core/models/common/embeddings/language_model_embedding.py:43 (core 0.18.0).
    """
    length, most = subject.value("seq_length"), subject.value("max_position_embeddings")
    learned = subject.value("position_embedding_type") == "learned_absolute"
    if learned and isinstance(length, int) and isinstance(most, int) and most > length:
        message = f"{most - length} of {most} learned positions lie beyond the sequence and are never trained"
        yield Remark(message, f"--max-position-embeddings {length}", option="max_position_embeddings")


@rule("P529", Level.NOTE)
def padded_vocabulary(subject: Subject) -> Iterator[Remark]:
    """A vocabulary that grows with the tensor parallel size.

    Why: it is rounded up to a multiple of 128 x the tensor parallel size, so another size needs a conversion of the
    checkpoint, and the numbers of parameters differ.
    Example: 50257 tokens become 50304 on one rank and 51200 on eight.
    Fix: --make-vocab-size-divisible-by, or --padded-vocab-size, that suits all sizes in use.
    Source: megatron/training/vocab_utils.py:59 (core 0.18.0).
    """
    size, padded = subject.value("vocab_size"), subject.value("padded_vocab_size")
    tensor, multiple = subject.value("tensor_model_parallel_size"), subject.value("make_vocab_size_divisible_by")
    if subject.stated("padded_vocab_size") or not all(
        isinstance(number, int) for number in (size, padded, tensor, multiple)
    ):
        return
    alone = -(-size // multiple) * multiple
    if tensor > 1 and padded != alone and subject.value("hidden_size"):
        message = f"the vocabulary of {size} is padded to {padded} under tensor degree {tensor}, to {alone} under 1"
        yield Remark(message, f"--padded-vocab-size {padded} wherever the checkpoint goes", option="vocab_size")

"""The model: the same architecture, built or initialised otherwise."""

from __future__ import annotations

import math

from translator.differences.registry import Pair, difference, stances_of
from translator.findings import Level
from translator.subject import Subject


def _starts_anew(pair: Pair) -> bool:
    """Whether no side begins with weights that were trained before."""
    return not any(_loads(side) for side in (pair.left, pair.right))


def _loads(subject: Subject) -> bool:
    stated = stances_of(subject.framework).get("D346")
    found = stated(subject) if stated is not None else None
    return found is not None and found.kind != "random"


def _factor(pair: Pair) -> float | None:
    """How many times wider one side draws than the other; None below a quarter more, which the seed outweighs."""
    widths = [float(side.kind.partition(" ")[0]) for side in (pair.source, pair.target)]
    factor = max(widths) / min(widths) if min(widths) else 0.0
    return factor if factor > 1.25 else None


def _differ(pair: Pair, *leaves: str) -> bool:
    return any(pair.left.leaf(leaf) != pair.right.leaf(leaf) for leaf in leaves)


@difference("D339", "model.vocab_padded")
def padded_vocabulary(pair: Pair) -> str | None:
    """Rows of embedding and output head beyond the tokenizer's vocabulary.

    One framework rounds up to a multiple of a divisor times the tensor-parallel degree, the others take the number that
    the model states. Padding rows take part in the softmax like words that never occur.

    Why: the number of parameters, and with it checkpoints, depends on the layout; the first losses are a little higher.
    Example: 50,257 words become 50,304 rows at tensor 1 and 50,432 at tensor 2.
    Fix: give the other side the padded number as its vocabulary.
    """
    rows = [side.leaf("model.vocab_padded") for side in (pair.left, pair.right)]
    hidden = pair.left.leaf("model.hidden")
    if not (rows[0] and rows[1]):
        return "the number of rows, and the shape of checkpoints, depends on it"
    if rows[0] == rows[1]:
        return None
    parameters = abs(rows[0] - rows[1]) * (hidden or 0) * (1 if pair.left.leaf("model.tied_embeddings") else 2)
    first = abs(math.log(rows[0] / rows[1]))
    return f"{parameters:,} parameters, and {first:.4f} in the loss of a model that knows nothing yet"


@difference("D346", "checkpoint.load")
def first_weights(pair: Pair) -> str | None:
    """Where the first weights come from.

    A model by name or path brings its trained weights; a model given by its dimensions, or a folder that is both saved
    to and loaded from and is empty at first, starts with random ones.

    Why: a fine-tuning run becomes a training from scratch, whose loss begins near the logarithm of the vocabulary.
    Example: --model_name_or_path Qwen/Qwen2-7B against a list of layers and widths.
    Fix: convert the weights and name them in the target.
    """
    vocab = pair.left.leaf("model.vocab")
    return f"a model that knows nothing begins at a loss of {math.log(vocab):.1f}" if vocab else ""


@difference("D347", "model.moe.aux_loss_coefficient")
def balancing_loss_scale(pair: Pair) -> str | None:
    """What the coefficient of the balancing loss multiplies.

    The loss of each layer, added up and divided by the experts per token; or one loss over the tokens of all layers
    together, not divided.

    Why: the same coefficient pulls many times harder on one side.
    Example: 32 layers and 2 experts per token: 0.01 there is as strong as 0.000625 here.
    Fix: multiply the coefficient by experts per token and divide by the layers, or the other way round.
    """
    experts, layers = pair.left.leaf("model.moe.top_k"), pair.left.leaf("model.layers")
    if not (experts and layers):
        return ""
    layers -= len(pair.left.leaf("model.moe.dense_layers") or ())
    return f"the same coefficient weighs about {layers / experts:g} times as much where layers are added up"


@difference("D350", "model.rope.scaling")
def rotary_frequencies(pair: Pair) -> str | None:
    """Which frequencies rotary positions turn at.

    The base, and a stretching for long contexts that one framework applies to a model family always, another from a
    version on, and a third only when told.

    Why: with other frequencies the same weights attend elsewhere; trained weights are of no use then.
    Example: Llama 3.1 stretches by 8 beyond 8,192 positions; Llama 3.0, of the same size, does not.
    Fix: state the stretching on both sides, or take a model without it.
    """
    changed = max(_stretched(pair.left), _stretched(pair.right))
    same_base = pair.left.leaf("model.rope_base") == pair.right.leaf("model.rope_base")
    if not (same_base and changed):
        return "all positions beyond the first turn otherwise" if not same_base else ""
    return f"{changed:.0%} of the frequencies differ, the slow ones"


def _stretched(subject: Subject) -> float:
    """Share of the rotary frequencies that Llama 3's scaling changes, from 0 to 1."""
    width, base = subject.leaf("model.head_dim"), subject.leaf("model.rope_base")
    context, high = subject.leaf("model.rope.original_max_positions"), subject.leaf("model.rope.high_freq_factor")
    if subject.leaf("model.rope.scaling") != "llama3" or not (width and base and context and high):
        return 0.0
    waves = [2 * math.pi * base ** (2 * i / width) for i in range(width // 2)]
    return sum(1.0 for wave in waves if wave > context / high) / len(waves)


@difference("D351", "model.rope.interleaved", Level.NOTE)
def rotary_pairs(pair: Pair) -> str | None:
    """Which components of a head rotary positions pair up.

    Neighbours (0 with 1, 2 with 3), or the two halves (0 with d/2). The models are equal up to the order of the rows
    of the query and key projections.

    Why: training from scratch does not feel it; weights that are carried over must have these rows reordered, else the
    model produces noise.
    Example: the Llama weights of Meta are in the first order, those on the Hugging Face hub in the second.
    Fix: convert checkpoints with a tool that permutes them.
    """
    carried = pair.left.leaf("checkpoint.load") or not _starts_anew(pair)
    return "a reordering of weights that are carried over" if carried else None


@difference("D352", "model.init_output_scaling")
def residual_init(pair: Pair) -> str | None:
    """How widely the first weights are spread.

    One standard deviation for all matrices, or a smaller one for those that write into the residual stream, by the
    model's depth or by each layer's index; and the feed-forward's ungated branch may count among them.

    Why: the first hundreds of steps, and at large learning rates whether training survives them.
    Example: 32 layers and 0.02: the output projections start with 0.0025 (depth), 0.014 to 0.0025 (index) or 0.02.
    Fix: choose the same rule where there is one, or start from the same converted weights.
    """
    if not _starts_anew(pair):
        return None
    layers = pair.left.leaf("model.layers") or 1
    for name, index in (("last", layers), ("first", 1)):
        stds = [f"{_output_std(side, index, layers):.2g}" for side in (pair.left, pair.right)]
        if stds[0] != stds[1]:
            return f"the {name} layer's outputs start with a standard deviation of {stds[0]} against {stds[1]}"
    return "the output projections start alike, the feed-forward's ungated branch does not"


def _output_std(subject: Subject, layer: int, layers: int) -> float:
    """Standard deviation of the output projections of a layer, counted from 1."""
    std, scaling = float(subject.leaf("model.init_std") or 0), subject.leaf("model.init_output_scaling")
    return std / math.sqrt(2 * {"depth": layers, "layer_index": layer}.get(scaling, 0.5))


@difference("D353", "model.init_std")
def embedding_init(pair: Pair) -> str | None:
    """How widely the first embeddings are spread.

    With a standard deviation of 1, or with that of the other weights (0.02).

    Why: the first norm hides the scale from the layers but not from the residual stream, where large embeddings
    drown what the first layers add; and Adam moves a large embedding relatively slower.
    Example: 1.0 against 0.02 is a factor of 50 in the residual stream at step 0.
    Fix: state the embedding's own standard deviation where there is an option.
    """
    factor = _factor(pair)
    return f"a factor of {factor:.3g} in the residual stream at step 0" if factor and _starts_anew(pair) else None


@difference("D354", "model.init_std")
def head_init(pair: Pair) -> str | None:
    """How widely the first output head is spread.

    With the standard deviation of the other weights, or with one over the root of the width, cut off at three times
    that.

    Why: the first logits, and so the first losses.
    Example: at width 1,024 that is 0.031 against 0.02.
    Fix: nothing to set; compare losses after the warm-up.
    """
    factor = _factor(pair)
    if not (factor and _starts_anew(pair)) or pair.left.leaf("model.tied_embeddings"):
        return None
    return f"a factor of {factor:.2g} in the first logits"


@difference("D355", "model.hidden_dropout")
def dropout(pair: Pair) -> str | None:
    """Which dropout is in force when none is stated.

    One framework drops 0.1 after embeddings, attention and feed-forward by default, one has no dropout at all, one
    takes what the model's own configuration says.

    Why: 0.1 changes the loss curve from the first step on, and costs random numbers and memory.
    Example: a Llama script without --hidden-dropout 0 trains with dropout.
    Fix: state 0 on both sides, or expect another curve.
    """
    if not _differ(pair, "model.hidden_dropout", "model.attention_dropout"):
        return None
    return "the loss from the first step on"


@difference("D357", "model.moe.router_normalize")
def routing_weights(pair: Pair) -> str | None:
    """How the router's scores become the weights of the chosen experts.

    A softmax or sigmoid over all experts before the choice or over the chosen ones after it, with or without making
    the weights sum to 1, times a factor.

    Why: without normalisation the experts' share of the output is smaller and differs by token.
    Example: a softmax over 64 experts leaves 6 chosen ones with perhaps 0.3 in sum, not 1.
    Fix: state function, normalisation and factor on both sides.
    """
    if not (pair.left.leaf("model.moe.experts") and pair.right.leaf("model.moe.experts")):
        return None
    return "every token's output of every expert layer"


@difference("D358", "model.moe.capacity_factor")
def full_experts(pair: Pair) -> str | None:
    """What becomes of tokens whose expert is full.

    With a capacity the surplus tokens skip the expert, by lowest weight or by position; without one every token is
    computed, however uneven the load.

    Why: dropped tokens train nothing there, and a capacity bounds memory where none does not.
    Example: at capacity 1.0 an expert that is chosen twice as often as the mean drops half of its tokens.
    Fix: give no capacity on both sides.
    """
    if not (pair.left.leaf("model.moe.experts") and pair.right.leaf("model.moe.experts")):
        return None
    return "which tokens an expert sees"


@difference("D359", "model.moe.balancing")
def balancing(pair: Pair) -> str | None:
    """What keeps the load of experts even.

    A loss with a coefficient per micro batch, sequence or global batch; a bias on the choice that is moved after each
    step; both; or nothing.

    Why: without it experts starve within thousands of steps, and with a loss the gradient is not that of the text
    alone.
    Example: a coefficient of 0, the default of one framework, means no balancing though a kind of loss is named.
    Fix: choose one kind with its strength on both sides.
    """
    if not (pair.left.leaf("model.moe.experts") and pair.right.leaf("model.moe.experts")):
        return None
    return "how evenly experts are used"


@difference("D360", "model.moe.router_bias_rate", Level.NOTE)
def bias_step(pair: Pair) -> str | None:
    """How the balancing bias of experts moves.

    Each step adds or takes the rate by the sign of an expert's missing load; one framework then subtracts the mean of
    the steps, so that the biases keep their sum. An old version did so after every backward pass, not every step.

    Why: a shift common to all experts changes no choice; but biases in checkpoints are not comparable number by number.
    Example: 200 of 256 experts short of tokens raise the mean bias by 0.0006 a step at a rate of 0.001, or by 0.
    Fix: none needed.
    """
    if "every pass" in (pair.source.kind, pair.target.kind):
        return f"{pair.left.size('batch.accumulation')} times as fast where every backward pass counts"
    return "a shift common to all experts, which changes no choice"


@difference("D361", "model.moe.router_group_top_k")
def group_score(pair: Pair) -> str | None:
    """How many scores decide whether a group of experts is chosen.

    The two best of a group in one framework; as many as there are experts per token and chosen group in another.

    Why: other groups are chosen, and so other experts.
    Example: 8 experts of 4 groups are two per group on both sides; 6 of 3 as well; 8 of 2 are four against two.
    Fix: keep experts per token at twice the chosen groups.
    """
    if not (pair.left.size("model.moe.router_groups", 0) > 1 and pair.right.size("model.moe.router_groups", 0) > 1):
        return None
    return "which experts a token reaches"


@difference("D362", "model.moe.router_dtype")
def router_precision(pair: Pair) -> str | None:
    """The precision of the router's matrix product.

    That of the other products (bf16), or fp32; the score function runs in fp32 either way.

    Why: bf16 has three digits, and experts whose logits are that close change places; replays do not agree.
    Example: with 256 experts the eighth and the ninth logit of a token are often within that.
    Fix: ask for fp32 where there is an option.
    """
    if not (pair.left.leaf("model.moe.experts") and pair.right.leaf("model.moe.experts")):
        return None
    return "experts whose logits nearly tie"


@difference("D363", "model.mtp.loss_scaling")
def extra_prediction(pair: Pair) -> str | None:
    """The loss of tokens further ahead.

    Multi-token prediction adds modules whose mean loss counts with a factor (0.1 unless stated), or does not exist.

    Why: the shared layers get other gradients, and the modules are missing from checkpoints.
    Example: DeepSeek-V3 trained with one module at 0.3, later 0.1.
    Fix: train without on both sides, or expect the difference.
    """
    layers = [side.leaf("model.mtp.layers") or 0 for side in (pair.left, pair.right)]
    return f"{layers[0]} against {layers[1]} modules" if any(layers) else None


@difference("D364", "checkpoint.load", Level.NOTE)
def projection_layout(pair: Pair) -> str | None:
    """How query, key and value weights lie in a checkpoint.

    As three matrices, as one with each group's queries, key and value together, or as one with all queries first.

    Why: a checkpoint that is carried over by name and shape loads, where it is one matrix on both sides, and gives
    nonsense.
    Example: 32 heads in 8 groups are 8 blocks of 4 queries, 1 key and 1 value in one framework.
    Fix: convert weights through the Hugging Face format with the framework's own converter.
    """
    if pair.left.leaf("model.mla.enabled") or not pair.left.leaf("checkpoint.load"):
        return None
    return f"weights in {pair.left.leaf('checkpoint.load')} have to be converted before the other side can use them"

"""Model dimensions, position embeddings, experts, hybrid patterns.

Source: ``validate_args``, ``megatron/training/arguments.py`` (core 0.18.0).
"""

from __future__ import annotations

from translator.frameworks.megatron.settle.engine import Rules, Settling, because

HYBRID = Rules()
MODEL = Rules()
MODEL_LATE = Rules()

REQUIRED = ("num_layers", "hidden_size", "num_attention_heads", "max_position_embeddings")
MTP_SEPARATOR, PIPE = "/", "|"
# Layer letters of hybrid patterns whose attention is multi-latent, by the first version that infers it.
LATENT_LETTERS = (((0, 18), "D"), ((0, 19), "+"))


@HYBRID.rule("hybrid_layer_pattern", since="0.17")
def old_pattern(state: Settling) -> None:
    """The two old pattern options become one."""
    old = state["hybrid_override_pattern"]
    if old is not None:
        if state["hybrid_layer_pattern"] is not None:
            message = "--hybrid-override-pattern and --hybrid-layer-pattern exclude each other"
            state.refuse("S117", message, "hybrid_override_pattern")
        reason = because("--hybrid-override-pattern is its old spelling", 746)
        state.put("hybrid_layer_pattern", old, reason)
    pattern, depth = state["hybrid_layer_pattern"], state["mtp_num_layers"]
    extra = state["mtp_hybrid_override_pattern"]
    if extra is not None and depth and 0 < depth <= 1000 and MTP_SEPARATOR not in (pattern or ""):
        joined = (pattern or "") + MTP_SEPARATOR + MTP_SEPARATOR.join([extra] * depth)
        reason = because("--mtp-hybrid-override-pattern became a part of it", 773)
        state.put("hybrid_layer_pattern", joined, reason)
        state.put("mtp_hybrid_override_pattern", None, reason)


@HYBRID.rule("num_layers", "mtp_num_layers", "multi_latent_attention", since="0.17")
def pattern_counts(state: Settling) -> None:
    """A hybrid pattern says how many layers there are, whatever --num-layers says."""
    pattern = state["hybrid_layer_pattern"]
    if not pattern:
        return
    main, *depths = pattern.split(MTP_SEPARATOR)
    layers = len(main.replace(PIPE, ""))
    state.put("num_layers", layers, because("the length of the hybrid layer pattern", 787))
    depths = [] if not any(depths) else depths
    if depths:
        if len(set(depths)) > 1:
            message = "all multi-token prediction patterns must be equal"
            state.refuse("S117", message, "hybrid_layer_pattern")
        elif depths[0]:
            reason = because("the number of patterns after the slashes", 860)
            state.put("mtp_num_layers", len(depths), reason)
    letters = [letter for since, letter in LATENT_LETTERS if state.version >= since]
    if any(letter in pattern for letter in letters):
        state.put("multi_latent_attention", True, because("the pattern has such layers", 902))


@HYBRID.rule("virtual_pipeline_model_parallel_size", since="0.17")
def pattern_stages(state: Settling) -> None:
    """Bars in a hybrid pattern are the borders of pipeline stages."""
    pattern = state["hybrid_layer_pattern"]
    if pattern is None:
        return
    pipeline = state.need("pipeline_model_parallel_size")
    segments = pattern.split(MTP_SEPARATOR)[0].count(PIPE) + 1
    forbidden = (
        "num_layers_per_virtual_pipeline_stage",
        "num_virtual_stages_per_pipeline_rank",
        "pipeline_model_parallel_layout",
        "account_for_embedding_in_pipeline_split",
        "account_for_loss_in_pipeline_split",
        *(("decoder_first_pipeline_num_layers", "decoder_last_pipeline_num_layers") if segments > 1 else ()),
    )
    for address in forbidden:
        if state[address] not in (None, False):
            message = f"--{address.replace('_', '-')} does not go with a hybrid layer pattern"
            state.refuse("S117", message, address)
    stages = None
    if not (segments == 1 and pipeline > 1):
        if segments % pipeline:
            message = f"{segments} pattern segments do not divide over {pipeline} pipeline stages"
            state.refuse("S117", message, "hybrid_layer_pattern")
        stages = segments // pipeline if segments > pipeline else None
    state.put("virtual_pipeline_model_parallel_size", stages, because("segments of the pattern / PP", 848))


@MODEL.rule("num_layers", "encoder_num_layers")
def layers(state: Settling) -> None:
    """The number of layers stands under two names."""
    reason = because("the same as the number of layers", 1258)
    if state["num_layers"] is not None:
        if state["encoder_num_layers"] is not None:
            message = "--num-layers and --encoder-num-layers exclude each other"
            state.refuse("S113", message, "encoder_num_layers")
        state.put("encoder_num_layers", state["num_layers"], reason)
    elif state["encoder_num_layers"] is not None:
        state.put("num_layers", state["encoder_num_layers"], reason)


@MODEL.rule()
def required(state: Settling) -> None:
    """Dimensions without which no model can be built."""
    for address in REQUIRED:
        if address not in state.missing and state[address] is None:
            flag = "--" + address.replace("_", "-")
            state.refuse("S113", f"{flag} is required", None, f"give {flag}")


@MODEL.rule("ffn_hidden_size")
def feed_forward(state: Settling) -> None:
    """Four times the hidden size; with SwiGLU two thirds of that, in whole 64s."""
    if state["ffn_hidden_size"] is not None:
        return
    hidden = state.need("hidden_size")
    if state["swiglu"]:
        value = int((4 * hidden * 2 / 3) / 64) * 64
        state.put("ffn_hidden_size", value, because("4 x 2/3 of the hidden size in whole 64s (SwiGLU)", 1278))
    else:
        state.put("ffn_hidden_size", 4 * hidden, because("4 x the hidden size", 1280))


@MODEL.rule("kv_channels")
def head_dimension(state: Settling) -> None:
    """The hidden size over the heads."""
    if state["kv_channels"] is not None:
        return
    hidden, heads = state.need("hidden_size"), state.need("num_attention_heads")
    if hidden % heads:
        message = f"the hidden size ({hidden}) is not a multiple of the attention heads ({heads})"
        state.refuse("S106", message, "num_attention_heads")
    state.put("kv_channels", hidden // heads, because("hidden size / attention heads", 1284))


@MODEL.rule("seq_length", "encoder_seq_length")
def sequence_length(state: Settling) -> None:
    """The sequence length stands under two names and fits the positions and the context groups."""
    reason = because("the same as the sequence length", 1293)
    length = state["seq_length"]
    if length is not None:
        if state["encoder_seq_length"] is not None:
            state.refuse("S104", "--seq-length and --encoder-seq-length exclude each other", "encoder_seq_length")
        state.put("encoder_seq_length", length, reason)
    elif state["encoder_seq_length"] is not None:
        length = state["encoder_seq_length"]
        state.put("seq_length", length, reason)
    else:
        state.refuse("S113", "--seq-length is required", None, "give --seq-length")


@MODEL.rule()
def sequence_fits(state: Settling) -> None:
    """Positions cover the sequence; context groups cut it in two halves each."""
    length, context = state.need("seq_length"), state.need("context_parallel_size")
    if context > 1 and length % (2 * context):
        message = f"--seq-length ({length}) is not a multiple of 2 x context parallel size ({context})"
        state.refuse("S104", message, "seq_length")
    for name in ("seq_length", "decoder_seq_length"):
        if state[name] is not None and state[name] > state.need("max_position_embeddings"):
            flag = "--" + name.replace("_", "-")
            message = f"{flag} ({state[name]}) exceeds --max-position-embeddings ({state['max_position_embeddings']})"
            state.refuse("S104", message, name)


@MODEL_LATE.rule("bias_gelu_fusion", "add_qkv_bias")
def biases(state: Settling) -> None:
    """A model with biases has them in attention, too; one without fuses none."""
    if state["add_bias_linear"]:
        state.put("add_qkv_bias", True, because("biases are on for all linear layers", 1441))
    else:
        state.put("bias_gelu_fusion", False, because("off: there are no biases", 1437))


@MODEL_LATE.rule("position_embedding_type", "apply_rope_fusion")
def positions(state: Settling) -> None:
    """Rotary embeddings by their old switch; no fused kernel for any other kind."""
    if state["use_rotary_position_embeddings"]:
        state.put("position_embedding_type", "rope", because("--use-rotary-position-embeddings", 1458))
    kind = state["position_embedding_type"]
    if kind != "rope":
        state.put("apply_rope_fusion", False, because("off: positions are not rotary", 1460))
    if not state["add_position_embedding"] and kind != "rope":
        message = "--no-position-embedding needs rotary embeddings"
        state.refuse("S121", message, "add_position_embedding", "use --position-embedding-type none")
    if kind == "mrope" and state["mrope_section"] is None:
        state.refuse("S121", "--position-embedding-type mrope needs --mrope-section", "position_embedding_type")
    if state["mtp_num_layers"] and kind not in ("rope", "none") and state.version >= (0, 17):
        message = f"multi-token prediction needs rotary or no position embeddings, not {kind}"
        state.refuse("S121", message, "mtp_num_layers")


@MODEL_LATE.rule("num_experts", "moe_ffn_hidden_size")
def experts(state: Settling) -> None:
    """No experts is None; experts are as wide as the dense layers unless told otherwise."""
    if state["num_experts"] == 0:
        state.put("num_experts", None, because("0 experts are none", 1480))
    if state["moe_ffn_hidden_size"] is None and (state["num_experts"] is not None or state.version < (0, 14)):
        state.put("moe_ffn_hidden_size", state.need("ffn_hidden_size"), because("the feed-forward size", 1482))


@MODEL_LATE.rule()
def experts_divide(state: Settling) -> None:
    """Expert parallel ranks hold whole experts."""
    parallel, count = state.need("expert_model_parallel_size"), state["num_experts"]
    if parallel > 1 and count is None:
        state.refuse("S107", "expert parallelism needs --num-experts", "expert_model_parallel_size")
    elif parallel > 1 and count % parallel:
        message = f"{count} experts are no multiple of the expert parallel size ({parallel})"
        state.refuse("S107", message, "expert_model_parallel_size")
    if state["moe_latent_size"] is not None and count is None:
        state.refuse("S107", "--moe-latent-size needs --num-experts", "moe_latent_size")
    if state["multi_latent_attention"] and state["group_query_attention"] and state.version >= (0, 16):
        message = "grouped query attention and multi-latent attention exclude each other"
        state.refuse("S106", message, "group_query_attention")


@MODEL_LATE.rule("moe_router_load_balancing_type", "moe_aux_loss_coeff", since="0.14")
def single_balancing(state: Settling) -> None:
    """A list of one is the one."""
    for address in ("moe_router_load_balancing_type", "moe_aux_loss_coeff"):
        value = state[address]
        if isinstance(value, list) and len(value) == 1:
            state.recode(address, value[0])


@MODEL_LATE.rule("attention_softmax_in_fp32")
def softmax(state: Settling) -> None:
    """Scaling by the layer number needs the softmax in fp32."""
    if state["apply_query_key_layer_scaling"]:
        reason = because("--apply-query-key-layer-scaling needs it", 1541)
        state.put("attention_softmax_in_fp32", True, reason)

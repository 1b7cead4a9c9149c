"""Memory: what every rank holds, under the framework that the configuration is written for.

Three layers, each knowing only the one before it: `sizes` (the model and its layout, from the fields of the spec; a
layout may be an array of candidates), `stages` (what each pipeline stage holds, and how many micro batches are in
flight on it), and the framework's own account (`Knowledge.memory`), which turns both into terms. `estimate` adds the
terms up, phase by phase.

What the textbook leaves out
----------------------------
The formula that most calculators use counts 34 s b h bytes per layer (Korthikanti et al. 2022, arXiv:2205.05198, table
2), 16 bytes per parameter and as many micro batches as there are stages. For Llama-3-405B on 8 x 16 x 128 ranks it
gives 72 GB of activations in flight at sequence 8192 and 13 GB of state, and ours agree: 72.8 GB (eight layers on the
first stage) and 13.0 GB. The agreement is a coincidence of its parts, which hold for one kind of layer:

- 16 of the 34 bytes are a feed-forward of four times the hidden size. A gated one of width f keeps 2 f before its
  activation and f after it: 21 bytes per element of h at f = 3.5 h, 12 at f = 2 h, and in a MoE layer as much for each
  chosen expert.
- 6 bytes are queries, keys and values of whole heads. Grouped keys and values are less, the rotated copies more, latent
  attention is neither.
- 2 bytes are dropout masks, which models without dropout do not keep.
- The attention matrix, 5 a s / h more, is gone with a fused kernel and whole without one.
- One micro batch for each stage behind is 1F1B. Interleaving holds more, zero-bubble schedules as much on every rank,
  and few micro batches less.

What it has no term for: logits and what the cross entropy makes of them (the peak of a last stage with a large
vocabulary), gradients of the layer that is run backward and layers that are computed again, buffers of collectives,
prefetch and reduction, parameters gathered whole, workspaces, the allocator's rounding and free blocks, and the CUDA
context and NCCL's buffers beside the allocator.

All amounts are bytes and all arrays have the shape (layouts, stages), unless a name says otherwise.
"""

from __future__ import annotations

"""Memory: what every rank holds, under the framework that the configuration is written for.

Three layers, each knowing only the one before it: `sizes` (the model and its layout, from the fields of the spec; a
layout may be an array of candidates), `stages` (what each pipeline stage holds, and how many micro batches are in
flight on it), and the framework's own account (`Knowledge.memory`), which turns both into terms. `estimate` adds the
terms up, phase by phase.

All amounts are bytes and all arrays have the shape (layouts, stages), unless a name says otherwise.
"""

from __future__ import annotations

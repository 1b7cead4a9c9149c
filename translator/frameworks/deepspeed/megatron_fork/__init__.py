"""Scripts of Megatron-DeepSpeed, read as both: Megatron-LM's arguments and DeepSpeed's JSON.

The script decides model, data, batch, degrees, optimizer and schedule; the JSON decides what the engine does: ZeRO,
precision, clipping, communication, offloading. Where both state a value, `conflicts` says which one is in force.
"""

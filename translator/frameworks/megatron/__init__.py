"""Megatron-LM: reading, settling, mapping and writing its configurations."""

"""What Megatron-LM accepts and should not, one module per topic; lines are those of core 0.18.0."""

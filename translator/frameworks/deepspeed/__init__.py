"""DeepSpeed: JSON configurations, the trainer and model that complete them, and what is in force."""

"""How the framework answers the questions of `translator.differences`, one module per topic."""

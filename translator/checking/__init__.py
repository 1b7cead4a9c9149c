"""Checking many files: finding configurations, running the rules on each, telling and mending what is found."""

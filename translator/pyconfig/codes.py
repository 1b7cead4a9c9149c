"""The codes of findings about Python configurations (R110 to R129): title and documentation."""

from __future__ import annotations

CODES: dict[str, tuple[str, str]] = {
    "R110": (
        "an expression is not evaluated",
        "Python configurations are read without running them. This expression is of a kind that is not evaluated, so "
        "the value it gives is not known; everything else is still read.\n"
        "Way out: write the value out, or give it with an override on the command line.",
    ),
    "R111": (
        "a value depends on the environment",
        "The value comes from an environment variable, a file, the clock or chance: the text does not determine it.\n"
        "Way out: name the variable's value (--set NAME=value), or write the value out.",
    ),
    "R112": (
        "a function is called whose source is not at hand",
        "The module that defines the function can be neither found next to the configuration nor is the function one "
        "that ttx knows, so the value that it returns is not known.\n"
        "Way out: put the module beside the configuration, or write the value out.",
    ),
    "R113": (
        "code that is made while running is not evaluated",
        "exec, eval, compile, __import__, globals and their like can do anything; nothing of it is run, and what it "
        "would have changed is not known.\n"
        "Way out: state the configuration directly.",
    ),
    "R114": (
        "a name is not defined",
        "The name, attribute or default that is asked for is neither defined in what was read nor known.\n"
        "Way out: correct the spelling, or put the module that defines it beside the configuration.",
    ),
    "R115": (
        "a function that cannot be read may change the configuration",
        "A configuration object is handed to a function whose source is not at hand. It is read as if the function "
        "left the object as it is.\n"
        "Way out: put the module beside the configuration, or make the change in the configuration function itself.",
    ),
    "R116": (
        "functions call each other without end",
        "The depth of calls passed the limit; a function that calls itself under no condition never returns.\n"
        "Way out: break the cycle.",
    ),
    "R117": (
        "evaluation takes too long",
        "The configuration was given up after too many steps, or too much time, or too large a value.\n"
        "Way out: state lists and numbers directly instead of computing them in long loops.",
    ),
    "R118": (
        "the file is too large or too deeply nested to be read",
        "A configuration module is a few hundred lines. Files beyond the limits are refused before they are parsed.\n"
        "Way out: move the configuration function to a module of its own.",
    ),
    "R119": (
        "the function raises an error",
        "On the way that is taken with the values at hand, the function ends in raise or in an assertion that fails.\n"
        "Way out: see the message of the error.",
    ),
    "R120": (
        "a star import cannot be followed",
        "The module of a star import is not at hand, so any name may come from it.\n"
        "Way out: import the names one by one, or put the module beside the configuration.",
    ),
    "R121": (
        "a decorator is not evaluated",
        "The decorated function or class is read as it is written; what the decorator makes of it is not known.\n"
        "Way out: check whether the decorator changes what the function returns.",
    ),
    "R122": (
        "generators and coroutines are not evaluated",
        "A function with yield or await, or an async function, gives its values while running.\n"
        "Way out: return a list.",
    ),
    "R123": (
        "a function changes a global name",
        "What a global name holds then depends on which functions ran before; it is read with the changes that this "
        "one function makes.\n"
        "Way out: pass the value as an argument.",
    ),
    "R124": (
        "a condition is not known",
        "Both branches were read. Where they leave the same value it is taken, where they differ the value is open.\n"
        "Way out: write the condition's value out.",
    ),
    "R125": (
        "an operation fails",
        "With the values at hand Python would raise here: a missing key, a wrong type, a division by zero, an argument "
        "that the function does not take.\n"
        "Way out: correct the expression.",
    ),
}

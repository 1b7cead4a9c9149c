"""Which environment variables of a launch belong to the configuration, and travel with it."""

from __future__ import annotations

# What a name says of a variable: a secret never travels, and places and names of one machine mean nothing on another.
SECRET_PARTS = ("API_KEY", "APIKEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "ACCESS_KEY", "PRIVATE_KEY")
LOCAL_NAMES = frozenset(
    {
        "PATH",
        "PYTHONPATH",
        "LD_LIBRARY_PATH",
        "LD_PRELOAD",
        "LIBRARY_PATH",
        "HOME",
        "USER",
        "PWD",
        "HOSTNAME",
        "MASTER_ADDR",
        "MASTER_PORT",
        "NODE_RANK",
        "RANK",
        "LOCAL_RANK",
        "WORLD_SIZE",
        "CUDA_VISIBLE_DEVICES",
        "CUDA_HOME",
        "TMPDIR",
    }
)


def is_secret(name: str) -> bool:
    """Whether a variable looks like a secret by its name; ``TOKENIZERS_PARALLELISM`` does not."""
    upper = name.upper()
    return any(part in upper for part in SECRET_PARTS) and not upper.startswith("TOKENIZERS_")


def travels(name: str) -> bool:
    """Whether a variable belongs to the configuration: no secret, and nothing of one machine or one user."""
    return not is_secret(name) and name not in LOCAL_NAMES and not name.startswith(("SLURM_", "OMPI_", "PMI_"))

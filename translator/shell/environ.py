"""Variables that a script finds set: by the machine for certain, by a scheduler or launcher perhaps."""

from __future__ import annotations

MACHINE = frozenset(
    {
        "HOME", "USER", "LOGNAME", "HOSTNAME", "PWD", "OLDPWD", "SHELL", "PATH", "UID", "EUID", "GROUPS", "PPID",
        "RANDOM", "SRANDOM", "SECONDS", "EPOCHSECONDS", "EPOCHREALTIME", "BASHPID", "BASH", "BASH_VERSION",
        "HOSTTYPE", "MACHTYPE", "OSTYPE", "SHLVL", "TERM", "LINENO",
    }
)  # fmt: skip
"""Set on every machine, to values that the text does not hold."""

_LAUNCHER = frozenset(
    {
        "MASTER_ADDR", "MASTER_PORT", "NODE_RANK", "GROUP_RANK", "RANK", "WORLD_SIZE", "LOCAL_RANK",
        "LOCAL_WORLD_SIZE", "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES",
    }
)  # fmt: skip
_LAUNCHER_PREFIXES = ("SLURM_", "SLURMD_", "OMPI_", "PMI_", "PMIX_", "PBS_", "LSB_", "KUBERNETES_", "PET_", "MLP_",
                      "ARNOLD_", "VC_", "SM_", "BATCH_")  # fmt: skip


def from_machine(name: str) -> bool:
    """True for a variable that is always set."""
    return name in MACHINE


def from_launcher(name: str) -> bool:
    """True for a variable that a scheduler or an outer launcher sets when there is one."""
    return name in _LAUNCHER or name.startswith(_LAUNCHER_PREFIXES)

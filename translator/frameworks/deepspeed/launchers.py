"""The launchers that DeepSpeed and accelerate bring, as rows of `translator.shell.launchers`."""

from __future__ import annotations

from dataclasses import replace

from translator.shell.launchers import SCRIPT, Launcher, roles

# ``deepspeed/launcher/runner.py:48`` at 0.19.2; without a number of nodes the hostfile tells (``:446``).
_DEEPSPEED = Launcher(
    takes=SCRIPT,
    flags=frozenset({"--force_multi", "--no_ssh", "--no_ssh_check", "--no_local_rank", "--save_pid",
                     "--enable_each_rank_log", "--elastic_training", "--bind_cores_to_rank", "-h", "--help"}),
    roles=roles(nodes="--num_nodes", per_node="--num_gpus --num_accelerators"),
    module=frozenset({"--module", "-m"}),
    bare=frozenset({"--no_python"}),
    once_per_node=True,
    hosts=True,
)  # fmt: skip
# ``python -m accelerate.commands.launch`` is the same program without its subcommand.
_ACCELERATE_MODULE = Launcher(
    takes=SCRIPT,
    flags=frozenset({
        "--multi_gpu", "--multi-gpu", "--cpu", "--tpu", "--use_deepspeed", "--use_fsdp", "--use_megatron_lm",
        "--same_network", "--quiet", "-q", "--debug", "--use_xpu", "--mps", "--ipex",
    }),
    roles=roles(nodes="--num_machines", tasks="--num_processes"),
    module=frozenset({"-m", "--module"}),
    bare=frozenset({"--no_python"}),
    once_per_node=True,
)  # fmt: skip
LAUNCHERS = {
    "deepspeed": _DEEPSPEED,
    "deepspeed.launcher.runner": _DEEPSPEED,
    "accelerate": replace(_ACCELERATE_MODULE, subcommands=frozenset({"launch"})),
    "accelerate.commands.launch": _ACCELERATE_MODULE,
}

"""What is known about the programs that start other programs: their options and what these say. Data only.

A launcher that comes with a framework is described there, and handed to `translator.shell.evaluate`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

SCRIPT = "script"
"""The launcher takes a Python file, or a module after ``-m``."""
COMMAND = "command"
"""The launcher takes a whole command."""


@dataclass(frozen=True, slots=True)
class Launcher:
    """One launcher.

    ``flags`` are options without a value; every other option takes one unless ``greedy`` is False, when only those
    in ``valued`` do. ``roles`` says what an option's value means: ``nodes``, ``per_node`` (processes per node),
    ``tasks`` (processes in all), ``env`` (NAME=value pairs), ``gpus_per_node``. ``skip`` operands stand before the
    command. ``module`` and ``bare`` are the options for ``-m`` and "run this as it is".
    ``shown`` is the usual name of a program that has several.
    ``joins`` launchers hand their words, joined by spaces, to another shell.
    ``once_per_node`` launchers start their processes themselves: an outer launcher's task count does not multiply.
    Without a number of nodes such a launcher runs on one, unless ``hosts`` says that a list of hosts tells.
    """

    takes: str = COMMAND
    flags: frozenset[str] = frozenset()
    valued: frozenset[str] = frozenset()
    greedy: bool = True
    roles: dict[str, str] = field(default_factory=dict)
    skip: int = 0
    subcommands: frozenset[str] = frozenset()
    module: frozenset[str] = frozenset()
    bare: frozenset[str] = frozenset()
    assignments: bool = False
    once_per_node: bool = False
    hosts: bool = False
    defaults: dict[str, int] = field(default_factory=dict)
    until_separator: bool = False
    joins: bool = False
    shown: str = ""


def roles(**names: str) -> dict[str, str]:
    """Option -> role, from the options of each role."""
    return {flag: role for role, flags in names.items() for flag in flags.split()}


_ELASTIC = Launcher(
    takes=SCRIPT,
    flags=frozenset({"--standalone", "--use_env", "--use-env", "--run_path", "--run-path", "--virtual_local_rank",
                     "-h", "--help"}),
    roles=roles(nodes="--nnodes", per_node="--nproc_per_node --nproc-per-node"),
    module=frozenset({"-m", "--module"}),
    bare=frozenset({"--no_python", "--no-python"}),
    once_per_node=True,
    defaults={"nodes": 1, "per_node": 1},
)  # fmt: skip

_SRUN_ROLES = roles(
    nodes="-N --nodes",
    tasks="-n --ntasks",
    per_node="--ntasks-per-node",
    gpus_per_node="--gpus-per-node --gres",
    env="--export",
)

_MPI_ROLES = roles(tasks="-np -n --np -c", per_node="-npernode --npernode -ppn --ppn -N", env="-x -genv -env")

LAUNCHERS: dict[str, Launcher] = {
    "torchrun": _ELASTIC,
    "torch.distributed.run": replace(_ELASTIC, shown="torchrun"),
    "torch.distributed.launch": _ELASTIC,
    "srun": Launcher(
        flags=frozenset({
            "-E", "-H", "-I", "-K", "-O", "-Q", "-X", "-Z", "-b", "-k", "-l", "-s", "-u", "-v", "-vv", "-vvv",
            "--label", "--unbuffered", "--kill-on-bad-exit", "--overlap", "--overcommit", "--oversubscribe", "--pty",
            "--exclusive", "--quiet", "--verbose", "--no-kill", "--contiguous", "--disable-status", "--hold",
            "--immediate", "--multi-prog", "--no-allocate", "--preserve-env", "--spread-job", "--test-only",
            "--use-min-nodes", "--whole", "--exact", "--no-container-mount-home", "--container-mount-home",
            "--container-writable", "--container-remap-root", "--no-container-remap-root",
            "--container-entrypoint", "--no-container-entrypoint",
        }),
        roles=_SRUN_ROLES,
    ),
    "mpirun": Launcher(
        valued=frozenset({
            "-np", "-n", "--np", "-c", "-npernode", "--npernode", "-ppn", "--ppn", "-N", "-x", "-genv", "-env", "-H",
            "--host", "-host", "--hostfile", "-hostfile", "-f", "-machinefile", "--machinefile", "--map-by", "-map-by",
            "--bind-to", "-bind-to", "--rank-by", "-wdir", "--wdir", "--prefix", "--output-filename", "--timeout",
            "--mca", "-mca", "--report-bindings-to", "-hosts", "--rankfile", "-rf", "--launcher",
        }),
        greedy=False,
        roles=_MPI_ROLES,
    ),
    "numactl": Launcher(
        valued=frozenset({"-N", "-m", "-C", "-i", "-p", "-w"}),
        greedy=False,
    ),
    "nsys": Launcher(
        subcommands=frozenset({"profile", "launch", "start"}),
        valued=frozenset({"-s", "-t", "-o", "-f", "-x", "-w", "-c", "-b", "-d", "-y", "-e", "-n", "-q"}),
        greedy=False,
    ),
    "ncu": Launcher(valued=frozenset({"-o", "-k", "-c", "-s"}), greedy=False),
    "rocprof": Launcher(valued=frozenset({"-o", "-i", "-d"}), greedy=False),
    "rocprofv3": Launcher(until_separator=True, valued=frozenset({"-o", "-d", "-i"}), greedy=False),
    "env": Launcher(assignments=True, valued=frozenset({"-u", "--unset", "-C", "--chdir", "-S"}), greedy=False),
    "exec": Launcher(valued=frozenset({"-a"}), greedy=False),
    "command": Launcher(greedy=False),
    "builtin": Launcher(greedy=False),
    "nohup": Launcher(greedy=False),
    "setsid": Launcher(greedy=False),
    "time": Launcher(valued=frozenset({"-f", "-o"}), greedy=False),
    "nice": Launcher(valued=frozenset({"-n"}), greedy=False),
    "ionice": Launcher(valued=frozenset({"-c", "-n"}), greedy=False),
    "stdbuf": Launcher(valued=frozenset({"-i", "-o", "-e"}), greedy=False),
    "taskset": Launcher(skip=1, greedy=False),
    "chrt": Launcher(skip=1, greedy=False),
    "timeout": Launcher(skip=1, valued=frozenset({"-k", "-s", "--kill-after", "--signal"}), greedy=False),
    "sudo": Launcher(assignments=True, valued=frozenset({"-u", "-g", "-C", "-h", "-p"}), greedy=False),
    "ssh": Launcher(skip=1, valued=frozenset({"-p", "-i", "-o", "-l", "-F", "-b", "-c", "-E", "-J", "-L", "-R", "-S"}),
                    greedy=False, joins=True),
    "pdsh": Launcher(valued=frozenset({"-w", "-x", "-g", "-X", "-R", "-l", "-f", "-t", "-u", "-P"}), greedy=False,
                     joins=True),
    "clush": Launcher(valued=frozenset({"-w", "-x", "-g", "-X", "-l", "-f", "-t", "-u", "-o"}), greedy=False,
                      joins=True),
    "kubectl": Launcher(subcommands=frozenset({"exec", "run"}), until_separator=True, greedy=False,
                        valued=frozenset({"-c", "--container", "-n", "--namespace", "--image", "--context"})),
    "ray": Launcher(subcommands=frozenset({"submit"}), until_separator=True, joins=True,
                    flags=frozenset({"--no-wait", "--verify", "--no-format"})),
    "salloc": Launcher(roles=_SRUN_ROLES, flags=frozenset({"-I", "-K", "-O", "-Q", "-k", "-s", "-v", "--exclusive",
                       "--overcommit", "--oversubscribe", "--quiet", "--verbose", "--no-shell"})),
    "aprun": Launcher(valued=frozenset({"-n", "-N", "-d", "-j", "-S", "-cc", "-e", "-L"}), greedy=False,
                      roles=roles(tasks="-n", per_node="-N", env="-e")),
    "screen": Launcher(valued=frozenset({"-S", "-dmS", "-dmLS", "-h", "-s", "-t", "-Logfile"}), greedy=False),
    "tmux": Launcher(subcommands=frozenset({"new-session", "new"}), joins=True, greedy=False,
                     valued=frozenset({"-s", "-n", "-c", "-x", "-y", "-t", "-e", "-F"})),
    "singularity": Launcher(
        subcommands=frozenset({"exec", "run"}),
        skip=1,
        valued=frozenset({"-B", "--bind", "--env", "--env-file", "--pwd", "-H", "--home", "-W", "--workdir",
                          "--overlay", "-S", "--scratch", "--mount"}),
        greedy=False,
        roles={"--env": "env"},
    ),
    "docker": Launcher(
        subcommands=frozenset({"exec", "run"}),
        skip=1,
        flags=frozenset({"-d", "-i", "-t", "-it", "-ti", "-dit", "-itd", "-id", "-td", "--rm", "--privileged",
                         "--detach", "--interactive", "--tty", "--init", "-P", "--read-only"}),
        roles=roles(env="-e --env"),
    ),
    "uv": Launcher(subcommands=frozenset({"run"}), valued=frozenset({"--with", "--python", "-p", "--project",
                   "--extra", "--group", "--env-file", "--directory"}), greedy=False),
    "poetry": Launcher(subcommands=frozenset({"run"}), greedy=False),
    "conda": Launcher(subcommands=frozenset({"run"}), valued=frozenset({"-n", "-p", "--name", "--prefix"}),
                      greedy=False),
}  # fmt: skip
"""Launchers that belong to no framework, by the last component of their path, or by module for ``python -m``."""

LAUNCHERS["mpiexec"] = LAUNCHERS["mpiexec.hydra"] = LAUNCHERS["orterun"] = LAUNCHERS["mpirun"]
LAUNCHERS["parallel-ssh"] = LAUNCHERS["pssh"] = Launcher(
    valued=frozenset({"-h", "-H", "-l", "-p", "-t", "-o", "-e", "-x", "-O"}), greedy=False, joins=True
)
LAUNCHERS["apptainer"] = LAUNCHERS["singularity"]
LAUNCHERS["podman"] = LAUNCHERS["docker"]
TWO_VALUES = frozenset({"--mca", "-mca", "-genv", "-env"})
"""Options that take two words."""

PYTHON_FLAGS_WITH_VALUE = frozenset({"-W", "-X", "--check-hash-based-pycs"})
NOT_TRAINING_MODULES = frozenset({"pip", "venv", "ensurepip", "json.tool", "http.server", "site", "zipfile", "timeit"})
"""Modules run by ``python -m`` that are never a training program."""
BATCH = frozenset({"sbatch"})
"""Submits a script: a file, or standard input."""
SHELLS = frozenset({"bash", "sh", "dash", "zsh", "ksh"})

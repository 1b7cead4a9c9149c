"""What a reading says beyond the words: places, unknowns, findings, launchers, world size, files."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from translator import frameworks
from translator.errors import SourceError
from translator.shell import Launch, ScriptReading, evaluate, split_words
from translator.shell.codes import CODES


def read(text: str, *positional: str, files: Mapping[str, str] | None = None, **variables: str) -> ScriptReading:
    return evaluate(
        text,
        "run.sh",
        positional=positional,
        variables=variables,
        read_sibling=dict(files or {}).get,
        launchers=frameworks.launchers(),
    )


def only(text: str, *positional: str, **variables: str) -> Launch:
    (launch,) = read(text, *positional, **variables).launches
    return launch


def words(launch: Launch) -> list[str]:
    return [word.text for word in launch.argv]


def codes(reading: ScriptReading) -> set[str]:
    return {finding.code for finding in reading.findings}


# -- places


def test_a_word_points_to_where_it_was_written() -> None:
    text = (
        "ARGS=(\n  --lr 1e-4\n  --name 'é x'  --after\n)\nOPTS=\" --tp 2 \\\n  --pp 4\"\npython t.py ${ARGS[@]} $OPTS\n"
    )
    places = {word.text: (word.place.line, word.place.column) for word in only(text).argv}
    assert places == {
        "--lr": (2, 3),
        "1e-4": (2, 8),
        "--name": (3, 3),
        "é": (3, 11),
        "x": (3, 13),
        "--after": (3, 17),
        "--tp": (5, 8),
        "2": (5, 13),
        "--pp": (6, 3),
        "4": (6, 8),
    }


def test_a_word_of_an_evaluated_string_points_to_the_string() -> None:
    launch = only('TP=8\nCMD="python t.py --tp $TP"\neval $CMD --last\n')
    assert [(w.text, w.place.line, w.place.column) for w in launch.argv] == [
        ("--tp", 2, 18),
        ("8", 1, 4),
        ("--last", 3, 11),
    ]
    assert (launch.place.line, launch.place.column) == (2, 6)


def test_a_sourced_file_gives_its_own_name() -> None:
    reading = read("source conf/a.sh\npython t.py $X\n", files={"conf/a.sh": "\nX=--from-a\n"})
    assert str(reading.launches[0].argv[0].place) == "conf/a.sh:2:3"


def test_a_file_beside_the_script_is_found_through_its_unknown_folder() -> None:
    text = 'HERE="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"\nsource "$HERE/conf/a.sh"\npython t.py $X\n'
    assert words(read(text, files={"conf/a.sh": "X=1"}).launches[0]) == ["1"]


# -- unknowns


@pytest.mark.parametrize(
    ("text", "expression", "name"),
    [
        ("python t.py $SLURM_JOB_ID", "$SLURM_JOB_ID", "SLURM_JOB_ID"),
        ("python t.py ${HOSTNAME}", "${HOSTNAME}", "HOSTNAME"),
        ("python t.py $(hostname -f)", "$(hostname -f)", None),
        ("python t.py `date +%s`", "`date +%s`", None),
        ("N=$(nproc)\npython t.py $N", "$(nproc)", "N"),
        ("python t.py $((SLURM_NNODES * 8))", "$((SLURM_NNODES * 8))", "SLURM_NNODES"),
        ("python t.py ${USER%x}", "${USER%x}", "USER"),
        ("read -r N\npython t.py $N", "$N", "N"),
        ("python t.py ~", "~", "HOME"),
        ("N=<number of layers>\npython t.py $N", "<number of layers>", "N"),
    ],
)
def test_an_unknown_keeps_its_expression_and_name(text: str, expression: str, name: str | None) -> None:
    (word,) = only(text).argv
    assert word.text == expression
    (unknown,) = word.unknowns
    assert (unknown.expression, unknown.name) == (expression, name)


def test_an_unknown_stays_inside_its_word() -> None:
    (word,) = only("python t.py --dir=/data/$USER/run-$SLURM_JOB_ID").argv
    assert word.text == "--dir=/data/$USER/run-$SLURM_JOB_ID"
    assert [unknown.name for unknown in word.unknowns] == ["USER", "SLURM_JOB_ID"]


def test_what_the_user_passes_settles_an_unknown() -> None:
    assert words(only("N=$(nproc)\npython t.py $N", N="16")) == ["16"]
    assert words(only("python t.py $SLURM_NNODES", SLURM_NNODES="4")) == ["4"]


def test_a_scheduler_variable_counts_as_unset_for_defaults_only() -> None:
    assert words(only("python t.py ${MASTER_ADDR:-localhost} ${SLURM_NNODES:-1}")) == ["localhost", "1"]
    assert words(only('[ -z "$RANK" ] && R=unset\npython t.py $R')) == ["unset"]


def test_an_unknown_does_not_become_code_in_an_evaluated_string() -> None:
    launch = only('X=$(get options)\nY=<a b>\nCMD="python t.py --x $X --y $Y"\neval "$CMD"\nbash -c "true"')
    assert words(launch) == ["--x", "$(get options)", "--y", "<a b>"]
    assert [len(word.unknowns) for word in launch.argv] == [0, 1, 0, 1]


# -- unknown conditions


def test_both_branches_of_an_unknown_condition_are_read() -> None:
    reading = read("A=(--x)\nif [ -f data ]; then A+=(--y 1); B=2; else B=3; fi\npython t.py ${A[@]} $B $C --z")
    (launch,) = reading.launches
    assert words(launch) == ["--x", "${A[@]}", "$B", "--z"]
    assert "'2' or '3'" in launch.argv[2].unknowns[0].reason
    assert "R063" in codes(reading)


def test_the_condition_variable_is_named() -> None:
    launch = only('if [ "$(hostname)" = a ] || [ "$SLURM_NNODES" -gt 4 ]; then TP=8; else TP=4; fi\npython t.py $TP')
    launch = only('if [ "$SLURM_NNODES" -gt 4 ]; then TP=8; else TP=4; fi\npython t.py $TP')
    assert launch.argv[0].unknowns[0].name == "SLURM_NNODES"


def test_launches_of_both_branches_are_listed() -> None:
    reading = read("if [ -d x ]; then python a.py; else python b.py; fi\npython c.py")
    assert [launch.program.text for launch in reading.launches] == ["a.py", "b.py", "c.py"]
    assert any(f.code == "R063" and f.level == "warning" for f in reading.findings)


def test_a_branch_that_exits_does_not_count() -> None:
    reading = read("TP=2\nif [ ! -f t.py ]; then TP=9; exit 1; fi\npython t.py --tp $TP")
    assert words(reading.launches[0]) == ["--tp", "2"]
    assert not reading.findings


def test_a_return_that_may_happen_is_merged_at_the_end_of_the_function() -> None:
    launch = only("f() { X=1; if [ -f y ]; then X=2; return; fi; Z=3; }\nf\npython t.py $X $Z")
    assert words(launch) == ["$X", "$Z"]


# -- findings


def test_an_unset_variable_is_said_with_its_option() -> None:
    reading = read("D=$1\npython t.py --data $D --lr 1 --tag $TAG")
    assert words(reading.launches[0]) == ["--data", "--lr", "1", "--tag"]
    messages = {f.option: f for f in reading.findings if f.code == "R061"}
    assert set(messages) == {"--data", "--tag"}
    assert "--args" in messages["--data"].fix
    assert "--set TAG=" in messages["--tag"].fix
    assert messages["--data"].place is not None
    assert messages["--data"].place.line == 1


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ('O="--data $X --hidden 8"\npython t.py $O', "after --data"),
        ("A=(--lr 1 $X --bf16)\npython t.py ${A[@]}", "after --lr 1"),
        ("python t.py --load=$X --bf16", "in --load="),
        ("python t.py --save $X/last --bf16", "in --save /last"),
    ],
)
def test_an_unset_variable_is_said_where_it_vanishes(text: str, where: str) -> None:
    message = f"X is not set and expands to nothing {where}"
    assert [f.message for f in read(text).findings if f.code == "R061"] == [message]


def test_what_a_launch_depends_on_is_named() -> None:
    reading = read("X=$(date)\nif [ $X = 1 ]; then\npython t.py\nfi\n")
    (finding,) = [f for f in reading.findings if f.code == "R063"]
    assert finding.message == "it is not known whether this runs: it depends on $X, $(date)"
    assert finding.fix == "pass --set X=value"


def test_a_placeholder_that_was_cut_into_words_is_one_value() -> None:
    reading = read('W="<some dir>"\npython t.py --load $W/last-$(date) --save $W $W --lr 1')
    assert words(reading.launches[0]) == [
        "--load", "<some dir>/last-$(date)", "--save", "<some dir>", "<some dir>", "--lr", "1"
    ]  # fmt: skip
    assert [[u.expression for u in word.unknowns] for word in reading.launches[0].argv[1:4:2]] == [
        ["<some dir>", "$(date)"], ["<some dir>"]
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["A='a <b c>'\npython t.py $A", "A='<b --c>'\npython t.py $A", 'python t.py "<b c>"'])
def test_only_what_begins_and_ends_as_a_placeholder_is_one(text: str) -> None:
    codes_of = codes(read(text))
    assert ("R071" in codes_of) == text.startswith("A='a <")


def test_arithmetic_names_all_that_is_not_set() -> None:
    (finding,) = [f for f in read("X=$(( $2 - ${13} / $GAS ))\npython t.py").findings if f.code == "R066"]
    assert finding.message.endswith("GAS and positional parameters 2 and 13 are not set")
    assert finding.fix == "pass --set GAS=value and parameters 2 and 13 with --args"


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("true\nif [ 1 = 1 ]; then\npython t.py\n", "R060", 4),
        ("true\npython t.py $X", "R061", 2),
        ("A=(\"--split '1,2'\")\npython t.py ${A[@]}", "R062", 1),
        ("source missing.sh", "R064", 1),
        ("while true; do :; done", "R065", 1),
        ("true\nX=$((1/0))\npython t.py $X", "R066", 2),
        ("true\n[ -z $1 ] && exit 1\npython t.py", "R067", 2),
        ("true\npython t.py ${D:?set it}", "R068", 2),
        ('eval "$(conda shell.bash hook)"', "R069", 1),
        ("python t.py --a \r\npython u.py\r\n", "R070", 1),
        ("CKPT=<your path>\npython t.py $CKPT", "R071", 1),
        ('true\nCKPT="<your path>"\npython t.py --load $CKPT/last', "R071", 2),
    ],
)
def test_each_finding_has_its_place(text: str, code: str, line: int) -> None:
    found = [f for f in read(text).findings if f.code == code]
    assert found, read(text).findings
    assert found[0].place is not None
    assert found[0].place.line == line


def test_a_space_after_the_backslash_is_said() -> None:
    reading = read("python t.py --a 1 \\ \n  --b 2\n")
    assert [f.place.line for f in reading.findings if f.code == "R072" and f.place] == [1]
    assert words(reading.launches[0]) == ["--a", "1", " "]


def test_every_code_is_documented() -> None:
    assert all(code.startswith("R0") and 60 <= int(code[1:]) <= 89 for code in CODES)
    assert all(c.meaning and c.explanation and c.example and c.fix for c in CODES.values())


def test_syntax_errors_do_not_hide_the_rest() -> None:
    reading = read("A=1\nfi\nB=2 )\npython t.py --a $A\n")
    assert "R060" in codes(reading)
    assert words(reading.launches[0]) == ["--a", "1"]


# -- launchers


@pytest.mark.parametrize(
    ("command", "launcher", "nodes", "per_node", "world"),
    [
        ("torchrun --nproc_per_node 8 --nnodes=4 t.py", "torchrun", 4, 8, 32),
        ("torchrun --nproc-per-node=8 t.py", "torchrun", 1, 8, 8),
        ("torchrun t.py", "torchrun", 1, 1, 1),
        ("python3 -u -m torch.distributed.run --nnodes 2:2 --nproc_per_node 4 t.py", "torchrun", 2, 4, 8),
        ("python -m torch.distributed.launch --nproc_per_node 4 t.py", "torch.distributed.launch", 1, 4, 4),
        ("srun -N 4 --ntasks-per-node=8 python -u t.py", "srun python", 4, 8, 32),
        ("srun -n16 -N2 -l t.py", "srun", 2, 8, 16),
        ("srun -N4 --ntasks-per-node=1 torchrun --nproc_per_node 8 --nnodes 4 t.py", "srun torchrun", 4, 8, 32),
        ("deepspeed --num_gpus=8 --num_nodes 2 t.py", "deepspeed", 2, 8, 16),
        ("deepspeed --hostfile h t.py", "deepspeed", None, None, None),
        ("accelerate launch --num_processes 16 --num_machines 2 t.py", "accelerate", 2, 8, 16),
        ("mpirun -np 32 -npernode 8 -x A=1 python t.py", "mpirun python", 4, 8, 32),
        ("numactl --membind=0-3 nsys profile -o f python t.py", "numactl nsys python", None, None, None),
        ("WORLD_SIZE=8 python t.py", "python", None, None, 8),
        ("sudo -u me env A=1 timeout -k 5 1h nohup python t.py", "sudo env timeout nohup python", None, None, None),
        ("singularity exec --nv -B /d image.sif torchrun --nproc_per_node 4 t.py", "singularity torchrun", 1, 4, 4),
        ("docker run --rm -it -v a:b --gpus all -e A=1 img torchrun t.py", "docker torchrun", 1, 1, 1),
        ("time torchrun --standalone --nproc_per_node 2 t.py", "time torchrun", 1, 2, 2),
    ],
)
def test_launchers_and_world_size(
    command: str, launcher: str, nodes: int | None, per_node: int | None, world: int | None
) -> None:
    launch = only(command + " --x 1")
    assert (launch.launcher, launch.nnodes, launch.nproc_per_node, launch.world_size) == (
        launcher,
        nodes,
        per_node,
        world,
    )
    assert launch.program.text == "t.py"
    assert words(launch) == ["--x", "1"]


@pytest.mark.parametrize("count", ["auto", "gpu", "$SLURM_GPUS_ON_NODE", "$(nvidia-smi -L | wc -l)"])
def test_an_unknown_number_of_processes_is_a_word(count: str) -> None:
    launch = only(f"torchrun --nnodes 2 --nproc_per_node {count} t.py")
    assert launch.world_size is None
    assert not isinstance(launch.nproc_per_node, int)
    assert launch.nproc_per_node is not None
    assert launch.nproc_per_node.text == count


def test_modules_and_unknown_launch_options() -> None:
    launch = only("torchrun --nproc_per_node=8 -m torchtitan.train --x")
    assert (launch.module, launch.program.text, words(launch)) == ("torchtitan.train", "torchtitan.train", ["--x"])
    launch = only("torchrun $(make_args) pretrain.py --x")
    assert (launch.program.text, words(launch)) == ("pretrain.py", ["--x"])


def test_helper_programs_do_not_hide_the_launch() -> None:
    text = "pip install x\npython -c 'print(1)'\npython -m pip list\npython prep.py | tee l\nX=$(python get.py)\n"
    text += "python t.py\n"
    assert [launch.program.text for launch in read(text).launches] == ["prep.py", "t.py"]


def test_batch_directives_give_nodes_and_world_size() -> None:
    text = """#!/bin/bash
#SBATCH --nodes=16
#SBATCH --ntasks-per-node=4   # one per GPU
#SBATCH --gres=gpu:a100:4
srun python t.py --tp $SLURM_GPUS_ON_NODE --n $SLURM_NNODES --w $SLURM_NTASKS --job $SLURM_JOB_ID
"""
    launch = only(text)
    assert words(launch) == ["--tp", "4", "--n", "16", "--w", "64", "--job", "$SLURM_JOB_ID"]
    assert (launch.nnodes, launch.nproc_per_node, launch.world_size) == (16, 4, 64)
    assert launch.argv[1].place.line == 4


def test_a_submitted_heredoc_is_read_as_a_script() -> None:
    text = (
        "TP=4\nsbatch <<EOF\n#!/bin/bash\n#SBATCH -N 2\n#SBATCH --ntasks-per-node=8\nsrun python t.py --tp $TP\nEOF\n"
    )
    launch = only(text)
    assert (words(launch), launch.world_size) == (["--tp", "4"], 16)


def test_environment_at_the_launch() -> None:
    launch = only("export A=1\nB=2\nexport C=$B\nD=4 srun --export=ALL,E=5 env F=6 python t.py")
    assert {name: word.text for name, word in launch.env.items()} == {
        "A": "1",
        "C": "2",
        "D": "4",
        "E": "5",
        "F": "6",
    }


def test_written_files() -> None:
    reading = read("B=4\ncat <<EOF > ds.json\n{\"b\": $B}\nEOF\necho '{}' > e.json\necho log >> f.log\npython t.py\n")
    assert [(f.path.text, f.body.text) for f in reading.heredocs] == [("ds.json", '{"b": 4}\n'), ("e.json", "{}\n")]
    assert reading.heredocs[0].body.place.line == 3


def test_final_variables() -> None:
    assert {k: w.text for k, w in read("A=1\nB=($A 2)\nunset C").variables.items()} == {"A": "1", "B": "1"}


# -- plain arguments


def test_plain_arguments() -> None:
    text = "--a 1 --b 'two words' # note\n  --c \\\n \"x $Y\" {1,2}\n"
    result = split_words(text, "args.txt")
    assert [w.text for w in result] == ["--a", "1", "--b", "two words", "--c", "x $Y", "1", "2"]
    assert result[5].unknowns[0].name == "Y"
    assert (result[4].place.line, result[4].place.column) == (2, 3)


def test_too_many_plain_arguments() -> None:
    with pytest.raises(SourceError):
        split_words("x " * 100_000, "args.txt")


@pytest.mark.parametrize(
    ("text", "world"),
    [
        ("ssh -p 22 node1 'cd /w && torchrun --nproc_per_node 8 --nnodes 2 train.py --lr 1'", 16),
        ("ssh node1 cd /w '&&' torchrun --nproc_per_node 8 train.py --lr 1", 8),
        ('pdsh -w "node[1-4]" "cd /w; torchrun --nproc_per_node 8 --nnodes 4 train.py --lr 1"', 32),
        ("ray job submit --address=http://x:1 --no-wait -- torchrun --nproc_per_node 4 train.py --lr 1", 4),
        ("kubectl exec -it pod-0 -c main -- bash -c 'torchrun --nproc_per_node 8 train.py --lr 1'", 8),
        ("kubectl -n ml exec pod-0 -- torchrun --nproc_per_node 8 train.py --lr 1", 8),
        ("sbatch -N 2 --ntasks-per-node=8 --wrap 'srun python train.py --lr 1'", 16),
        ('sbatch -N 2 --wrap="torchrun --nnodes 2 --nproc_per_node 8 train.py --lr 1"', 16),
        ("salloc -N 2 srun --ntasks-per-node 8 python train.py --lr 1", 16),
        ("tmux new-session -d -s run 'torchrun --nproc_per_node 8 train.py --lr 1'", 8),
        ("screen -dmS run torchrun --nproc_per_node 8 train.py --lr 1", 8),
        ("aprun -n 16 -N 8 python train.py --lr 1", 16),
    ],
)
def test_programs_that_start_the_launch_elsewhere(text: str, world: int) -> None:
    launch = only(text)
    assert launch.program.text == "train.py"
    assert words(launch) == ["--lr", "1"]
    assert launch.world_size == world


def test_a_script_that_the_script_writes_is_read_when_it_is_called() -> None:
    text = """
cat > inner.sh <<'EOF'
#!/bin/bash
torchrun --nproc_per_node 8 train.py --lr $1
EOF
echo 'echo done' >> inner.sh
chmod +x inner.sh
srun -N 2 bash ./inner.sh 3e-4
"""
    launch = only(text)
    assert words(launch) == ["--lr", "3e-4"]
    assert launch.argv[1].place.line == 8
    assert launch.world_size == 8


def test_what_sbatch_is_asked_for_counts_before_the_script_that_was_written() -> None:
    text = """
cat > job.sh <<EOF
#SBATCH -N 2
#SBATCH --ntasks-per-node=4
srun python train.py --nodes \\$SLURM_NNODES
EOF
sbatch -N 3 job.sh
"""
    launch = only(text)
    assert words(launch) == ["--nodes", "3"]
    assert launch.world_size == 12


@pytest.mark.parametrize(
    "text",
    [
        "echo 'torchrun train.py' > a.sh; nvidia-smi > a.sh; bash a.sh",
        "echo 'bash a.sh' > a.sh; bash a.sh",
        "nvidia-smi > a.sh; echo 'torchrun train.py' >> a.sh; bash a.sh",
    ],
)
def test_a_file_of_another_program_is_not_made_up(text: str) -> None:
    assert read(text).launches == ()

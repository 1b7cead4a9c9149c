"""The files of a written bundle agree with one another, as transformers and the launcher would compare them."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from translator import api
from translator.reading import ReadOptions

EXAMPLES = Path(__file__).resolve().parents[3] / "fixtures" / "examples"
CASES = sorted(path.parent.name for path in EXAMPLES.glob("*/case.yaml"))


def written(name: str, version: str) -> dict[str, str]:
    folder = EXAMPLES / name
    case = yaml.safe_load((folder / "case.yaml").read_text(encoding="utf-8"))
    keys = ("variables", "positional", "world_size", "launch", "model")
    options = ReadOptions(**{key: case[key] for key in keys if key in case})
    reading = api.read(str(folder / case["source"]), framework=case["framework"], options=options)
    return dict(api.convert(reading, f"deepspeed@{version}", nearest=True).rendered.files)


def value(document: dict[str, Any], path: str) -> Any:
    for key in path.split("."):
        document = document.get(key, {}) if isinstance(document, dict) else {}
    return None if document == {} else document


def apart(left: Any, right: Any) -> bool:
    """Whether two files state different things; what one leaves out is no difference, nor is "auto"."""
    if left is None or right is None or "auto" in (left, right):
        return False
    if isinstance(left, bool) or isinstance(right, bool) or isinstance(left, str) or isinstance(right, str):
        return bool(left != right)
    return not math.isclose(left, right, rel_tol=1e-9)


# The key of the JSON, and the trainer's argument that transformers compares it with or that says the same.
PAIRS = {
    "train_micro_batch_size_per_gpu": "per_device_train_batch_size",
    "gradient_accumulation_steps": "gradient_accumulation_steps",
    "gradient_clipping": "max_grad_norm",
    "optimizer.params.lr": "learning_rate",
    "optimizer.params.eps": "adam_epsilon",
    "optimizer.params.weight_decay": "weight_decay",
    "scheduler.params.warmup_max_lr": "learning_rate",
    "scheduler.params.warmup_num_steps": "warmup_steps",
    "scheduler.params.total_num_steps": "max_steps",
    "bf16.enabled": "bf16",
    "fp16.enabled": "fp16",
}


def disagreements(files: dict[str, str]) -> list[str]:
    """What the files of a bundle say differently."""
    config = json.loads(files["ds_config.json"])
    trainer = yaml.safe_load(files.get("training_args.yaml", "")) or {}
    model = json.loads(files.get("config.json", "{}"))
    found = [
        f"{key} {value(config, key)!r}, {name} {trainer[name]!r}"
        for key, name in PAIRS.items()
        if apart(value(config, key), trainer.get(name))
    ]
    stated = value(config, "optimizer.params.betas")
    betas = stated if isinstance(stated, list) else ["auto", "auto"]
    found += [
        f"betas {beta}, {name} {trainer[name]}"
        for beta, name in zip(betas, ("adam_beta1", "adam_beta2"), strict=True)
        if apart(beta, trainer.get(name))
    ]
    dtype = model.get("dtype", model.get("torch_dtype"))
    kinds = {"bfloat16": "bf16", "float16": "fp16"}
    if dtype in kinds and value(config, f"{kinds[dtype]}.enabled") is False:
        found.append(f"config.json has {dtype}, which ds_config.json turns off")
    return found + launched_apart(config, trainer, files["launch.sh"])


def launched_apart(config: dict[str, Any], trainer: dict[str, Any], launch: str) -> list[str]:
    """What the number of ranks of the launch script makes of the batch."""
    found: list[str] = []
    counts = [re.search(rf"--num_{name}[ =]+(\d+)", launch) for name in ("nodes", "gpus")]
    ranks = math.prod(int(count.group(1)) for count in counts if count)
    micro, steps, whole = (
        config.get(key) for key in ("train_micro_batch_size_per_gpu", "gradient_accumulation_steps", "train_batch_size")
    )
    if all(counts) and all(isinstance(number, int) for number in (micro, steps, whole)):
        ranks //= config.get("sequence_parallel_size", 1)
        if micro * steps * ranks != whole:
            found.append(f"{micro} times {steps} times {ranks} ranks is not {whole}")
    for text in (launch, json.dumps(trainer)):
        for hint in re.findall(r"world_size=(\d+)", text):
            nodes_gpus = math.prod(int(count.group(1)) for count in counts if count)
            if all(counts) and int(hint) != nodes_gpus:
                found.append(f"a world size of {hint} is noted, {nodes_gpus} ranks are launched")
    return found


@pytest.mark.parametrize("version", ["0.19.2", "0.19.8"])
@pytest.mark.parametrize("name", CASES)
def test_files_agree(name: str, version: str) -> None:
    assert disagreements(written(name, version)) == []


def test_a_disagreement_is_found() -> None:
    files = written("llama3-70b-megatron", "0.19.2")
    config = json.loads(files["ds_config.json"])
    config["optimizer"]["params"]["lr"] = 1.0
    config["train_batch_size"] += 1
    config["bf16"]["enabled"] = False
    found = disagreements(files | {"ds_config.json": json.dumps(config)})
    for part in ("optimizer.params.lr 1.0", "bf16.enabled False", "ranks is not"):
        assert any(part in item for item in found), found

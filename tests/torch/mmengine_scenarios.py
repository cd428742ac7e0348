"""What is asked of MMEngine's datasets and of these, word for word the same.

``python tests/torch/mmengine_scenarios.py`` in an environment that has mmengine 0.10
writes its answers to ``golden/mmengine_0.10.json``. Left out is what the interface says
to do differently (its section 9).
"""

from __future__ import annotations

import json
import logging
import tempfile
from pathlib import Path
from typing import Any, ClassVar

GOLDEN = Path(__file__).with_name("golden") / "mmengine_0.10.json"

SAMPLES: list[dict[str, Any]] = [
    {"img_path": f"{number}.jpg", "label": number % 3, "cats": cats}
    for number, cats in enumerate([[0], [0], [0], [0], [1], [], [0, 1, 1], [2]])
]
BUILT_IN = (
    AssertionError,
    FileNotFoundError,
    IndexError,
    KeyError,
    NotImplementedError,
    TypeError,
    ValueError,
    Exception,
)
METAINFO = {"classes": ["cat", "dog", "cow"], "task": "toy"}


def keep_even(info: dict[str, Any]) -> dict[str, Any] | None:
    """Drop the odd samples, as a pipeline does."""
    return info if info["sample_idx"] % 2 == 0 else None


def answers(library: Any, folder: Path) -> dict[str, Any]:
    """Ask a library, and give what JSON can hold.

    Parameters
    ----------
    library : object
        With ``BaseDataset``, the wrappers, ``Compose`` and ``pseudo_collate``.
    folder : path
        For annotation files.
    """
    annotations = folder / "train.json"
    content = {"metainfo": METAINFO, "data_list": SAMPLES}
    annotations.write_text(json.dumps(content), "utf-8")
    (folder / "names.txt").write_text("x\n y \n\nz", "utf-8")

    class Toy(library.BaseDataset):
        METAINFO: ClassVar[dict[str, Any]] = {"task": "class", "palette": [1, 2]}

        def get_cat_ids(self, idx: int) -> list[int]:
            return list(self.get_data_info(idx)["cats"])

    class Doubled(Toy):
        def parse_data_info(self, raw_data_info: dict[str, Any]) -> Any:
            info = super().parse_data_info(dict(raw_data_info))
            return [dict(info, half=half) for half in (0, 1)]

        def filter_data(self) -> list[dict[str, Any]]:
            least = (self.filter_cfg or {}).get("least", 0)
            return [info for info in self.data_list if info["label"] >= least]

    def toy(kind: Any = Toy, **options: Any) -> Any:
        options = {"data_prefix": {"img_path": "p"}, "data_root": "r", **options}
        return kind(ann_file=str(annotations), **options)

    def error(call: Any) -> list[str]:
        try:
            call()
        except Exception as raised:  # noqa: BLE001  what is asked for
            failure: object = raised
            return [kind.__name__ for kind in BUILT_IN if isinstance(failure, kind)]
        return []

    found: dict[str, Any] = {}
    for serialize in (True, False):
        told = found[f"serialize={serialize}"] = {}
        dataset = toy(serialize_data=serialize)
        told["all"] = [dataset[index] for index in range(len(dataset))]
        told["info"] = [dataset.get_data_info(index) for index in (0, 3, -1, -2)]
        told["metainfo"] = dataset.metainfo
        told["paths"] = [dataset.data_prefix, Path(dataset.ann_file).name]
        told["parsed"] = list(toy(Doubled, serialize_data=serialize))
        told["filtered"] = list(
            toy(Doubled, serialize_data=serialize, filter_cfg={"least": 2})
        )
        for indices in (3, -3, [5, 0, -1, 5], (1,), range(2, 5)):
            chosen = toy(serialize_data=serialize, indices=indices)
            told[f"indices={indices}"] = [chosen[i] for i in range(len(chosen))]
            subset = dataset.get_subset(indices)
            told[f"get_subset={indices}"] = [subset[i] for i in range(len(subset))]
            changed = toy(serialize_data=serialize)
            changed.get_subset_(indices)
            told[f"get_subset_={indices}"] = [changed[i] for i in range(len(changed))]
    lazy = toy(lazy_init=True)
    found["lazy metainfo"] = [lazy.metainfo, lazy.full_init(), lazy.metainfo]
    found["given metainfo"] = toy(
        metainfo={"task": "given", "classes": str(folder / "names.txt")}
    ).metainfo
    found["prefixes"] = [
        toy(data_root=root, data_prefix={"img_path": prefix}).data_prefix
        for root in ("", "r", "/abs")
        for prefix in ("", "p", "/abs", "p/q/")
    ]
    found["pipeline"] = [
        toy(pipeline=[lambda info: info["img_path"], str.upper])[2],
        [toy(pipeline=[keep_even])[index]["sample_idx"] for index in (0, 4)],
        toy(pipeline=[keep_even])[1]["sample_idx"] % 2,
        error(lambda: toy(pipeline=[keep_even], test_mode=True)[1]),
        error(lambda: toy(pipeline=[lambda info: None], max_refetch=3)[1]),
    ]
    found["balanced"] = {
        str(threshold): {
            "indices": list(balanced.repeat_indices),
            "samples": [balanced[index] for index in range(len(balanced))],
            "infos": [balanced.get_data_info(index) for index in (0, -1)],
        }
        for threshold in (0.1, 0.3, 0.5, 1, 2.0)
        for balanced in [library.ClassBalancedDataset(toy(), threshold)]
    }
    repeated = library.RepeatDataset(toy(indices=3), 3)
    found["repeated"] = [repeated[index] for index in range(9)]
    found["repeated info"] = [repeated.get_data_info(index) for index in (0, 5, 8)]
    joined = library.ConcatDataset([toy(indices=3), toy(indices=[7, 6])])
    found["concatenated"] = [joined[index] for index in (*range(5), -1, -5)]
    found["concatenated info"] = [joined.get_data_info(i) for i in (0, 3, 4)]
    found["concatenated sizes"] = [int(size) for size in joined.cumulative_sizes]
    found["concatenated metainfo"] = joined.metainfo
    other = {"task": "other"}
    found["ignored"] = [
        library.ConcatDataset([toy(), toy(metainfo=other)], ignore_keys=keys).metainfo
        for keys in ("task", ["task", "more"])
    ]
    found["errors"] = {
        name: error(call)
        for name, call in {
            "no file": lambda: library.BaseDataset(ann_file="missing.json"),
            "no key": lambda: toy(data_prefix={"lidar": "x"}),
            "prefix none": lambda: toy(data_prefix={"img_path": None}),
            "metainfo list": lambda: toy(metainfo=[1]),
            "indices float": lambda: toy(indices=1.5),
            "indices dict": lambda: toy(indices={}),
            "past the end": lambda: toy(serialize_data=False)[8],
            "cat ids": lambda: library.BaseDataset(
                ann_file=str(annotations)
            ).get_cat_ids(0),
            "transform": lambda: toy(pipeline=[3]),
            "unknown transform": lambda: toy(pipeline=[{"type": "NoSuchTransform"}]),
            "concat of int": lambda: library.ConcatDataset([1]),
            "concat differs": lambda: library.ConcatDataset(
                [toy(), toy(metainfo=other)]
            ),
            "concat lacks": lambda: library.ConcatDataset(
                [toy(), toy(metainfo={"more": 1})]
            ),
            "concat types": lambda: library.ConcatDataset(
                [toy(), toy(metainfo={"palette": (1, 2)})]
            ),
            "ignore keys": lambda: library.ConcatDataset([toy()], ignore_keys=3),
            "concat low": lambda: joined[-6],
            "concat high": lambda: joined[5],
            "balanced high": lambda: library.ClassBalancedDataset(toy(), 1)[16],
            "concat subset": lambda: joined.get_subset(1),
            "concat subset_": lambda: joined.get_subset_(1),
        }.items()
    }
    found["compose"] = str(library.Compose([]))
    found["collated"] = [
        library.pseudo_collate(batch)
        for batch in (
            [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}],
            [(1, {"c": [1, 2]}), (3, {"c": [3, 4]})],
            [1.5, 2.5],
        )
    ]
    found["collate unequal"] = error(lambda: library.pseudo_collate([[1], [1, 2]]))
    answered: dict[str, Any] = json.loads(json.dumps(found))
    return answered


def differences(told: Any, expected: Any, place: str = "") -> list[str]:
    """Say where two answers differ; an error may be of more kinds than expected."""
    if isinstance(told, dict) and isinstance(expected, dict):
        return [
            difference
            for key in sorted(told.keys() | expected.keys())
            for difference in differences(
                told.get(key), expected.get(key), f"{place}/{key}"
            )
        ]
    if place.startswith("/errors/") and set(expected) <= set(told):
        return []
    return [] if told == expected else [f"{place}: {told}, expected {expected}"]


def main() -> None:
    """Write the answers of the installed MMEngine."""
    import mmengine
    import mmengine.dataset as library

    logging.disable()
    if not mmengine.__version__.startswith("0.10."):
        raise SystemExit(f"mmengine is {mmengine.__version__}, expected 0.10")
    with tempfile.TemporaryDirectory() as folder:
        told = answers(library, Path(folder))
    GOLDEN.parent.mkdir(exist_ok=True)
    GOLDEN.write_text(json.dumps(told, indent=1, sort_keys=True) + "\n", "utf-8")


if __name__ == "__main__":
    main()

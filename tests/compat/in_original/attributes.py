"""Print the public attributes of an adapter of GulpIO2 0.0.4, its items and ids.

``attributes.py CLASS JSON``: the JSON is the list of the constructor's arguments.
"""

from __future__ import annotations

import json
import sys

from gulpio2 import adapters

if __name__ == "__main__":
    adapter = getattr(adapters, sys.argv[1])(*json.loads(sys.argv[2]))
    names = [name for name in vars(adapter) if not name.startswith("_")]
    length = len(adapter)
    items = [
        {
            "keys": list(item),
            "id": item["id"],
            "meta": item["meta"],
            "num_frames": len(item["frames"]),
        }
        for item in adapter.iter_data(slice(0, length))
    ]
    json.dump({"names": names, "length": length, "items": items}, sys.stdout)

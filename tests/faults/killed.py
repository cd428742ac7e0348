"""What is asked of directories whose ingest was killed, and of the processes."""

from pathlib import Path

from gulpio2 import GulpDirectory


def committed_jpegs(folder):
    """Open the directory, which must work, and give the bytes of each frame."""
    with GulpDirectory(folder) as directory:
        return {id_: directory.read_jpegs(id_) for id_ in directory.chunk_lookup}


def children_of(pid):
    try:
        found = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [int(child) for child in found.split()]

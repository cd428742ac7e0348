"""``python -m gulpio2``: the program ``gulp2``, also where that is not on the PATH."""

from gulpio2.cli.main import main

__all__: list[str] = []

if __name__ == "__main__":
    main()

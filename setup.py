"""Package metadata; the settings of the tools are in pyproject.toml."""

from __future__ import annotations

import re
from pathlib import Path

from setuptools import find_packages, setup

HERE = Path(__file__).resolve().parent

# Every `gulp2_*` command of GulpIO2 0.0.4: a function of the same name in cli/legacy.
LEGACY_COMMANDS = [
    "gulp2_20bn_json_videos",
    "gulp2_20bn_csv_webm",
    "gulp2_20bn_csv_jpeg",
    "gulp2_activitynet",
    "gulp2_kinetics",
    "gulp2_image_folder",
    "gulp2_image_list",
    "gulp2_video_folder",
    "gulp2_sanity_check",
    "gulp2_register_adapter",
]

TEST_REQUIREMENTS = [
    "pytest>=8.0",
    "pytest-xdist>=3.5",
    "hypothesis>=6.100",
    "pandas>=2.2",
    "pillow>=10.0",
    "pyyaml>=6.0",
    "distributed>=2023.5",
]


def read_version() -> str:
    """Read the version out of the source, without importing the package."""
    path = HERE / "gulpio2" / "__version__.py"
    match = re.search(r'^__version__ = "([^"]+)"', path.read_text("utf-8"), re.M)
    if match is None:
        raise ValueError(f"{path} has no line that sets __version__")
    return match.group(1)


def read_long_description() -> str:
    """Give the README, where it is there."""
    path = HERE / "README.md"
    return path.read_text("utf-8") if path.is_file() else ""


setup(
    name="gulpio2",
    version=read_version(),
    description="A store of video frames from which random clips are read fast",
    long_description=read_long_description(),
    long_description_content_type="text/markdown",
    author="the gulpio2 authors",
    license="MIT",
    license_files=["LICENSE"],
    packages=find_packages(include=["gulpio2", "gulpio2.*"]),
    package_data={"gulpio2": ["py.typed"]},
    python_requires=">=3.10",
    # The lowest versions are those that pass: PINS=oldest bin/test, on Python 3.10.
    install_requires=[
        "numpy>=1.26",
        "simplejpeg>=1.8",
        # Elsewhere the checksums are those of zlib, at a tenth of the speed.
        "zlib-ng>=0.5.1; platform_machine in 'x86_64 aarch64 arm64'",
        "av>=17.1",
        "opencv-python-headless>=4.8.1.78",
        "pyarrow>=14.0.1",
        "click>=8.5",
        "tqdm>=4.60",
    ],
    extras_require={
        "torch": ["torch>=2.2"],
        "distributed": ["distributed>=2023.5"],
        # MMEngine cannot be imported without torch, and does not depend on it.
        "mmengine": ["mmengine>=0.10", "torch>=2.2"],
        "test": TEST_REQUIREMENTS,
        # All that bin/check runs.
        "dev": [*TEST_REQUIREMENTS, "mypy>=1.13", "ruff>=0.9"],
    },
    entry_points={
        "console_scripts": [
            "gulp2 = gulpio2.cli.main:main",
            *(f"{name} = gulpio2.cli.legacy:{name}" for name in LEGACY_COMMANDS),
        ]
    },
    classifiers=[
        "Development Status :: 4 - Beta",
        "Intended Audience :: Science/Research",
        "Operating System :: POSIX",
        "Programming Language :: Python :: 3 :: Only",
        "Programming Language :: Python :: 3.10",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.13",
        "Topic :: Multimedia :: Video",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
        "Typing :: Typed",
    ],
)

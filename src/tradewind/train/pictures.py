"""Real pictures: scikit-learn's digits, CIFAR-10, Tiny-ImageNet, and folders with a folder of pictures per class.

Nothing is downloaded. Folders are listed by every rank, pictures are read only by the worker that trains on them.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tradewind.train.contract import ContractError

SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".ppm")
CIFAR_SIDE, CIFAR_CLASSES = 32, 10
CIFAR_PIXELS = 3 * CIFAR_SIDE**2
FILES_SIDE = 64
"""Pixels to which the sides of pictures in files are resized by default; those of Tiny-ImageNet have as many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Pictures and their classes. read: pictures by their numbers, (n, channels, side, side), bytes or floats."""

    labels: Tensor
    read: Callable[[Tensor], Tensor]

    def chosen(self, numbers: Tensor) -> Part:
        """Some of the pictures, in this order."""
        return Part(labels=self.labels[numbers], read=lambda wanted: self.read(numbers[wanted]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Pictures:
    """A dataset. held_out: pictures that are never trained on; None: it has no such part."""

    channels: int
    side: int
    classes: int
    training: Part
    held_out: Part | None


def digits() -> Pictures:
    """1797 handwritten digits of 8 x 8 pixels, which come with scikit-learn."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise ContractError(
            "--data digits needs scikit-learn, which is not installed; run: make install EXTRAS=train"
        ) from None
    images, labels = load_digits(return_X_y=True)
    bytes_ = torch.from_numpy(np.rint(images * (255 / 16)).astype(np.uint8)).view(-1, 1, 8, 8)
    part = Part(labels=torch.from_numpy(labels).long(), read=lambda numbers: bytes_[numbers])
    return Pictures(channels=1, side=8, classes=10, training=part, held_out=None)


def cifar10(folder: Path) -> Pictures:
    """CIFAR-10 as it is distributed: the binary version, or the Python version."""
    for suffix, read in ((".bin", _binary_batch), ("", _pickled_batch)):
        names = sorted(p for p in folder.glob(f"data_batch_*{suffix}") if p.suffix == suffix)
        test = folder / f"test_batch{suffix}"
        if names and test.is_file():
            training, held_out = ([read(name) for name in group] for group in (names, [test]))
            return Pictures(
                channels=3, side=CIFAR_SIDE, classes=CIFAR_CLASSES,
                training=_joined(training), held_out=_joined(held_out),
            )  # fmt: skip
    raise ContractError(
        f"{folder} holds no CIFAR-10; --data-dir must name the directory with data_batch_1.bin to data_batch_5.bin and "
        "test_batch.bin (binary version), or the same names without .bin (Python version)"
    )


def tiny_imagenet(folder: Path, side: int) -> Pictures:
    """Tiny-ImageNet: train/CLASS/images/, val/images/ with the classes in val/val_annotations.txt."""
    classes = _folders(folder / "train")
    notes = folder / "val" / "val_annotations.txt"
    if not classes or not notes.is_file():
        raise ContractError(
            f"{folder} holds no Tiny-ImageNet; --data-dir must name the directory with train/CLASS/images/ and "
            "val/val_annotations.txt"
        )
    training = [
        (path, k) for k, name in enumerate(classes) for path in _files(folder / "train" / name / "images")
    ]
    held_out = []
    for number, line in enumerate(notes.read_text(encoding="utf-8").splitlines(), 1):
        name, _, rest = line.partition("\t")
        label = rest.partition("\t")[0]
        if label not in classes or Path(name).name != name:
            raise ContractError(
                f"{notes}, line {number}: {line!r}; it must be the name of a file in val/images and a class of train/"
            )
        held_out.append((folder / "val" / "images" / name, classes.index(label)))
    return _of_files(folder, classes, (training, held_out), side)


def image_folder(folder: Path, side: int) -> Pictures:
    """A directory of pictures per class, in `folder` itself, or in its directories `train` and `val`."""
    is_divided = all((folder / name).is_dir() for name in ("train", "val"))
    root = folder / "train" if is_divided else folder
    classes = _folders(root)
    if len(classes) < 2:
        raise ContractError(
            f"{root} has {len(classes)} directories of pictures; --data-dir must have one for each class, two or more"
        )
    training = [(path, k) for k, name in enumerate(classes) for path in _files(root / name)]
    held_out = None
    if is_divided:
        unknown = set(_folders(folder / "val")) - set(classes)
        if unknown:
            raise ContractError(f"{folder / 'val' / min(unknown)}: there is no such class in {root}")
        held_out = [(path, k) for k, name in enumerate(classes) for path in _files(folder / "val" / name)]
    return _of_files(folder, classes, (training, held_out), side)


def _folders(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []


def _files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if path.suffix.lower() in SUFFIXES)


Listed = list[tuple[Path, int]]


def _of_files(
    folder: Path, classes: Sequence[str], listed: tuple[Listed, Listed | None], side: int
) -> Pictures:
    training, held_out = listed
    if not training or held_out == []:
        raise ContractError(f"{folder} has no pictures ({', '.join(SUFFIXES)}) where they are looked for")
    return Pictures(
        channels=3, side=side, classes=len(classes),
        training=_file_part(training, side), held_out=None if held_out is None else _file_part(held_out, side),
    )  # fmt: skip


def _file_part(listed: Listed, side: int) -> Part:
    def read(numbers: Tensor) -> Tensor:
        pictures = [_picture(listed[number][0], side) for number in numbers.tolist()]
        return torch.stack(pictures) if pictures else torch.zeros(0, 3, side, side, dtype=torch.uint8)

    return Part(labels=torch.tensor([label for _, label in listed]), read=read)


def _picture(path: Path, side: int) -> Tensor:
    """A picture in colour, resized to a square."""
    from PIL import Image

    try:
        with Image.open(path) as opened:
            pixels = np.array(opened.convert("RGB").resize((side, side), Image.Resampling.BILINEAR))
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as problem:
        raise ContractError(f"{path} cannot be read as a picture ({problem}); repair or remove it") from None
    return torch.from_numpy(pixels).permute(2, 0, 1)


Batch = tuple[Any, Any]
"""Pixels (n, 3072) and labels (n,) of a file of CIFAR-10, arrays of bytes."""


def _joined(batches: Sequence[Batch]) -> Part:
    labels = torch.from_numpy(np.concatenate([labels for _, labels in batches]).astype(np.int64))
    starts = np.cumsum([0, *(len(labels) for _, labels in batches)])

    def read(numbers: Tensor) -> Tensor:
        found = np.empty((len(numbers), CIFAR_PIXELS), np.uint8)
        wanted = numbers.numpy()
        for k, (pixels, _) in enumerate(batches):
            here = (starts[k] <= wanted) & (wanted < starts[k + 1])
            found[here] = pixels[wanted[here] - starts[k]]
        return torch.from_numpy(found).view(-1, 3, CIFAR_SIDE, CIFAR_SIDE)

    return Part(labels=labels, read=read)


def _binary_batch(path: Path) -> Batch:
    size = path.stat().st_size
    if not size or size % (1 + CIFAR_PIXELS):
        raise ContractError(
            f"{path} has {size} bytes; it must have {1 + CIFAR_PIXELS} for each picture. Download it again."
        )
    records = np.memmap(path, np.uint8, mode="r").reshape(-1, 1 + CIFAR_PIXELS)
    return _checked(path, records[:, 1:], np.array(records[:, 0]))


def _pickled_batch(path: Path) -> Batch:
    try:
        with path.open("rb") as file:
            found = _ArrayUnpickler(file, encoding="bytes").load()
        pixels, labels = np.asarray(found[b"data"], np.uint8), np.asarray(found[b"labels"], np.uint8)
    except OSError:
        raise
    except Exception as problem:  # a foreign pickle can raise anything
        raise ContractError(f"{path} is not a batch of CIFAR-10 ({problem}); download it again") from None
    return _checked(path, pixels, labels)


def _checked(path: Path, pixels: Any, labels: Any) -> Batch:
    if pixels.ndim != 2 or pixels.shape != (len(labels), CIFAR_PIXELS) or not np.all(labels < CIFAR_CLASSES):
        raise ContractError(
            f"{path}: each picture must have {CIFAR_PIXELS} bytes and a class from 0 to {CIFAR_CLASSES - 1}"
        )
    return pixels, labels


class _ArrayUnpickler(pickle.Unpickler):
    """Reads pickles of plain values and arrays of numbers; a pickle that names anything else is rejected."""

    def find_class(self, module: str, name: str) -> Any:
        """Only what arrays of NumPy consist of."""
        of_numpy = {"_reconstruct": np.zeros(1).__reduce__()[0], "ndarray": np.ndarray, "dtype": np.dtype}
        if module.split(".")[0] == "numpy" and name in of_numpy:
            return of_numpy[name]
        if (module, name) == ("_codecs", "encode"):  # bytes as Python 3 writes them in the old format
            return _latin1
        raise pickle.UnpicklingError(f"it names {module}.{name}, which no batch needs")


def _latin1(text: str, encoding: str) -> bytes:
    del encoding
    return text.encode("latin1")

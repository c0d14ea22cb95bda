"""Real data and published networks of the trainer: sizes, formats, messages, and what a site's accuracy is."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make install EXTRAS=train")

from PIL import Image  # noqa: E402
from torch import nn  # noqa: E402

from tradewind.train import data, models, networks, options, pictures  # noqa: E402
from tradewind.train.contract import ContractError, read  # noqa: E402
from tradewind.train.data import Shape  # noqa: E402
from tradewind.train.options import TrainOptions, parse  # noqa: E402
from tradewind.train.work import Evaluator, Flat, Momentum, new_training, partial_loss  # noqa: E402

torch.set_num_threads(1)  # as in a rank
PUBLISHED = {
    "alexnet": 61_100_840,
    "vgg11": 132_863_336,
    "vgg16": 138_357_544,
    "resnet18": 11_689_512,
    "resnet50": 25_557_032,
}
"""Parameters for 1000 classes, as torchvision documents them for its networks; the papers give rounded numbers."""


def build(*arguments: str, shape: Shape = Shape(3, 32, 10)) -> nn.Module:  # noqa: B008
    return models.build(parse(arguments), shape, 1)


def test_the_options_name_the_networks_that_there_are() -> None:
    assert tuple(networks.NETWORKS) == options.NETWORKS
    assert tuple(models.MODELS) == options.SIZED


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_network_at_scale_1_has_as_many_parameters_as_the_published_one(name: str) -> None:
    make, _ = networks.NETWORKS[name]
    with torch.device("meta"):
        model = make(1.0, Shape(3, 224, 1000))
        assert sum(p.numel() for p in model.parameters()) == PUBLISHED[name]
        assert model(torch.zeros(2, 3, 224, 224)).shape == (2, 1000)
        half = sum(p.numel() for p in make(0.5, Shape(3, 224, 1000)).parameters())
    assert 0.2 < half / PUBLISHED[name] < 0.32  # most of the parameters go with the square of the scale


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_output_for_a_sample_does_not_depend_on_the_others_of_its_batch(name: str) -> None:
    model = build("--model", name, "--scale", "0.02", "--pixels", "64")
    inputs = torch.randn(5, 3, 32, 32, generator=torch.Generator().manual_seed(3))
    together = model(inputs)
    alone = torch.cat([model(each.unsqueeze(0)) for each in inputs])
    assert together.std() > 1e-3
    assert torch.allclose(together, alone, rtol=1e-4, atol=1e-5)


def test_the_seed_determines_the_parameters_of_a_network() -> None:
    first, again = (build("--model", "resnet18", "--scale", "0.1") for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), again.parameters(), strict=True))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--model", "vgg16", "--size", "4MB"],
            "--size is for mlp and cnn; --model vgg16 is sized by --scale",
        ),
        (["--scale", "1"], "--scale is for alexnet.*; --model mlp is sized by --size"),
        (["--model", "vgg16", "--scale", "0"], "--scale is 0.0; it must be above 0"),
        (["--data", "cifar10"], "--data cifar10 needs --data-dir"),
        (["--data-dir", "x"], "--data-dir is for --data cifar10, tiny-imagenet, folder"),
        (["--data", "site", "--arrange", "classes"], "--arrange is not for --data site"),
        (["--pixels", "5000"], "--pixels is 5000; it must be at most 1024"),
    ],
)
def test_options_that_do_not_go_together_are_rejected(arguments: list[str], message: str) -> None:
    with pytest.raises(ContractError, match=message):
        parse(arguments)


def test_a_network_says_which_pictures_and_sizes_it_can_take() -> None:
    with pytest.raises(ContractError, match=r"needs pictures of 63 x 63 .* enlarge them with --pixels 63"):
        build("--model", "alexnet", "--scale", "0.1")
    with pytest.raises(ContractError, match="the maximum is 2000000000"):
        build("--model", "vgg16", "--scale", "4")


def numbers(count: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(count).integers(0, 256, (count, *shape), dtype=np.uint8)


def write_cifar(folder: Path, *, pickled: bool) -> np.ndarray:
    """Two batches of 12 pictures and a test batch; picture n of a batch is of class n % 10. Returns the training pixels."""
    folder.mkdir()
    pixels = numbers(36, 3072)
    labels = np.arange(12, dtype=np.uint8) % 10
    for k, name in enumerate(("data_batch_1", "data_batch_2", "test_batch")):
        here = pixels[12 * k : 12 * k + 12]
        if pickled:
            content = {b"batch_label": b"batch", b"labels": labels.tolist(), b"data": here}
            (folder / name).write_bytes(pickle.dumps(content, protocol=2))
        else:
            (folder / f"{name}.bin").write_bytes(np.hstack([labels[:, None], here]).tobytes())
    return pixels[:24]


@pytest.mark.parametrize("pickled", [False, True])
def test_both_versions_of_cifar10_are_read(tmp_path: Path, pickled: bool) -> None:
    pixels = write_cifar(tmp_path / "c", pickled=pickled)
    found = pictures.cifar10(tmp_path / "c")
    assert (found.channels, found.side, found.classes) == (3, 32, 10)
    assert found.training.labels.tolist() == [*range(10), 0, 1] * 2
    assert torch.equal(
        found.training.read(torch.tensor([13, 2])).flatten(1), torch.from_numpy(pixels[[13, 2]])
    )
    assert found.held_out is not None
    assert len(found.held_out.labels) == 12


def test_workers_divide_real_pictures_and_a_batch_is_the_same_for_any_number_of_workers(
    tmp_path: Path,
) -> None:
    write_cifar(tmp_path / "c", pickled=False)
    chosen = parse(["--data", "cifar10", "--data-dir", str(tmp_path / "c"), "--batch", "6"])
    whole = data.shard(chosen, (0, 1), 7)
    parts = [data.shard(chosen, (i, 3), 7) for i in range(3)]
    assert whole.inputs.shape == (6, 4, 3, 32, 32)
    for iteration in (0, 3, 5):
        assert torch.equal(torch.cat([p.take(iteration)[0] for p in parts]), whole.take(iteration)[0])
    assert sorted(whole.labels.flatten().tolist()) == sorted([*range(10), 0, 1] * 2)
    assert whole.take(0)[0].dtype == torch.float32


class Evil:
    def __reduce__(self) -> tuple[Callable[[str], object], tuple[str]]:
        return print, ("this code must not run",)


def test_a_pickle_that_names_anything_but_arrays_is_rejected_and_does_not_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_cifar(tmp_path / "c", pickled=True)
    (tmp_path / "c" / "data_batch_2").write_bytes(pickle.dumps({b"data": Evil(), b"labels": []}, protocol=2))
    with pytest.raises(ContractError, match=r"data_batch_2 is not a batch of CIFAR-10 .*names .*print"):
        pictures.cifar10(tmp_path / "c")
    assert capsys.readouterr().out == ""


def test_damaged_and_missing_files_of_cifar10_are_named(tmp_path: Path) -> None:
    with pytest.raises(
        ContractError, match=r"holds no CIFAR-10; --data-dir must name the directory with data_batch_1\.bin"
    ):
        pictures.cifar10(tmp_path)
    write_cifar(tmp_path / "c", pickled=False)
    batch = tmp_path / "c" / "data_batch_1.bin"
    content = batch.read_bytes()
    batch.write_bytes(content[:-1])
    with pytest.raises(ContractError, match=r"data_batch_1.bin has 36875 bytes; it must have 3073 for each"):
        pictures.cifar10(tmp_path / "c")
    batch.write_bytes(b"\x0a" + content[1:])
    with pytest.raises(ContractError, match="a class from 0 to 9"):
        pictures.cifar10(tmp_path / "c")


def write_picture(path: Path, colour: tuple[int, int, int], side: int = 64) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (side, side), colour).save(path)


def write_tiny_imagenet(folder: Path) -> None:
    (folder / "val").mkdir(parents=True)
    lines = []
    for k, name in enumerate(("n01", "n02", "n03")):
        for number in range(4):
            write_picture(folder / "train" / name / "images" / f"{name}_{number}.JPEG", (80 * k, 0, 0))
        (folder / "train" / name / f"{name}_boxes.txt").write_text("")
        write_picture(folder / "val" / "images" / f"val_{k}.JPEG", (80 * k, 0, 0))
        lines.append(f"val_{k}.JPEG\t{name}\t0\t0\t62\t62\n")
    (folder / "val" / "val_annotations.txt").write_text("".join(reversed(lines)))


def test_tiny_imagenet_is_read_with_the_classes_of_its_annotations(tmp_path: Path) -> None:
    write_tiny_imagenet(tmp_path)
    found = pictures.tiny_imagenet(tmp_path, 64)
    assert found.classes == 3
    assert found.training.labels.tolist() == [0] * 4 + [1] * 4 + [2] * 4
    assert found.held_out is not None
    for part in (found.training, found.held_out):
        red = part.read(torch.arange(len(part.labels)))[:, 0].float().mean((1, 2))
        assert torch.allclose(red, 80.0 * part.labels, atol=4)  # JPEG rounds
    notes = tmp_path / "val" / "val_annotations.txt"
    notes.write_text("../x.JPEG\tn01\n")
    with pytest.raises(ContractError, match=r"line 1: .* must be the name of a file in val/images"):
        pictures.tiny_imagenet(tmp_path, 64)
    notes.unlink()
    with pytest.raises(ContractError, match="holds no Tiny-ImageNet"):
        pictures.tiny_imagenet(tmp_path, 64)


@pytest.mark.parametrize("divided", [False, True])
def test_a_folder_per_class_is_read_whatever_the_size_of_its_pictures(tmp_path: Path, divided: bool) -> None:
    root = tmp_path / "train" if divided else tmp_path
    for k, name in enumerate(("cat", "dog")):
        for number in range(6):
            write_picture(root / name / f"{number}.png", (0, 200 * k, 0), side=10 + number)
        if divided:
            write_picture(tmp_path / "val" / name / "x.png", (0, 200 * k, 0), side=40)
    chosen = parse(["--data", "folder", "--data-dir", str(tmp_path), "--pixels", "16", "--batch", "2"])
    assert data.shape_of(chosen) == (3, 16, 2)
    shard = data.shard(chosen, (0, 1), 0)
    assert shard.inputs.shape == (
        2,
        6 if divided else 5,
        3,
        16,
        16,
    )  # a sixth is held out where there is no val
    assert torch.equal(shard.inputs[:, :, 1, 0, 0].long(), 200 * shard.labels)
    assert len(data.held_out(chosen, read({}, "ring")).labels) == 2


def test_a_worker_reads_only_its_own_pictures(tmp_path: Path) -> None:
    for name in ("cat", "dog"):
        for number in range(6):
            write_picture(tmp_path / "train" / name / f"{number}.png", (0, 0, 0), side=8)
        write_picture(tmp_path / "val" / name / "x.png", (0, 0, 0), side=8)
    (tmp_path / "train" / "dog" / "0.png").write_bytes(b"no picture")
    arguments = ["--data", "folder", "--data-dir", str(tmp_path), "--batch", "2", "--arrange", "classes"]
    chosen = parse(arguments)
    assert set(data.shard(chosen, (0, 2), 0).labels.flatten().tolist()) == {0}  # only cats
    with pytest.raises(ContractError, match=r"dog/0.png cannot be read as a picture"):
        data.shard(chosen, (1, 2), 0)


def test_folders_without_classes_or_pictures_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match="has 0 directories of pictures"):
        pictures.image_folder(tmp_path / "missing", 16)
    for name in ("cat", "dog"):
        (tmp_path / name).mkdir()
    with pytest.raises(ContractError, match="has no pictures"):
        pictures.image_folder(tmp_path, 16)


def test_missing_scikit_learn_is_said_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(
        ContractError, match="needs scikit-learn, which is not installed; run: make install EXTRAS=train"
    ):
        pictures.digits()


def test_more_samples_than_a_dataset_has_are_rejected() -> None:
    pytest.importorskip("sklearn")
    with pytest.raises(ContractError, match="--samples is 1500, but --data digits has 1498 to train on"):
        data.shard(parse(["--data", "digits", "--samples", "1500"]), (0, 1), 0)


def trained(chosen: TrainOptions, iterations: int, worker: tuple[int, int] = (0, 1)) -> nn.Module:
    """A model after some iterations on the samples of one worker."""
    training = new_training(chosen, read({}, "ring"))
    part = data.shard(chosen, worker, 0)
    for iteration in range(iterations):
        training.flat.gradient.zero_()
        loss, _ = partial_loss(training.model, part, iteration, 0.0)
        torch.autograd.backward(loss)
        training.optimizer.step()
    return training.model


def measured(chosen: TrainOptions, model: nn.Module, site: int) -> dict[str, float]:
    """What the leader of one of two sites with a worker each measures."""
    rank = read({"RANK": str(site), "WORLD_SIZE": "2", "TRADEWIND_SITES": "a,b"}, "ring")
    return Evaluator(chosen, rank, leads=True).measure(model, 100)


DIGITS = ("--data", "digits", "--arrange", "classes", "--evaluate-every", "100", "--rate", "0.1")


def test_accuracy_per_site_shows_whether_a_model_serves_all_sites() -> None:
    pytest.importorskip("sklearn")
    chosen = parse([*DIGITS, "--size", "40KB"])
    unbiased, biased = trained(chosen, 100), trained(chosen, 100, worker=(0, 2))
    a, b = (measured(chosen, unbiased, site) for site in (0, 1))
    assert a["accuracy"] == b["accuracy"] > 0.9
    assert min(a["site_accuracy"], b["site_accuracy"]) > 0.85
    a, b = (measured(chosen, biased, site) for site in (0, 1))  # trained on the classes of site a alone
    assert a["site_accuracy"] > 0.9
    assert b["site_accuracy"] < 0.2


@pytest.mark.parametrize(
    ("name", "pixels", "rate", "iterations"),
    [("alexnet", "63", "0.003", 150), ("vgg11", "32", "0.003", 150), ("resnet18", "32", "0.01", 50)],
)
def test_small_networks_learn_digits(name: str, pixels: str, rate: str, iterations: int) -> None:
    pytest.importorskip("sklearn")
    size = ("--model", name, "--scale", "0.1", "--pixels", pixels, "--batch", "32", "--rate", rate)
    chosen = parse([*DIGITS, *size])
    assert measured(chosen, trained(chosen, iterations), 0)["accuracy"] > 0.5  # by chance: 0.1


def test_momentum_updates_networks_with_a_resizing_layer() -> None:
    model = build("--model", "resnet18", "--scale", "0.1", "--pixels", "40")
    flat = Flat(model)
    before = flat.values.clone()
    torch.autograd.backward(model(torch.randn(2, 3, 32, 32)).sum())
    Momentum(flat, 0.1, 0.9).step()
    assert not torch.equal(before, flat.values)

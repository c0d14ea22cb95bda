#!/usr/bin/env python3
"""Builds a Kubernetes for the tests from Debian's source package; nothing is installed and no image registry is asked.

    tools/kubernetes_build.py            builds into the cache unless it is there (about 10 minutes of CPU time)
    tools/kubernetes_build.py --where    prints the directory of the programs

The cache is $TRADEWIND_KUBERNETES_CACHE, else ~/.cache/tradewind-kubernetes: control plane, kubelet and kubectl (compiled),
etcd, containerd, runc and network plugins (Debian's, unpacked), and image.tar with one image that only waits.
Needs Debian 12 and, if dpkg-dev is missing, root to install it. Standard library only.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

PROGRAMS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kubectl")
PACKAGES = (
    "golang-1.19-go",
    "golang-1.19-src",
    "etcd-server",
    "containerd",
    "runc",
    "containernetworking-plugins",
)
UNPACKED = (
    "usr/bin/etcd", "usr/bin/containerd", "usr/bin/containerd-shim-runc-v2", "usr/bin/ctr", "usr/sbin/runc",
    "usr/lib/cni/bridge", "usr/lib/cni/host-local", "usr/lib/cni/loopback",
)  # fmt: skip
VERSION = "v1.20.2"
IMAGE = "docker.io/tradewind/wait:1"
WAIT = """package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM, syscall.SIGINT)
	<-asked
}
"""
MARK = b"+k8s:openapi-gen="
NOT_SERVED = ("code-generator", "gengo", "kube-openapi", "sample-apiserver")
"""Parts of the sources whose types are in no API."""


def cache() -> Path:
    """Where the programs are kept."""
    given = os.environ.get("TRADEWIND_KUBERNETES_CACHE")
    return Path(given) if given else Path.home() / ".cache" / "tradewind-kubernetes"


def is_built() -> bool:
    """Whether all is there."""
    return (cache() / "image.tar").exists()


def run(*argv: str, cwd: Path, env: dict[str, str] | None = None) -> str:
    """Run a program; its output, of which the end is shown if it fails."""
    done = subprocess.run(
        argv, cwd=cwd, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    if done.returncode:
        tail = "\n".join(done.stdout.splitlines()[-15:])
        raise SystemExit(
            f"building Kubernetes failed: {' '.join(argv)[:200]} ended with {done.returncode}\n{tail}"
        )
    return done.stdout


class Apt:
    """apt with package lists of its own, in which sources are listed too; those of the machine stay as they are."""

    def __init__(self, work: Path) -> None:
        self._work = work
        (work / "lists" / "partial").mkdir(parents=True)
        asked = "$(REPO_URI) $(RELEASE) $(COMPONENT)"
        lines = run("apt-get", "indextargets", "--format", asked, "Created-By: Packages", cwd=work)
        found = sorted(set(lines.splitlines()))
        (work / "sources.list").write_text("".join(f"deb {each}\ndeb-src {each}\n" for each in found))
        self("update")

    def __call__(self, *words: str) -> str:
        options = {
            "Dir::Etc::sourcelist": self._work / "sources.list", "Dir::Etc::sourceparts": "/dev/null",
            "Dir::State::lists": self._work / "lists", "APT::Sandbox::User": "root",
        }  # fmt: skip
        given = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
        return run("apt-get", "-q", *given, *words, cwd=self._work)


def main(argv: Sequence[str]) -> None:
    """Build what is missing."""
    if argv == ["--where"]:
        print(cache())
        return
    if is_built():
        return
    if shutil.which("apt-get") is None:
        raise SystemExit("building Kubernetes needs Debian 12: this machine has no apt-get")
    began = time.monotonic()
    if shutil.which("dpkg-source") is None:
        run("apt-get", "update", "-qq", cwd=Path("/"))
        run("apt-get", "install", "-y", "-qq", "--no-install-recommends", "dpkg-dev", cwd=Path("/"))
    cache().parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="kubernetes-build-", dir=cache().parent) as folder:
        work = Path(folder)
        say("downloading packages and sources")
        apt = Apt(work)
        apt("download", *PACKAGES)
        for package in sorted(work.glob("*.deb")):
            run("dpkg", "-x", package.name, "root", cwd=work)
        apt("source", "--download-only", "kubernetes")
        try:
            (source,) = work.glob(f"kubernetes_{VERSION[1:5]}.*.dsc")
        except ValueError:
            raise SystemExit(
                f"the sources of this machine's Debian are not those of {VERSION}: it has to be Debian 12"
            ) from None
        tree = work / "go" / "src" / "k8s.io" / "kubernetes"
        tree.parent.mkdir(parents=True)
        run("dpkg-source", "--no-check", "-x", source.name, str(tree), cwd=work)
        made = work / "made"
        made.mkdir()
        compile_programs(work, tree, made)
        for name in UNPACKED:
            shutil.copy2(work / "root" / name, made)
        write_image(made)
        shutil.rmtree(cache(), ignore_errors=True)
        made.rename(cache())
    say(f"done in {time.monotonic() - began:.0f} s: {cache()}")


def compile_programs(work: Path, tree: Path, made: Path) -> None:
    """Compile everything that is written in Go, and the description of the API that the sources leave out."""
    toolchain = work / "root/usr/lib/go-1.19"
    env = {
        "GOROOT": str(toolchain), "GOPATH": str(work / "go"), "GOCACHE": str(work / "gocache"), "GO111MODULE": "off",
        "CGO_ENABLED": "0", "HOME": str(work), "PATH": f"{toolchain}/bin:{os.environ['PATH']}", "GOFLAGS": "",
    }  # fmt: skip
    say("describing the API")
    generator = str(work / "openapi-gen")
    run("go", "build", "-o", generator, "./vendor/k8s.io/kube-openapi/cmd/openapi-gen", cwd=tree, env=env)
    run(
        generator, "--logtostderr", "--input-dirs", ",".join(sorted(set(served(tree)))),
        "--output-package", "k8s.io/kubernetes/pkg/generated/openapi", "--output-file-base", "zz_generated.openapi",
        "--go-header-file", "vendor/k8s.io/code-generator/hack/boilerplate.go.txt",
        "--report-filename", str(work / "violations"), cwd=tree, env=env,
    )  # fmt: skip
    say("compiling")
    # a kubelet that looks for credentials of a cloud waits for its metadata server: leave that part out
    plugins, ours = tree / "cmd/kubelet/app/plugins.go", work / "plugins.go"
    kept = [line for line in plugins.read_text().splitlines() if "credentialprovider/aws" not in line]
    ours.write_text("\n".join(kept) + "\n")
    (work / "overlay.json").write_text(json.dumps({"Replace": {str(plugins): str(ours)}}))
    where, (major, minor, _) = (
        "k8s.io/kubernetes/vendor/k8s.io/component-base/version",
        VERSION[1:].split("."),
    )
    values = {"gitVersion": VERSION, "gitMajor": major, "gitMinor": minor}
    flags = " ".join(["-s", "-w", *(f"-X {where}.{name}={value}" for name, value in values.items())])
    run(
        "go", "build", "-overlay", str(work / "overlay.json"), "-ldflags", flags, "-o", f"{made}/",
        *(f"./cmd/{name}" for name in PROGRAMS), cwd=tree, env=env,
    )  # fmt: skip
    (work / "wait.go").write_text(WAIT)
    run("go", "build", "-ldflags", "-s -w", "-o", str(made / "wait"), "wait.go", cwd=work, env=env)


def served(tree: Path) -> Iterator[str]:
    """Go packages that declare types of the API."""
    parts = [tree / "pkg", *(tree / "vendor/k8s.io").iterdir()]
    for part in parts:
        if part.name in NOT_SERVED or not part.is_dir():
            continue
        for folder, below, files in os.walk(part):
            below[:] = [each for each in below if each != "_examples"]
            sources = (Path(folder, name) for name in files if name.endswith(".go"))
            if any(MARK in source.read_bytes() for source in sources):
                yield f"k8s.io/kubernetes/{Path(folder).relative_to(tree)}"


def write_image(made: Path) -> None:
    """An archive, as `docker save` makes them, with one image of one layer: a program that waits, and names of users."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as archive:
        add(archive, "wait", (made / "wait").read_bytes(), 0o755)
        add(archive, "etc/passwd", b"root:x:0:0:root:/:/bin/sh\n")
        add(archive, "etc/group", b"root:x:0:\n")
    (made / "wait").unlink()
    digest = hashlib.sha256(layer.getvalue()).hexdigest()
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)
    config = {
        "architecture": machine, "os": "linux", "config": {"Entrypoint": ["/wait"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
        "history": [{"created": "1970-01-01T00:00:00Z"}],
    }  # fmt: skip
    manifest = [{"Config": "config.json", "RepoTags": [IMAGE], "Layers": ["layer.tar"]}]
    with tarfile.open(made / "image.tar", "w") as archive:
        add(archive, "manifest.json", json.dumps(manifest).encode())
        add(archive, "config.json", json.dumps(config).encode())
        add(archive, "layer.tar", layer.getvalue())


def add(archive: tarfile.TarFile, name: str, content: bytes, mode: int = 0o644) -> None:
    """Put a file into an archive."""
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), mode
    archive.addfile(entry, io.BytesIO(content))


def say(text: str) -> None:
    """Tell how far it is."""
    print(f"kubernetes: {text}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])

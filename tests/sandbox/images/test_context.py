"""What goes to the daemon of a folder that may be hostile."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path

import pytest

from sandbox.errors import ImageError, SandboxPathError
from sandbox.images.context import Archive, ContextLimits


def _archive(folder: Path, limits: ContextLimits | None = None, *, root_system: bool = False) -> Archive:
    archive = Archive(limits or ContextLimits(), root_system=root_system)
    try:
        archive.add_folder(folder)
    except BaseException:
        archive.close()
        raise
    return archive


def test_the_same_files_give_the_same_digest(tmp_path: Path) -> None:
    digests = []
    for name, order in (("a", "xy"), ("b", "yx")):
        (tmp_path / name / "d").mkdir(parents=True)
        for file in order:
            (tmp_path / name / "d" / file).write_text(file)
        (tmp_path / name / "l").symlink_to("d/x")
        os.utime(tmp_path / name / "d" / "x", (1, len(name)))
        archive = _archive(tmp_path / name)
        digests.append(archive.digest())
        with tarfile.open(fileobj=archive.finish()) as tar:
            assert tar.getnames() == ["d", "d/x", "d/y", "l"]
        archive.close()
    assert digests[0] == digests[1]
    (tmp_path / "b" / "d" / "x").write_text("z")
    archive = _archive(tmp_path / "b")
    assert archive.digest() != digests[0]
    archive.close()


@pytest.mark.parametrize("target", ["/etc/shadow", "../../x", "d/../../x", ".."])
def test_no_link_leads_out(tmp_path: Path, target: str) -> None:
    (tmp_path / "l").symlink_to(target)
    with pytest.raises(ImageError, match="leads out"):
        _archive(tmp_path)
    _archive(tmp_path, root_system=True).close()


def test_no_folder_is_reached_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "to").symlink_to("/etc")
    with pytest.raises(ImageError, match="no folder that can be read"):
        _archive(tmp_path / "to")


def test_devices_and_pipes_are_refused_and_do_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "p")
    with pytest.raises(ImageError, match="neither file"):
        _archive(tmp_path)
    _archive(tmp_path, root_system=True).close()


def test_size_number_and_depth_are_bounded(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 100)
    os.truncate(tmp_path / "a", 1 << 40)  # holes count
    with pytest.raises(ImageError, match="at most"):
        _archive(tmp_path)
    os.truncate(tmp_path / "a", 100)
    (tmp_path / "b").write_bytes(b"")
    with pytest.raises(ImageError, match="at most 1 files"):
        _archive(tmp_path, ContextLimits(files=1))
    deep = tmp_path
    for _ in range(110):
        deep = deep / "d"
        deep.mkdir()
    with pytest.raises(ImageError, match="at most 100 deep"):
        _archive(tmp_path)


def test_paths_of_a_mapping_stay_inside() -> None:
    archive = Archive(ContextLimits())
    for path in ("../x", "/etc/x", "a/../../x"):
        with pytest.raises(SandboxPathError):
            archive.add_files({path: b""})
    archive.close()

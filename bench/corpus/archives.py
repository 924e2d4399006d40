"""Uploads that are one archive."""

import stat
import tarfile
import zipfile

from bench.corpus.case import Kind
from bench.corpus.workshop import Workshop

ARCHIVES = Kind("archive")


def _link(name: str, target: str) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = tarfile.SYMTYPE, target
    return info


@ARCHIVES.accept
def a_zip(work: Workshop) -> None:
    work.sound()
    work.zip()


@ARCHIVES.accept
def a_packed_tar(work: Workshop) -> None:
    work.sound()
    work.tar(name="upload.tar.gz")


@ARCHIVES.reject(r"path|\.\.")
def a_zip_that_climbs_out(work: Workshop) -> None:
    work.sound()
    work.zip(("../../outside.txt", b"x"))


@ARCHIVES.reject("path|absolute")
def a_zip_with_an_absolute_path(work: Workshop) -> None:
    work.sound()
    work.zip(("/outside.txt", b"x"))


@ARCHIVES.reject("link")
def a_zip_with_a_link(work: Workshop) -> None:
    work.sound()
    info = zipfile.ZipInfo("weights")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    work.zip((info, b"/etc/passwd"))


@ARCHIVES.reject("size|ratio|bomb")
def a_zip_bomb(work: Workshop) -> None:
    work.config()
    work.zip(("adapter_model.safetensors", bytes(200 << 20)))


@ARCHIVES.reject("duplicate")
def a_zip_with_a_file_twice(work: Workshop) -> None:
    work.sound()
    work.zip(("Adapter_Config.json", b"{}"))


@ARCHIVES.reject("unpack|archive")
def a_damaged_zip(work: Workshop) -> None:
    work.sound()
    work.zip()
    path = work.folder / "upload.zip"
    path.write_bytes(path.read_bytes()[:-200])


@ARCHIVES.reject("archive|missing")
def a_zip_in_a_zip(work: Workshop) -> None:
    work.sound()
    work.zip()
    (work.folder / "upload.zip").rename(work.folder / "inner.zip")
    work.zip()


@ARCHIVES.reject("link")
def a_tar_with_a_link(work: Workshop) -> None:
    work.sound()
    work.tar(_link("weights", "../../outside"))


@ARCHIVES.reject("nan|finite")
def a_zip_of_a_poisonous_adapter(work: Workshop) -> None:
    tensors = work.lora()
    next(iter(tensors.values()))[0, 0] = float("nan")
    work.weights(tensors)
    work.config()
    work.zip()


@ARCHIVES.reject("archive")
def an_archive_of_another_kind(work: Workshop) -> None:
    work.file("upload.rar", b"Rar!\x1a\x07\x00" + bytes(200))


@ARCHIVES.reject("nested")
def a_zip_of_a_folder(work: Workshop) -> None:
    work.sound()
    files = [(f"run-7/{path.name}", path.read_bytes()) for path in sorted(work.folder.iterdir())]
    for path in sorted(work.folder.iterdir()):
        path.unlink()
    work.zip(*files)

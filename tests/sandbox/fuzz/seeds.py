"""The seeds: what an attacker would try first, one file each; run this module to write them anew."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections.abc import Iterator

from sandbox.remote import wire
from sandbox.types import ExecResult, Output, Usage
from tests.sandbox.fuzz.targets import CORPUS, TARGETS, TOKEN

BLOCK = 512
Seeds = Iterator[tuple[str, bytes]]


def status() -> Seeds:
    yield "pid", b'{ "child-pid": 4711, "cgroup-namespace": 4026533070 }\n'
    yield "code", b'{ "exit-code": 137 }\n'
    yield "negative", b'{"exit-code": -1, "child-pid": -1}\n{"exit-code": 256}'
    yield "float", b'{"exit-code": 1e999, "child-pid": true}\n{"child-pid": 1.0}'
    yield "huge", b'{"child-pid": 99999999999999999999}\n{"exit-code": ' + b"9" * 5000 + b"}"
    yield "deep", b"[" * 20_000 + b'\n{"a":' * 500
    yield "twice", b'{"exit-code": 0, "exit-code": 1}\n{"child-pid": "1"}\n[]\nnull\n"exit-code"'
    yield "not-utf8", b'\xff\xfe{"exit-code": 0}\n{"\xff": 0}\n\xef\xbb\xbf{}'


def launch() -> Seeds:
    for name, data in status():
        yield name, b"\x03" + data
    yield "own-pid", b'\xff{"child-pid": 1}\n{"child-pid": 2}\n'
    yield "endless", b"\xff" + b"x" * 3000


def notice() -> Seeds:
    token = TOKEN.encode()
    yield "code", b"\x40" + token + b" 7\n"
    yield "bytewise", b"\x00" + token + b" 130\n"
    yield "behind", b"\x10noise\n" + token + b" 0\nmore\n"
    yield "forged", b"\x10" + b"f" * 32 + b" 0\n" + token + b" 1\n"
    yield "glued", b"\x10x" + token + b" 0\n" + token + b"  0\n" + token + b" 0"
    yield "long-code", b"\xff" + token + b" " + b"9" * 6000 + b"\n"
    yield "no-code", b"\x10" + token + b" -1\n" + token + b" \xc2\xb2\n" + token + b"\n" + token + b" 0 \n"
    yield "nul", b"\x08\0\0" + token + b" 1\0\n\r" + token + b" 2\r\n"


def frames() -> Seeds:
    def frame(kind: int, data: bytes, size: int | None = None) -> bytes:
        return bytes([kind, 0, 0, 0]) + (len(data) if size is None else size).to_bytes(4, "big") + data

    yield "both", b"\xff" + frame(1, b"out\n") + frame(2, b"err\n")
    yield "bytewise", b"\x00" + frame(1, b"a") + frame(2, b"b") + frame(1, b"")
    yield "empty-frames", b"\x06" + frame(1, b"") * 40 + frame(2, b"x")
    yield "other-kinds", b"\x09" + frame(0, b"in") + frame(3, b"sys") + frame(255, b"?")
    yield "cut", b"\x09" + frame(1, b"never all of it", 1 << 31)
    yield "nested", b"\x04" + frame(1, frame(2, b"looks like a frame"))
    yield "head-cut", b"\x04" + frame(2, b"x") + b"\x01\0\0"


def _result(**changes: object) -> bytes:
    out, err = Output(head=b"out", total_bytes=10, tail=b"put"), Output(head=b"\xff\0", total_bytes=2)
    usage = Usage(wall_s=0.1, cpu_s=0.05, max_rss_bytes=1 << 20)
    frame = b"".join(
        wire.result_frame(ExecResult(exit_code=0, stdout=out, stderr=err, reason="ok", usage=usage), 0.5)
    )
    length = int.from_bytes(frame[:4], "big")
    head = json.dumps({**json.loads(frame[4 : 4 + length]), **changes}).encode()
    return len(head).to_bytes(4, "big") + head + frame[4 + length :]


def result() -> Seeds:
    yield "sound", _result()
    for reason in ("timeout", "oom", "killed", "sandbox_lost", "nonsense"):
        yield f"reason-{reason}", _result(reason=reason, exit_code=None)
    yield "too-little", _result(stdout_bytes=1)
    yield "too-much", _result(stdout_bytes=2**53, exit_code=2**40)
    yield "not-finite", _result(wall_s=float("inf"), cpu_s=float("nan"))
    yield "negative", _result(exit_code=-(2**31), stderr_bytes=-1)
    yield "parts-lie", _result(parts=[3, 3, 2**53, 2])
    yield "parts-few", _result(parts=[3, 5])
    yield "more-fields", _result(answer=42)


def heads() -> Seeds:
    made = {
        "done": (wire.DoneHead, {}, []),
        "made": (wire.MadeHead, {"id": "0" * 32}, []),
        "content": (wire.ContentHead, {}, [b"\0\xff" * 8]),
        "exec": (wire.ExecHead, {"argv": 1, "env": 1, "timeout_s": None}, [b"ls", b"A", b"b", b".", b""]),
        "run": (wire.RunHead, {"timeout_s": 1.5}, [b"echo"]),
        "read": (wire.ReadHead, {"max_bytes": 1}, [b"../x"]),
        "write": (wire.WriteHead, {}, [b"a/b", b"data"]),
        "restore": (wire.RestoreHead, {"snapshot": "s"}, []),
        "held": (wire.HeldHead, {"bytes": 3}, []),
        "refusal": (wire.RefusalHead, {"code": "lost", "message": "\u202e\x1b[31m"}, []),
        "report": (wire.ReportHead, {"backend": "b", "enforced": ["exec"], "missing": {"a": "why"}}, []),
        "posture": (wire.PostureHead, {"posture": {"deep": [[[{}]]], "n": 1e308}}, []),
    }
    for name, (kind, fields, parts) in made.items():
        yield name, b"".join(wire.encode(kind, fields, parts))
    infinite = b'{"posture":{"n":1e999}}'
    yield "posture-infinite", len(infinite).to_bytes(4, "big") + infinite
    yield "empty", b""
    yield "short", b"\0\0"
    yield "head-larger", b"\xff\xff\xff\xff{}"
    yield "deep", (20_000).to_bytes(4, "big") + b'{"posture":' + b"[" * 19_989
    yield "surrogate", (34).to_bytes(4, "big") + b'{"code":"\\ud800","message":"\\udcff"}'


def entry(
    name: str, kind: bytes = tarfile.REGTYPE, link: str = "", data: bytes = b"", **fields: int
) -> bytes:
    """One member, padded to blocks; `fields` are of `TarInfo`."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, link, len(data)
    for field, value in fields.items():
        setattr(info, field, value)
    return info.tobuf(tarfile.GNU_FORMAT) + data + bytes(-len(data) % BLOCK)


def pax(**records: str) -> bytes:
    """A header of records for the member behind it."""
    text = b""
    for key, value in records.items():
        body = f" {key.replace('__', '.')}={value}\n".encode("utf-8", "surrogateescape")
        size = len(body) + 1
        while len(str(size)) + len(body) != size:
            size = len(str(size)) + len(body)
        text += str(size).encode() + body
    return entry("pax", tarfile.XHDTYPE, data=text)


def _members() -> Seeds:
    yield "sound", entry("a/b", data=b"content") + entry("c", data=b"x" * 600) + entry("d", tarfile.DIRTYPE)
    yield "absolute", entry("/etc/passwd", data=b"x") + entry("//a", data=b"x") + entry("/", tarfile.DIRTYPE)
    yield "dots", entry("../up", data=b"x")
    yield "dots-within", entry("a/../../up", data=b"x")
    yield (
        "dots-harmless",
        entry("./a/./b", data=b"x") + entry(".", tarfile.DIRTYPE) + entry("a/../b", data=b"x"),
    )
    yield "outside-by-name", entry("../outside", data=b"x") + entry("0/../../outside", data=b"x")
    for name, kind in (("link", tarfile.SYMTYPE), ("hard-link", tarfile.LNKTYPE)):
        yield name, entry("out", kind, "/etc") + entry("out/passwd", data=b"x")
        yield f"{name}-up", entry("out", kind, "../outside") + entry("out", data=b"x")
        yield f"{name}-within", entry("a", data=b"x") + entry("b", kind, "a") + entry("b", data=b"y")
    for name, kind in (
        ("character", tarfile.CHRTYPE),
        ("block", tarfile.BLKTYPE),
        ("fifo", tarfile.FIFOTYPE),
    ):
        yield f"device-{name}", entry("d", kind, devmajor=1, devminor=5)
    yield "unknown-type", entry("u", b"Z", data=b"x") + entry("v", b"7", data=b"contiguous")
    yield "set-user-id", entry("s", data=b"x", mode=0o6777, uid=0, gid=0)
    yield "huge-size", entry("h", data=b"x", size=(1 << 33) - 1) + entry("h", size=1 << 60)
    yield "negative-size", entry("n", size=-1024, data=b"") + entry("n", size=-512)
    yield "negative-long-name", entry("n", tarfile.GNUTYPE_LONGNAME, size=-1024) + entry("a", data=b"x")
    yield "file-as-folder", entry("a", data=b"x") + entry("a/b", data=b"y") + entry("a", tarfile.DIRTYPE)
    yield "same-twice", entry("a", data=b"x") + entry("a", data=b"y")
    yield "deep", entry("d/" * 40 + "f", data=b"x") + pax(path="d/" * 300 + "f") + entry("x", data=b"x")
    yield "many", b"".join(entry(f"f{number}") for number in range(60))
    yield "names", entry("n\\\n\x1b[31m", data=b"x") + entry("\udcff", data=b"x") + entry("", data=b"x")
    yield (
        "link-of-folder",
        entry("a", tarfile.DIRTYPE) + entry("a", tarfile.SYMTYPE, "..") + entry("a/x", data=b"x"),
    )


def _headers() -> Seeds:
    """Members that describe the next one."""
    yield "long-name", entry("n", tarfile.GNUTYPE_LONGNAME, data=b"l" * 300 + b"\0") + entry("x", data=b"x")
    long = entry("n", tarfile.GNUTYPE_LONGNAME, data=b"../" * 60 + b"outside\0")
    yield "long-name-dots", long + entry("x", data=b"x")
    yield "long-link", entry("n", tarfile.GNUTYPE_LONGLINK, data=b"/etc\0") + entry("x", tarfile.SYMTYPE)
    yield "long-name-last", entry("n", tarfile.GNUTYPE_LONGNAME, data=b"a\0")
    chain = entry("n", tarfile.GNUTYPE_LONGNAME) * 450
    yield "long-names-nested", gzip.compress(chain + entry("x", data=b"x"), mtime=0)
    yield "pax-path", pax(path="../up") + entry("x", data=b"x")
    yield "pax-nul", pax(path="a\0b") + entry("x", data=b"x")
    yield "pax-size", pax(size="99999999999") + entry("x", data=b"x")
    yield "pax-size-negative", pax(size="-1024") + entry("x", data=b"x")
    yield "pax-numbers", pax(mtime="nan", uid="1e9", size="inf") + entry("x", data=b"x")
    yield "pax-link", pax(linkpath="/etc/passwd") + entry("x", tarfile.SYMTYPE, "y")
    yield "pax-charset", pax(hdrcharset="BINARY", path="\udcff\udcfe") + entry("x", data=b"x")
    yield "pax-length", entry("p", tarfile.XHDTYPE, data=b"0 path=a\n99999999999 a=b\n-5 x=y\n")
    yield "pax-digits", entry("p", tarfile.XHDTYPE, data=b"1" * 4000)
    digits = entry("p", tarfile.XHDTYPE, data=b"1" * 100_000)
    yield "pax-digits-many", gzip.compress(digits + entry("x", data=b"x"), mtime=0)
    yield "pax-global-many", gzip.compress(entry("g", tarfile.XGLTYPE, data=b"6 a=b\n" * 900) * 40, mtime=0)
    yield "pax-global", entry("g", tarfile.XGLTYPE, data=b"12 path=../g\n") + entry("x", data=b"x")
    yield "pax-nested", gzip.compress(pax(a="b") * 250 + entry("x", data=b"x"), mtime=0)
    yield "pax-sparse", pax(GNU__sparse__map="0,1,5,1", GNU__sparse__size="10") + entry("x", data=b"ab")
    sparse = pax(GNU__sparse__major="1", GNU__sparse__minor="0", GNU__sparse__realsize="99999999999")
    yield "pax-sparse-1", sparse + entry("x", data=b"1\n0\n1\n".ljust(512, b"\0") + b"a")
    yield "sparse", entry("s", tarfile.GNUTYPE_SPARSE, data=b"x" * 100)
    isextended = bytearray(entry("s", tarfile.GNUTYPE_SPARSE))
    isextended[482] = 1
    yield "sparse-extended", bytes(isextended) * 4


def tar() -> Seeds:
    end = bytes(2 * BLOCK)
    for name, data in (*_members(), *_headers()):
        yield name, data if data.startswith(b"\x1f\x8b") else data + end
    sound = dict(_members())["sound"]
    yield "truncated-header", sound[:300]
    yield "truncated-data", sound[:515]
    yield "no-end", sound
    yield "behind-end", sound + end + entry("late", data=b"x")
    yield "checksum", sound[:150] + b"9" + sound[151:]
    yield "base-256", sound[:124] + b"\x80" + b"\xff" * 11 + sound[136:]
    yield "base-256-negative", sound[:124] + b"\xff" * 11 + b"\x00" + sound[136:]
    packed = gzip.compress(sound + end, mtime=0)
    yield "gzip", packed
    yield "gzip-cut", packed[:-20]
    yield "gzip-twice", gzip.compress(packed, mtime=0)
    yield "gzip-two-members", packed + gzip.compress(b"tail", mtime=0)
    yield "bomb-file", gzip.compress(entry("z", data=bytes(2 << 20)) + end, mtime=0)
    yield "bomb-header", gzip.compress(entry("n", tarfile.GNUTYPE_LONGNAME, data=b"n" * (1 << 20)), mtime=0)
    yield "bomb-entries", gzip.compress(b"".join(entry("e") for _ in range(2000)), mtime=0)
    yield "empty", b""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as made:
        made.addfile(tarfile.TarInfo("\u00fc" * 120))
    yield "pax-by-python", out.getvalue()


def tree() -> Seeds:
    yield "file", b"file a/b content\nread a/b\nwrite a/b new\nread ./a//b\nread /workspace/a/b"
    yield "link", b"link a /dev/shm\nread a\nread a/outside\nwrite a/x data\nwrite a data"
    yield "link-up", b"folder d\nlink d/a ../../outside\nread d/a\nwrite d/a data\nlink e ..\nread e/outside"
    yield "link-circle", b"link a b\nlink b a\nread a\nread a/b\nwrite b/c x"
    yield "link-long", b"link a " + b"a/" * 200 + b"\nread a"
    yield "proc-link", b"link a /proc/self/root\nlink b /proc/self/fd/0\nread a/etc/passwd\nread b\nread b/"
    yield "hard", b"file a x\nhard b a\nread b\nwrite b y\nread a"
    yield "hard-link-of-link", b"link a ../outside\nhard b a\nread b"
    yield "pipe", b"pipe p\nread p\nwrite p x\nread p/x"
    yield "socket", b"socket s\nread s\nwrite s x"
    yield "device", b"device z\nread z\nwrite z x\nread z/z"
    yield "sparse", b"sparse s\nread s\nwrite s x\nread s"
    yield "dots", b"read ../outside\nwrite ../new x\nread a/../../outside\nread ..\nread /\nread /etc/passwd"
    yield (
        "workspace",
        b"read /workspace\nread /workspace/../etc/passwd\nread /workspacex\nwrite /workspace x\nread .",
    )
    yield (
        "names",
        b"file \xff x\nread \xff\nfile a\tb x\nread a\tb\nread \nread a\0b\nwrite a\0b x\nfile .write-0 x",
    )
    yield "deep", b"write " + b"d/" * 99 + b"f x\nwrite " + b"d/" * 101 + b"f x\nread " + b"d/" * 500
    yield "long-name", b"write " + b"n" * 256 + b" x\nread " + b"n" * 255 + b"\nwrite " + b"n" * 255 + b" x"
    yield "layers", b"layer\nfile a below\nfolder d\nfile d/x 1\nread a\nwrite a above\nread a\nread d/x"
    yield "whiteout", b"whiteout a\nlayer\nfile a below\nread a\nwrite a above\nread a\nwrite a/b x"
    yield "opaque", b"opaque d\nfile d/new 1\nlayer\nfile d/old 2\nread d/old\nread d/new\nwrite d/old 3"
    yield "kinds-mixed", b"file d x\nlayer\nfolder d\nfile d/y 1\nread d/y\nread d\nwrite d/y 2"
    yield "link-over-folder", b"link d /\nlayer\nfolder d\nfile d/outside 1\nread d/outside\nwrite d/x 2"
    yield (
        "whiteout-folder",
        b"whiteout d\nlayer\nfile d/a 1\nlayer\nfile d/b 2\nwrite d/c 3\nread d/a\nread d/c",
    )
    yield "hard-over-layers", b"file a x\nhard b a\nlayer\nfile a y\nhard c a\nread c\nwrite c z\nread a"


def connect() -> Seeds:
    yield "sound", b"CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443\r\n\r\n"
    yield "below", b"CONNECT a.b.example.net.:8443 HTTP/1.1\r\nHost: x\r\n\r\n"
    yield "address", b"CONNECT 169.254.169.254:80 HTTP/1.1\r\nHost: x\r\n\r\n"
    yield "address-6", b"CONNECT [::1]:443 HTTP/1.1\r\nHost: x\r\n\r\n"
    yield "number", b"CONNECT 2130706433:443 HTTP/1.1\r\nHost: x\r\n\r\n"
    yield "user", b"CONNECT example.org:443@evil.test:443 HTTP/1.1\r\nHost: x\r\n\r\n"
    yield "suffix", b"CONNECT example.org.evil.test:443 HTTP/1.1\r\nHost: x\r\n\r\n"
    yield "nul", b"CONNECT example.org\0.evil.test:443 HTTP/1.1\r\nHost: x\r\n\r\n"
    yield "letters", b"CONNECT ex\xc3\xa4mple.org:443 HTTP/1.1\r\nHost: x\r\n\r\n"
    yield "port", b"CONNECT example.org:0443 HTTP/1.1\r\nHost: x\r\n\r\nCONNECT a:65536 HTTP/1.1\r\n\r\n"
    yield "long-port", b"CONNECT example.org:" + b"4" * 5000 + b" HTTP/1.1\r\nHost: x\r\n\r\n"
    yield "early-data", b"CONNECT example.org:443 HTTP/1.1\r\nHost: x\r\n\r\n\x16\x03\x01"
    yield "get", b"GET http://example.org/ HTTP/1.1\r\nHost: example.org\r\nContent-Length: 5\r\n\r\nhello"
    yield (
        "smuggled",
        b"CONNECT example.org:443 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    )
    yield "endless", b"CONNECT example.org:443 HTTP/1.1\r\nX: " + b"x" * 17_000
    yield "not-http", b"\x16\x03\x01\x02\x00\x01\x00" + b"\n" * 50
    yield "socks", b"\x05\x01\x00"


def main() -> None:
    for make in (status, launch, notice, frames, result, heads, tar, tree, connect):
        folder = CORPUS / make.__name__
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in make():
            (folder / name).write_bytes(data)
    assert {folder.name for folder in CORPUS.iterdir()} >= set(TARGETS)


if __name__ == "__main__":
    main()

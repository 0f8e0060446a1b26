"""Run in the sandbox as a script: `forward.py SOCKET PORT PROGRAM ...`. It imports nothing of ours.

It listens on the sandbox's loopback, leaves a process that passes bytes between that port and the Unix socket of the
proxy, and becomes the program. Whoever kills the process cuts off his own network, and nothing else.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys

_CHUNK = 65536
_MOST = 100


def main(path: str, port: int, argv: list[str]) -> None:
    """Listen, leave the passing process, and become `argv`."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
    except OSError:  # a program of an open shell holds the port: its loopback is this one's too
        listener.close()
    else:
        listener.listen(_MOST)
        if os.fork() == 0:
            _serve(listener, path)
        listener.close()
    try:
        os.execvp(argv[0], argv)
    except FileNotFoundError as error:
        os.write(2, f"{argv[0]}: {error.strerror}\n".encode())
        os._exit(127)
    except OSError as error:
        os.write(2, f"{argv[0]}: {error.strerror}\n".encode())
        os._exit(126)


def _serve(listener: socket.socket, path: str) -> None:
    os.setsid()
    for fd in os.listdir("/proc/self/fd"):
        if int(fd) != listener.fileno():
            with contextlib.suppress(OSError):  # the folder's own descriptor
                os.close(int(fd))
    import asyncio  # here, so that the program does not wait for it

    async def flow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()
        writer.write_eof()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            above, below = await asyncio.open_unix_connection(path)
            try:
                await asyncio.gather(flow(reader, below), flow(above, writer))
            finally:
                below.close()
        finally:
            writer.close()

    async def run() -> None:
        server = await asyncio.start_server(serve, sock=listener)
        await server.serve_forever()

    asyncio.run(run())


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3:])

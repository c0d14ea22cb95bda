"""Joins connections to a port of this machine's loopback with an address, also one in a network namespace.

python relay.py PORT ADDRESS:PORT [NAMESPACE]
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import socket
import sys

CLONE_NEWNET = 0x40000000


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy until one side closes."""
    with contextlib.suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    writer.close()


async def serve(listener: socket.socket, host: str, port: int) -> None:
    """Accept connections and join each with one to the other side."""

    async def join(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection(host, port)
        except OSError:
            writer.close()
            return
        await asyncio.gather(copy(reader, far_writer), copy(far_reader, writer))

    await (await asyncio.start_server(join, sock=listener)).serve_forever()


def main(port: str, target: str, namespace: str = "") -> None:
    """Listen here, then move into the namespace: sockets stay where they were made."""
    listener = socket.create_server(("127.0.0.1", int(port)))
    if namespace:
        handle = os.open(f"/run/netns/{namespace}", os.O_RDONLY)
        if ctypes.CDLL(None, use_errno=True).setns(handle, CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"cannot enter network namespace {namespace}")
    host, _, far = target.rpartition(":")
    asyncio.run(serve(listener, host, int(far)))


if __name__ == "__main__":
    main(*sys.argv[1:])

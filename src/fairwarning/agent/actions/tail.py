"""The end of what a program says, read as it comes so that the program never has to wait."""

import asyncio
import os
from types import TracebackType

KEPT_BYTES = 32_768
_READ_BYTES = 65_536
_LAST_READS = 64


class Tail:
    """A pipe. What a program left running in the background may hold it open; we do not wait."""

    def __init__(self) -> None:
        self._read, self.to_write = os.pipe()
        os.set_blocking(self._read, False)
        self._kept = b""
        self._is_cut = False
        self._is_listening = False

    def __enter__(self) -> "Tail":
        return self

    def __exit__(
        self,
        type_: type[BaseException] | None,
        raised: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()
        os.close(self._read)
        if self.to_write >= 0:
            os.close(self.to_write)

    def listen(self) -> None:
        """Once the program has its end of the pipe."""
        os.close(self.to_write)
        self.to_write = -1
        self._is_listening = True
        asyncio.get_running_loop().add_reader(self._read, self._take)

    def text(self) -> str:
        for _ in range(_LAST_READS):
            if not self._take():
                break
        start = "… " if self._is_cut else ""
        return start + self._kept.decode(errors="replace")

    def _take(self) -> bool:
        """False if there is nothing more for now."""
        try:
            read = os.read(self._read, _READ_BYTES)
        except BlockingIOError:
            return False
        if not read:
            self._stop()
            return False
        whole = self._kept + read
        self._is_cut = self._is_cut or len(whole) > KEPT_BYTES
        self._kept = whole[-KEPT_BYTES:]
        return True

    def _stop(self) -> None:
        if self._is_listening:
            asyncio.get_running_loop().remove_reader(self._read)
            self._is_listening = False

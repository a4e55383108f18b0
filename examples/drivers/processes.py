"""A driver for instances that are processes: FOLDER/HANDLE.pid has the number of the process."""

import os
import signal
from pathlib import Path

from fairwarning import drivers
from fairwarning.drivers import DriverFailed, Found, KeyFiles, handle_of


class Processes:
    SETTINGS = drivers.DriverSettings(
        driver="processes", settings=(drivers.Setting(name="folder", is_required=True),)
    )

    def __init__(self, clock):
        self.clock = clock

    async def find(self, order):
        with KeyFiles(order.settings["folder"]).of(order) as key:
            return key.state

    async def do(self, order, alarm, lease):
        if order.type is not drivers.EventType.FREEZE:
            raise DriverFailed(f"this driver can only freeze, and this is a {order.type}")
        with KeyFiles(order.settings["folder"]).of(order) as key:
            key.refuse_lower(order.attempt)
            if key.state is Found.DONE:
                return
            key.state = Found.RUNNING
            until = key.notes.setdefault("until", self.clock.now() + order.duration_s * 1000)
            self.send(order, signal.SIGSTOP)
        try:
            while self.clock.now() < until:
                await alarm.wait(until)
        finally:  # Also if the server stops: no instance may stay frozen.
            with KeyFiles(order.settings["folder"]).of(order) as key:
                if key.attempt == order.attempt and key.state is not Found.DONE:
                    self.send(order, signal.SIGCONT)
                    key.state = Found.DONE

    def send(self, order, number):
        folder = Path(order.settings["folder"])
        try:
            files = [folder / f"{handle_of(each)}.pid" for each in order.instances]
            for pid in [int(file.read_text()) for file in files]:
                os.kill(pid, number)
        except (OSError, ValueError) as error:
            raise DriverFailed(str(error)) from None

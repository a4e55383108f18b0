"""`fairwarning driver check libvirt`, on the test driver of a real libvirtd."""

from pathlib import Path

from fairwarning.drivers.libvirt.libvirt_calls import LibvirtHost
from tests.driver_check.program import failures, run_check


def test_the_driver_keeps_every_rule(libvirtd: str, host: LibvirtHost, tmp_path: Path) -> None:
    code, report, errors = run_check(tmp_path, "libvirt", "--set", f"uri={libvirtd}")
    assert report, errors
    assert failures(report) == {}
    assert {each["verdict"] for each in report["results"]} == {"passed"}
    assert code == 0


def test_another_hypervisor_needs_domains_that_may_be_lost(tmp_path: Path) -> None:
    code, _, errors = run_check(tmp_path, "libvirt", "--set", "uri=qemu:///system")
    assert code == 2
    assert "name domains that may be lost with --instance" in errors

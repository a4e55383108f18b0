"""Sizes of machines: a few that everybody knows. Any other name will do as well."""

from typing import NamedTuple

from fairwarning.control.arm.call import Json


class Size(NamedTuple):
    name: str
    cores: int
    memory_gb: int
    disks: int

    def json(self) -> Json:
        return {
            "name": self.name,
            "numberOfCores": self.cores,
            "osDiskSizeInMB": 1_047_552,
            "resourceDiskSizeInMB": 0,
            "memoryInMB": self.memory_gb * 1_024,
            "maxDataDiskCount": self.disks,
        }

    def sku(self, location: str) -> Json:
        capabilities = {
            "vCPUs": self.cores,
            "MemoryGB": self.memory_gb,
            "MaxDataDiskCount": self.disks,
            "LowPriorityCapable": True,
            "HyperVGenerations": "V1,V2",
            "CpuArchitectureType": "x64",
        }
        return {
            "resourceType": "virtualMachines",
            "name": self.name,
            "tier": "Standard",
            "size": self.name.removeprefix("Standard_"),
            "family": "standardFamily",
            "locations": [location],
            "locationInfo": [{"location": location, "zones": ["1", "2", "3"], "zoneDetails": []}],
            "capabilities": [{"name": n, "value": str(v)} for n, v in capabilities.items()],
            "restrictions": [],
        }


SIZES = (
    Size("Standard_B1s", 1, 1, 2),
    Size("Standard_B2s", 2, 4, 4),
    Size("Standard_D2as_v5", 2, 8, 4),
    Size("Standard_D2s_v3", 2, 8, 4),
    Size("Standard_D2s_v5", 2, 8, 4),
    Size("Standard_D4s_v5", 4, 16, 8),
    Size("Standard_DS1_v2", 1, 4, 4),
    Size("Standard_DS2_v2", 2, 7, 8),
    Size("Standard_E2s_v5", 2, 16, 4),
    Size("Standard_F2s_v2", 2, 4, 4),
)

"""Packs in use: finding devices, loading packs onto them, arrays, and calling kernels."""

from gristmill.runtime.devices import DeviceList, DeviceRow, Runtimes, device, devices
from gristmill.runtime.loaded_pack import LoadedPack
from gristmill.runtime.loading import load

__all__ = ["DeviceList", "DeviceRow", "LoadedPack", "Runtimes", "device", "devices", "load"]

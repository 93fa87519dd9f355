"""Writes air_temperature_small.zarr, the store of the examples in the documentation.

Source: air_temperature_small.nc of the PyPI package hvsampledata, 20 time steps (24 to 28 February 2014, every six
hours) of NCEP/NMC reanalysis air temperature over North America, 25 x 53 cells, int16 packed by 0.01.
Licence: BSD-3-Clause, LICENSE.hvsampledata. Versions: requirements.txt. The same bytes on every run.

    python -m venv venv && venv/bin/pip install -r requirements.txt
    venv/bin/python make_air_temperature_small.py
"""

from pathlib import Path

import hvsampledata
import xarray as xr
from zarr.codecs import ZstdCodec

SOURCE = Path(hvsampledata.__file__).parent / "_data" / "air_temperature_small.nc"
TARGET = Path(__file__).parent / "air_temperature_small.zarr"

with xr.open_dataset(SOURCE, decode_cf=False) as packed:
    dataset = packed.load()
for variable in dataset.variables.values():
    variable.encoding = {}
encoding = {name: {"compressors": ZstdCodec(level=5)} for name in dataset.variables}
encoding["air"]["chunks"] = (5, 25, 27)
dataset.to_zarr(TARGET, mode="w", zarr_format=3, consolidated=True, encoding=encoding)

"""A worker: python -m compare.workers FRAMEWORK --threads N --device DEVICE"""

import argparse
import importlib

from . import device
from .serve import serve

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("framework")
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--device", default="cpu")
    a = parser.parse_args()
    device.NAME = a.device
    serve(importlib.import_module(f"compare.workers.{a.framework}"), a.threads)

"""A worker: python -m compare.workers FRAMEWORK --threads N"""

import argparse
import importlib

from .serve import serve

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("framework")
    parser.add_argument("--threads", type=int, required=True)
    a = parser.parse_args()
    serve(importlib.import_module(f"compare.workers.{a.framework}"), a.threads)

"""What the Python that runs it has installed otherwise than a lock says: unlocked.py LOCK. Prints nothing where all is as it says."""

import importlib.metadata
import re
import sys


def installed(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


with open(sys.argv[1]) as lock:
    locked = re.findall(r"^([\w.-]+)==([^\s;]+)", lock.read(), re.MULTILINE)
found = [(name, version, installed(name)) for name, version in locked]
other = [f"{name} {here} where the lock has {version}" if here else f"no {name}" for name, version, here in found if here != version]
print(", ".join(other))

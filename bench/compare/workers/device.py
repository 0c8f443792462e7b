"""Where this worker computes: "cpu", "cuda", or "emulated", which Plumbline alone has. Its command line says so before the framework is
imported, since frameworks look for their devices then."""

NAME = "cpu"

"""The commands that records come from: those that make a picture again."""


def commands_of(records):
    """As they were called, each once, the first one first."""
    runs = {r["run"]["id"]: r["run"] for r in records}.values()
    return list(dict.fromkeys(run["command"] for run in sorted(runs, key=lambda run: run["started"]) if run["command"]))


def picture(svg, records=()):
    """A picture of the page, with the commands of the records that it is drawn from."""
    return {"svg": svg, "commands": commands_of(records)}

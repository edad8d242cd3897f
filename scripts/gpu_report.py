"""The report of gpu_run.py: each stage's figures beside its goals, from the raw results alone."""

import json

from gpu_stages import COLD_WAYS, FLEET_PLANNERS, PLANNERS, busy_factors

WANTED = {"correctness": "all tests pass, and all outputs are equal to the unsplit model's and to torch's",
          "prediction": "mean error of 3 % or less",
          "versus": "at most 1.02 times the better of torch's eager and graph, at each precision",
          "cold": "1.5 times as fast as copy-then-run or more; mean error of predictions 3 % or less",
          "links": "the cluster file predicts each copy within 5 %",
          "stages": "a crossover of two convolutions; the planned order is the measured order",
          "unequal": "the measured gains are within 2 points of the predicted ones",
          "two-devices": "at most 1.02 times the better device alone"}


INFORMATION = ""  # in place of a verdict: a figure without a goal of its own


def milliseconds(us) -> str:
    return "-" if us is None else f"{us / 1000:.4g} ms"


def run_of(steps: dict, name: str) -> dict | None:
    step = steps.get(name)
    return step["files"].get("run", {}).get("run") if step and step["status"] == 0 else None


def printed(step: dict):
    """The JSON that the step printed, however it ended; None if there is none."""
    try:
        return json.loads(step["out"])
    except json.JSONDecodeError:
        return None


def json_of(steps: dict, name: str):
    """What the step printed; None without a result."""
    step = steps.get(name)
    return printed(step) if step and step["status"] == 0 else None


def time_of(steps: dict, name: str) -> float | None:
    run = run_of(steps, name)
    return run["measured_us"] if run else None


def error_of(run: dict) -> float:
    return abs(run["measured_us"] / run["predicted_us"] - 1)


def models_of(steps: dict, ending: str) -> list[str]:
    return [name[:-len(ending)] for name in steps if name.endswith(ending)]


def verdict_text(good) -> str:
    return "" if good == INFORMATION else "not measured" if good is None else "reached" if good else "not reached"


def mean_error(name: str, runs: list[dict]) -> tuple[str, str, bool | None]:
    errors = [error_of(run) for run in runs if run["predicted_us"]]
    if not errors:
        return name, "-", None
    mean = sum(errors) / len(errors)
    return name, f"{mean:.1%} of {len(errors)}, at most {max(errors):.1%}", mean <= 0.03


# Each gives rows of a name, a figure, and whether the goal is reached: None if that is not measured, or INFORMATION.


def correctness(steps: dict):
    for name in ("CUDA tests", "torch tests"):
        step = steps.get(name)
        if step is None:
            yield name, "-", None
            continue
        said = [line.strip() for line in step["out"].splitlines() if "PASSED" in line or "SKIPPED" in line
                or "FAILED  ]" in line]
        skipped = any("SKIPPED" in line for line in said)
        yield name, "; ".join(dict.fromkeys(said[-3:])) or "-", None if skipped and step["status"] == 0 \
            else step["status"] == 0
    outputs = {name: run_of(steps, name) for name in steps if name.startswith("outputs ")}
    equal = sum(1 for run in outputs.values() if run and run["outputs_equal"])
    yield "outputs equal", f"{equal} of {len(outputs)} models", equal == len(outputs) if outputs else None
    beside = [(printed(step) or {}).get("outputs_equal") for name, step in steps.items()
              if name.startswith("torch ") and name != "torch tests"]
    yield "outputs equal to torch's", f"{beside.count(True)} of {len(beside)} models", \
        False if False in beside else None if None in beside or not beside else True


def prediction(steps: dict):
    yield mean_error("predicted against measured", [run for run in (run_of(steps, name) for name in steps) if run])


def versus(steps: dict):
    for case in models_of(steps, " heddle"):
        ours = time_of(steps, f"{case} heddle")
        torch, compiled = json_of(steps, f"{case} torch") or {}, json_of(steps, f"{case} compile") or {}
        runtime = json_of(steps, f"{case} onnxruntime") or {}
        others = {"eager": torch.get("eager_us"), "graph": torch.get("graph_us"),
                  "compile": compiled.get("compile_us"), "ONNX Runtime": runtime.get("run_us")}
        best = min((others[way] for way in ("eager", "graph") if others[way]), default=None)
        figure = ", ".join(f"{way} {milliseconds(us)}" for way, us in {"Heddle": ours, **others}.items() if us)
        if ours and best:
            yield case, f"{ours / best:.3f} ({figure})", ours / best <= 1.02
        else:
            yield case, figure or "-", None


def cold(steps: dict):
    runs = []
    ways = list(COLD_WAYS)
    for model in models_of(steps, " " + ways[0]):
        times = {way: time_of(steps, f"{model} {way}") for way in ways}
        runs += [run for run in (run_of(steps, f"{model} {way}") for way in ways) if run]
        for way in ways[1:]:
            if times[ways[0]] and times[way]:
                gain = times[ways[0]] / times[way]
                yield f"{model}: {way}", f"{gain:.2f} times as fast", gain >= 1.5 if way == ways[-1] else INFORMATION
    yield mean_error("predictions", runs)


def links(steps: dict):
    again = json_of(steps, "copies again")
    if again is None:
        yield "copies", "-", None
        return
    ends = {frozenset((link["from"], link["to"])): link for link in (json_of(steps, "copies") or again)["links"]}
    for way in again["copies"]:
        link = ends.get(frozenset((way["from"], way["to"])))
        if link is None:
            continue
        errors = [abs((link["latency_us"] + 1e6 * size / link["bytes_per_s"]) / us - 1) for size, us in way["times"]]
        yield f"{way['from']} to {way['to']}", "off by " + ", ".join(
            f"{error:.1%} at {size // 1024} KiB" for (size, _), error in zip(way["times"], errors)), max(errors) <= 0.05
    for at_once in again["at_once"]:
        # A shared way takes transfers one after the other: half of the free rate for two, a third for three.
        ways = max(2, len(at_once["devices"]))
        expected = 1 / ways if at_once["shared"] else 1
        error = abs(at_once["part"] / expected - 1)
        yield f"at once: {', '.join(at_once['devices'])}", f"{at_once['part']:.1%} of the free rate, planned " \
            f"{expected:.1%}: off by {error:.1%}", error <= 0.05
    for reads in again["in_place"]:
        yield f"host access of {reads['device']}", f"{reads['bytes_per_s'] / 1e9:.4g} GB/s in place", INFORMATION
        # Plans let direct host access and loads take turns on the link.
        error = abs(reads["part"] / 0.5 - 1)
        yield f"host access of {reads['device']} under copies", f"{reads['part']:.1%} of the free rate, planned " \
            f"50.0%: off by {error:.1%}", error <= 0.05


def pairs_of(steps: dict, name: str) -> list[dict]:
    plan = json_of(steps, name) or {}
    return [pair for fit in plan.get("stages", {}).get("fits", []) for pair in fit["pairs"]]


def figure_one(steps: dict) -> list[tuple[int, float, float]]:
    """Sizes, with the time of two convolutions in turn and at once."""
    found = []
    for name in steps:
        if name.startswith("two convolutions "):
            found += [(int(name.split()[-1]), sum(pair["alone_us"]), pair["at_once_us"])
                      for pair in pairs_of(steps, name)]
    return sorted(found)


def stages(steps: dict):
    ratios = [(size, turn / once) for size, turn, once in figure_one(steps)]
    for size, ratio in ratios:
        yield f"two convolutions, {size} x {size}", f"in turn over at once {ratio:.3f}", INFORMATION
    if ratios:
        slower = next((size for size, ratio in ratios if ratio <= 1), None)
        crossed = slower is not None and ratios[0][1] > 1
        yield "crossover", f"at {slower}" if crossed else "none", crossed
    for model in models_of(steps, f" {PLANNERS[0]}"):
        pairs = pairs_of(steps, f"t(S) {model}")
        if pairs:
            errors = [abs(pair["model_us"] / pair["at_once_us"] - 1) for pair in pairs]
            yield f"{model}: t(S) of {len(pairs)} pairs", f"the model is off by {sum(errors) / len(errors):.1%}, " \
                f"at most {max(errors):.1%}", INFORMATION
        runs = {planner: run_of(steps, f"{model} {planner}") for planner in PLANNERS}
        runs = {planner: run for planner, run in runs.items() if run}
        first, graph = runs.get(PLANNERS[0]), (json_of(steps, f"{model} torch") or {}).get("graph_us")
        for planner, run in runs.items():
            beside = f", {graph / run['measured_us']:.3f} times a CUDA graph" if graph else ""
            if first:
                yield f"{model}: {planner}", f"{first['measured_us'] / run['measured_us']:.3f} times as fast as " \
                    f"sequential{beside}", INFORMATION
        ordered = sorted(runs, key=lambda planner: runs[planner]["predicted_us"])
        # Plans within 1 % of each other have no order.
        wrong = [f"{a} before {b}" for at, a in enumerate(ordered) for b in ordered[at + 1:]
                 if runs[b]["predicted_us"] > 1.01 * runs[a]["predicted_us"]
                 and runs[a]["measured_us"] > 1.01 * runs[b]["measured_us"]]
        yield f"{model}: order", "; ".join(wrong) + " is wrong" if wrong else "as planned", \
            not wrong if len(runs) > 1 else None


def pools_against_np(steps: dict):
    name = "pooled pipelines against np, as served"
    in_time = {}
    for way in ("simulated", "served"):
        for planner in FLEET_PLANNERS:
            found = json_of(steps, f"{planner} {way}")
            found = found[0] if isinstance(found, list) else found
            in_time[way, planner] = found["requests"]["in_time"] if found else None
    if not all(in_time.values()):
        return name, "-", None
    pools, whole = FLEET_PLANNERS
    gain = {way: in_time[way, pools] / in_time[way, whole] - 1 for way in ("simulated", "served")}
    return name, f"{gain['served']:+.1%} requests in time, {gain['simulated']:+.1%} simulated", \
        abs(gain["served"] - gain["simulated"]) <= 0.02


def unequal(steps: dict):
    factors = busy_factors({f"unequal/{name}": step for name, step in steps.items()})
    for part, factor in factors.items():
        yield f"{part} while all are busy", f"{factor:.3f} of its speed alone", INFORMATION
    for whole in models_of(steps, " on p0,p1,p2"):
        alone = [run_of(steps, f"{whole} on {part}") for part in ("p0", "p1", "p2")]
        pooled = run_of(steps, f"{whole} on p0,p1,p2")
        if pooled is None or None in alone:
            yield f"{whole}: gain", "-", None
            continue
        gain = {key: min(run[key] for run in alone) / pooled[key] - 1 for key in ("measured_us", "predicted_us")}
        figure = f"{gain['measured_us']:.1%} measured, {gain['predicted_us']:.1%} predicted at shared rates"
        yield f"{whole}: gain over the best part", figure, \
            abs(gain["measured_us"] - gain["predicted_us"]) <= 0.02
    yield pools_against_np(steps)


def two_devices(steps: dict):
    both = [name for name in steps if "," in name.split(" on ")[-1]]
    for name in both:
        model, devices = name.split(" on ")
        alone = [time_of(steps, f"{model} on {device}") for device in devices.split(",")]
        together = time_of(steps, name)
        if together is None or None in alone:
            yield name, "-", None
            continue
        yield name, f"{together / min(alone):.3f} times the better alone", together / min(alone) <= 1.02


GOALS = {"correctness": correctness, "prediction": prediction, "versus": versus, "cold": cold, "links": links,
         "stages": stages, "unequal": unequal, "two-devices": two_devices}


def row(name: str, step: dict) -> str:
    said = "ended well" if step["status"] == 0 else \
        f"{'not here' if step['optional'] else 'failed'} (status {step['status']})"
    figure = predicted = error = outputs = "-"
    run = step["files"].get("run", {}).get("run") if step["status"] == 0 else None
    if run:
        figure, predicted = milliseconds(run["measured_us"]), milliseconds(run["predicted_us"])
        if run["predicted_us"]:
            error = f"{run['measured_us'] / run['predicted_us'] - 1:+.1%}"
        outputs = "equal" if run["outputs_equal"] else "NOT EQUAL" if run["verified"] else "not compared"
    elif step["status"] == 0 and step["out"].startswith(('{"torch"', '{"onnxruntime"')):
        figure = ", ".join(f"{key[:-3]} {milliseconds(us)}" for key, us in json.loads(step["out"]).items()
                           if key.endswith("_us") and us is not None)
    return f"| {name} | {figure} | {predicted} | {error} | {outputs} | {said} |"


def tables_of_pairs(steps: dict) -> list[str]:
    lines = []
    for name in steps:
        pairs = pairs_of(steps, name) if name.startswith("t(S) ") else []
        if pairs:
            lines += ["", f"{name}:", "", "| at once | each alone | t(S) measured | by the model |"]
            lines.append("|---|---|---|---|")
        for pair in pairs:
            alone = ", ".join(milliseconds(us) for us in pair["alone_us"])
            lines.append(f"| {', '.join(pair['units'])} | {alone} | {milliseconds(pair['at_once_us'])} | "
                         f"{milliseconds(pair['model_us'])} |")
    return lines


def verdict(rows: list) -> str:
    goals = [good for _, _, good in rows if good != INFORMATION]
    if False in goals or not any(goals):
        return verdict_text(False if False in goals else None)
    return "reached; the rest is not measured" if None in goals else verdict_text(True)


def report(raw: dict) -> str:
    lines = ["# Heddle on a GPU", "", raw.get("machine", ""), *[f"- {note}" for note in raw.get("notes", [])]]
    if raw["rehearsal"]:
        lines += ["", "A rehearsal on the host: no figure here is a GPU's."]
    parts, summary = [], ["", "| stage | goal | |", "|---|---|---|"]
    for stage, goals in GOALS.items():
        steps = {key.split("/", 1)[1]: step for key, step in raw["steps"].items() if key.split("/", 1)[0] == stage}
        rows = list(goals(steps)) if steps else []
        summary.append(f"| {stage} | {WANTED[stage]} | {verdict(rows)} |")
        parts += ["", f"## {stage}", ""]
        if not steps:
            parts += ["Not run yet."]
            continue
        parts += [f"Goal: {WANTED[stage]}.", "", "| figure | | goal |", "|---|---|---|"]
        parts += [f"| {name} | {figure} | {verdict_text(good)} |" for name, figure, good in rows]
        parts += tables_of_pairs(steps)
        parts += ["", "| step | measured | predicted | error | outputs | |", "|---|---|---|---|---|---|"]
        parts += [row(name, step) for name, step in steps.items()]
        for name, step in steps.items():
            if step["status"] != 0:
                parts += ["", f"{name}:", "```", (step["err"] or step["out"]).strip()[-1000:], "```"]
    return "\n".join(lines + summary + parts) + "\n"

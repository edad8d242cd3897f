"""Plans where and when every piece of a neural network runs on unequal accelerators, and runs it there.

    import heddle as hd

    model = hd.Model("detector.onnx", batch=1)
    cluster = hd.Cluster.discover()
    costs = hd.profile(model, cluster)
    plan = hd.plan(model, cluster, costs, objective="latency", time_limit=3, on_progress=print)
    run = plan.compile().run({"image": image})

Times are in us, sizes in bytes, bandwidths in bytes/s. Errors are exceptions: heddle.Error and its subclasses.
"""

from ._core import (
    Bound,
    Cluster,
    ComparedStep,
    Comparison,
    CompiledPlan,
    CostCell,
    Costs,
    Device,
    ErrorBudget,
    Fleet,
    FleetPlan,
    Grade,
    KeptUnit,
    Measurement,
    Model,
    ModelStatistics,
    Move,
    Objective,
    Origin,
    OutputError,
    Plan,
    PrecisionChoice,
    Progress,
    Run,
    Segment,
    Session,
    Simulation,
    Termination,
    Whatif,
    choose_buckets,
    grade,
    plan,
    planners,
    profile,
    version,
)
from ._deploy import deploy
from ._errors import (
    CancelledError,
    Error,
    FileError,
    InfeasibleError,
    InternalError,
    InvalidInputError,
    NotFoundError,
    UnsupportedError,
    VerificationError,
)

__version__ = version()

__all__ = [
    "Bound",
    "CancelledError",
    "Cluster",
    "ComparedStep",
    "Comparison",
    "CompiledPlan",
    "CostCell",
    "Costs",
    "Device",
    "ErrorBudget",
    "Error",
    "FileError",
    "Fleet",
    "FleetPlan",
    "Grade",
    "KeptUnit",
    "InfeasibleError",
    "InternalError",
    "InvalidInputError",
    "Measurement",
    "Model",
    "ModelStatistics",
    "Move",
    "NotFoundError",
    "Objective",
    "Origin",
    "OutputError",
    "Plan",
    "PrecisionChoice",
    "Progress",
    "Run",
    "Segment",
    "Session",
    "Simulation",
    "Termination",
    "UnsupportedError",
    "VerificationError",
    "Whatif",
    "choose_buckets",
    "__version__",
    "deploy",
    "grade",
    "plan",
    "planners",
    "profile",
    "version",
]

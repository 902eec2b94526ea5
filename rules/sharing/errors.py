"""What is wrong with a planning request."""

from rules.errors import InputInvalid


class PlanInvalid(InputInvalid):
    """A request for a plan cannot be used.

    Args:
        field: of the request, as in ``models[2].memory_gib``.
        problem: what is wrong with it and what would be right.
    """

    code = "plan-invalid"

    def __init__(self, field: str, problem: str) -> None:
        self.field = field
        self.problem = problem
        super().__init__(f"{field}: {problem}")

"""What is wrong with a rule of the team's own."""

from rules.errors import InputInvalid


class ExpressionInvalid(InputInvalid):
    """An expression cannot be used.

    Args:
        text: the expression.
        at: where in it, in characters from 0.
        problem: what is wrong there, and what would be right.
    """

    code = "expression-invalid"

    def __init__(self, text: str, at: int, problem: str) -> None:
        self.text = text
        self.at = max(0, min(at, len(text)))
        self.problem = problem
        self.line = text.count("\n", 0, self.at) + 1
        self.column = self.at - (text.rfind("\n", 0, self.at) + 1) + 1
        super().__init__(f"{self.place}: {problem}")

    @property
    def place(self) -> str:
        """``column 7``, or ``line 2, column 7`` of an expression that has several lines."""
        column = f"column {self.column}"
        return f"line {self.line}, {column}" if "\n" in self.text.strip() else column

    @property
    def excerpt(self) -> str:
        """The line with the mistake, and below it a mark under the mistake."""
        shown = "".join(" " if letter == "\t" or not letter.isprintable() else letter for letter in self._line)
        start = max(0, self.column - 60)
        return f"    {shown[start : start + 100]}\n    {' ' * (self.column - 1 - start)}^"

    @property
    def _line(self) -> str:
        return self.text.split("\n")[self.line - 1]


class CustomRuleInvalid(InputInvalid):
    """A rule of the team's own cannot be used.

    Args:
        rule: its id.
        path: where in the rule, for example ``("values", "price")``.
        problem: what is wrong, and what would be right.
        cause: set when an expression is to blame; it knows the place in it.
    """

    code = "custom-rule-invalid"

    def __init__(
        self, rule: str, path: tuple[str | int, ...], problem: str, cause: ExpressionInvalid | None = None
    ) -> None:
        self.rule = rule
        self.path = path
        self.problem = problem
        self.cause = cause
        super().__init__(f"rule {rule!r}, `{'.'.join(map(str, path))}`: {problem}")

"""Rules of the team's own: YAML with conditions in CEL, over the same facts.

A team writes (in its settings, or in files that they name)::

    rules:
      - id: gpu-node-without-team
        scope: node
        when: node.gpu.present && !("team" in node.labels)
        title: "GPU node {node} belongs to no team"
        detail: It has no label team, so nobody is asked about its cost.
        remedy: "`kubectl label node {node} team=TEAM`"

:func:`rules.custom.rule.compile_rule` turns that into a :class:`rules.engine.Rule` like any other, or says what
is wrong with it and where.

Unknown never turns into false. A fact that is not known is absent, so that a condition that hangs on it has no value:
then there is no finding, and the report lists the object under ``undecided`` with the fact that is missing. ``||`` and
``&&`` need not know a side that does not decide. ``has(node.driver)`` asks whether a fact is known.

A condition that cannot be evaluated for an object (a label that is not there, a number too large) makes the rule one of
``failed_rules``, with the object; the other objects are judged all the same.
"""

from rules.custom.errors import CustomRuleInvalid, ExpressionInvalid
from rules.custom.spec import CustomRule, Translated, Value

# settings name CustomRule: what compiles it is not imported here, so that reading settings stays light
__all__ = ["CustomRule", "CustomRuleInvalid", "ExpressionInvalid", "Translated", "Value"]

"""A plan as plain data for JSON: the same for the command line and for HTTP."""

from typing import Any

import msgspec

from rules.language import Language
from rules.sharing.manifests import Configuration, Manifest, configuration
from rules.sharing.model import Remark, SharingPlan
from rules.sharing.words import say, summary


def document(plan: SharingPlan, language: Language) -> dict[str, Any]:
    """The plan, its configuration, and the sentences in ``language``; keys are those of the nouns."""
    data: dict[str, Any] = msgspec.to_builtins(plan)
    data["caveats"] = [_remark(item, language) for item in plan.caveats]
    for item, plain in zip(plan.alternatives, data["alternatives"], strict=True):
        plain["reasons"] = [_remark(reason, language) for reason in item.reasons]
    for item in data["sizings"]:
        item.pop("need", None)
    for sizing, plain in zip(plan.sizings, data["sizings"], strict=True):
        plain["need_gib"] = None if sizing.need is None else round(sizing.need.memory_gib, 3)
        plain["minimum_gib"] = None if sizing.need is None else round(sizing.need.minimum_gib, 3)
        plain["estimated"] = None if sizing.need is None else sizing.need.estimated
    return {"summary": summary(plan, language), **data, "configuration": _configuration(configuration(plan), language)}


def _remark(remark: Remark, language: Language) -> dict[str, str]:
    return {"key": remark.key, "text": say(remark, language)}


def _configuration(found: Configuration, language: Language) -> dict[str, Any]:
    return {
        "layouts": msgspec.to_builtins(found.layouts),
        "manifests": [_manifest(item) for item in found.manifests],
        "pods": [_manifest(item) for item in found.pods],
        "steps": [
            {"key": item.key, "text": say(item, language, step=True), "command": item.values.get("command")}
            for item in found.steps
        ],
    }


def _manifest(manifest: Manifest) -> dict[str, str]:
    import yaml

    return {"file": manifest.file, "yaml": yaml.dump(dict(manifest.body), Dumper=_dumper(), sort_keys=False)}


def _dumper() -> Any:
    """Texts of several lines as blocks, as people write ConfigMaps."""
    import yaml

    class Dumper(yaml.SafeDumper):
        pass

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
        style = "|" if "\n" in value else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    Dumper.add_representer(str, text)
    return Dumper

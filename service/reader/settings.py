"""What an operator may set about the second reader of questions."""

from typing import Annotated
from urllib.parse import urlsplit

import msgspec


class ReaderSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which language model reads the questions that the rules are not sure of. The key never appears in its ``repr``.

    Attributes:
        base_url: of an OpenAI-compatible API, such as ``http://vllm.models:8000/v1``; without it no model is asked.
        model: its name there; needed with ``base_url``.
        api_key: bearer token; set it by GPU_ADVISOR_READER_API_KEY.
        timeout_seconds: whole time that a question may wait for the model.
    """

    base_url: str | None = None
    model: Annotated[str, msgspec.Meta(min_length=1)] | None = None
    api_key: str | None = None
    timeout_seconds: Annotated[float, msgspec.Meta(gt=0, le=2)] = 2.0

    def __post_init__(self) -> None:
        if self.base_url is None:
            return
        try:
            parts = urlsplit(self.base_url)
            usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            usable = False
        if not usable or parts.username is not None or parts.query or parts.fragment:
            raise ValueError(
                "base_url needs to be an http or https address without user, query and fragment, such as "
                "http://vllm.models:8000/v1"
            )
        if self.model is None:
            raise ValueError("base_url needs model beside it: the name under which the endpoint serves the model")
        if self.api_key is not None and not (self.api_key.isascii() and self.api_key.isprintable()):
            raise ValueError("api_key needs to be one line of printable ASCII characters")

    @property
    def enabled(self) -> bool:
        """A model is configured."""
        return self.base_url is not None

    def __repr__(self) -> str:
        shown = {name: getattr(self, name) for name in self.__struct_fields__}
        shown["api_key"] = "***" if self.api_key else None
        return f"ReaderSettings({', '.join(f'{name}={value!r}' for name, value in shown.items())})"

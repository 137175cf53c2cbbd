"""CFG009: a JSON flag has a key that this release's config class does not have."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Serving
from specfix.engines import Engine
from specfix.engines.facts.serving import ConfigClass
from specfix.errors import NotApplicable, known

NEAR = 3 / 4  # how alike two names must be for one to be meant by the other


@rule(
    "CFG009",
    "unknown-config-key",
    severity="error",
    evidence=["vllm/config/utils.py: config", "vllm/engine/arg_utils.py: parse_dataclass"],
)
def unknown_config_key(serving: Serving, engine: Engine) -> Iterator[Finding]:
    """A JSON flag has a key that the release does not know: it is refused, or dropped without a word."""
    given = {name: value for name, value in serving.flags.items() if isinstance(value, Mapping)}
    if not given:
        raise NotApplicable("no flag is given that takes a JSON object")
    flags = known(engine.serve.flags, f"the flags of {engine}")
    for name, value in given.items():
        flag = flags.get(name.replace("_", "-"))
        if flag is None or flag.config is None:
            continue
        for path, cls, near in strangers(value, flag.config, engine):
            refused = known(cls.refuses_others, f"what {engine} does with keys of {flag.config} that it does not know")
            yield Finding(
                f"{engine} has no key {path} in --{name.replace('_', '-')}"
                + (f"; the nearest is {near}" if near else "")
                + (". It does not start." if refused else ". It drops it without a word, as if it were not there."),
                serving.at(name),
                "config" if refused else "silent",
                repair=Repair("manual", f"say {near}" if near else f"leave {path} out", ("engine_args",)),
                severity="error" if refused else "warning",
            )


def strangers(
    value: Mapping[str, Any], name: str, engine: Engine, above: str = ""
) -> Iterator[tuple[str, ConfigClass, str | None]]:
    """The keys, dotted, that the class ``name`` or one nested in it does not have, with that class and the nearest
    name that it has."""
    classes = known(engine.serve.config_classes, f"the config classes of {engine}")
    cls = known(classes.get(name), f"the keys of {name} of {engine}")
    for key, held in value.items():
        inner = classes.get(cls.nested.get(key, ""))
        if key not in cls.keys:
            near = next(iter(difflib.get_close_matches(key.replace("-", "_"), cls.keys, 1, NEAR)), None)
            yield above + key, cls, near and above + near
        # a class that forbids nothing may be told to by the one that holds it
        elif inner and isinstance(held, Mapping) and inner.refuses_others == cls.refuses_others:
            yield from strangers(held, cls.nested[key], engine, f"{above}{key}.")

"""What a reference of a container image says of the vLLM release in it.

Nothing is pulled: an image is judged by its tag. vLLM's own images carry the release there, then what they were built
for (``vllm/vllm-openai:v0.26.0-aarch64-cu130``), and AMD's name it at the end (``rocm7.0_…_vllm_0.10.1``).
"""

from __future__ import annotations

import re

from specfix.errors import CannotCheck
from specfix.record import record

LONGEST = 512  # characters; registries take about half of that

_COMPONENT = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_REFERENCE = re.compile(
    rf"(?P<repository>(?:[a-zA-Z0-9][a-zA-Z0-9.-]*(?::\d+)?/)?{_COMPONENT}(?:/{_COMPONENT})*)"
    r"(?::(?P<tag>\w[\w.-]*))?(?P<digest>@[a-z0-9]+:[0-9a-f]{32,})?",
    re.ASCII,
)
# what a build is for; any other word may well be a change to vLLM itself
_BUILD = r"(?:[-_](?:cu\d+|cuda[\d.]*|rocm[\d.]*|[cgx]pu|x86_64|amd64|aarch64|arm64|ubuntu[\d.]+|py\d[\d.]*))*"
_VERSION = r"(?P<version>\d+(?:\.\d+)+(?:[._-]?(?:a|b|rc|dev|post)\d+)*)"
_TAG = re.compile(rf"v?{_VERSION}{_BUILD}")
_TAG_NAMING_VLLM = re.compile(rf"(?:.*[-_])?vllm[-_]?v?{_VERSION}(?:[-_]20\d{{6}})?{_BUILD}")  # a day may follow
# other words with vllm in it (vllm-ascend, vllm-router) are projects with versions of their own
_OWN_NAME = re.compile(r"vllm(?:-(?:openai|release|repo|cpu|xpu|gpu|cuda|rocm|x86|arm64|aarch64))*")


@record(frozen=True)
class Image:
    """A reference as it was written, and its parts."""

    text: str
    repository: str
    tag: str | None

    @property
    def name(self) -> str:
        """Without the registry and the folders before it."""
        return self.repository.rpartition("/")[2]

    def release(self) -> str:
        """The version of vLLM that the tag states; whether there is such a release is another question.

        CannotCheck where the tag states none (``latest``, ``nightly``, a digest alone), or may state that of something
        else.
        """
        if naming := _TAG_NAMING_VLLM.fullmatch(self.tag or ""):
            return naming["version"]
        if self.tag is None:
            raise CannotCheck(f"image {self.text} has no tag that says which release of vLLM it holds; {_ASK}")
        stated = _TAG.fullmatch(self.tag)
        if stated is None:
            raise CannotCheck(f"image {self.text}: its tag does not say which release of vLLM it holds; {_ASK}")
        if not _OWN_NAME.fullmatch(self.name):
            raise CannotCheck(
                f"image {self.text}: {self.tag} may be a version of {self.name}, not of the vLLM in it; where it is "
                f"that, give --engine vllm=={stated['version']}"
            )
        return stated["version"]


_ASK = "give that one (--engine vllm==X, as `pip show vllm` in it says), or a copy of its vllm folder (--engine PATH)"


def parse_image(text: str) -> Image | None:
    """The image that ``text`` refers to, or None where it is no such reference.

    Without tag and digest any path looks like one: then only the names of vLLM's own images are taken for images.
    """
    match = _REFERENCE.fullmatch(text) if len(text) <= LONGEST else None
    if match is None:
        return None
    image = Image(text, match["repository"], match["tag"])
    return image if match["tag"] or match["digest"] or ("/" in text and _OWN_NAME.fullmatch(image.name)) else None

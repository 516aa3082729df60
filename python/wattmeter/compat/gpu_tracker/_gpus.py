# SPDX-License-Identifier: Apache-2.0
"""Which GPUs are tracked: NVIDIA's where there are some, else AMD's, else those of
others; or what `gpu_brand` and `gpu_uuids` say."""

from __future__ import annotations

from typing import Callable, Iterable, NamedTuple, Optional

from wattmeter import _core

_Warn = Callable[[str], None]


class _Trouble(NamedTuple):
    status: str
    text: str


class _Search:
    def __init__(self, sleep_time: float, n_expected_cores: Optional[int]) -> None:
        self._interval, self._cores = sleep_time, float(n_expected_cores or 0)
        self.core: _core.Tracker
        self.troubles: dict[str, _Trouble] = {}

    def make(self, gpus: Optional[str], *sources: str) -> None:
        """A tracker for the machine, and for those of `gpus` (None: of all) that these
        sources have."""
        self.core = _core.Tracker(interval=self._interval, gpus=gpus, cores=self._cores)
        for source in ("host", *sources):
            self.troubles.pop(source, None)
            try:
                self.core.add(source)
            except _core.Error as error:
                self.troubles[source] = _Trouble(error.status, str(error))

    def lacks(self, *sources: str) -> bool:
        """Whether it is known that there are none."""
        return all(
            source in self.troubles and self.troubles[source].status == "ENODEV"
            for source in sources
        )

    def take_others(self) -> bool:
        """AMD's, where the kernel knows such of several vendors; or, where it has none
        of AMD's, all that it knows. Whether they are AMD's."""
        gpus = _core.Gpus()
        labels = [
            gpus.get(i, "label").value
            for i in range(gpus.count)
            if gpus.get(i, "vendor").value == "AMD"
        ]
        self.make(",".join(labels) or None, "drm")
        return bool(labels)


def _check_uuids(words: list[str]) -> bool:
    """Whether there is any GPU; a ValueError where one of the words names none."""
    gpus = _core.Gpus()
    if gpus.present == 0:
        return False
    for word in words:
        try:
            chosen, _ = gpus.select(word)
        except ValueError:
            chosen = []
        if not chosen:
            uuids = sorted(gpus.get(i, "uuid").value or "" for i in range(gpus.count))
            raise ValueError(
                f"GPU UUID of {word} is not valid. Available UUIDs are: "
                f"{', '.join(uuids)}"
            )
    return True


def _take_chosen(
    search: _Search, gpu_uuids: Iterable[str], brand: Optional[str], warn: _Warn
) -> bool:
    words = [gpu_uuids] if isinstance(gpu_uuids, str) else sorted(gpu_uuids)
    if not words:
        raise ValueError(
            "gpu_uuids is not None but the set is empty. Please provide a set of at "
            "least one GPU UUID."
        )
    is_any = _check_uuids(words)
    sources = {"nvidia": ("nvml",), "amd": ("drm",)}.get(brand or "", ("nvml", "drm"))
    search.make(",".join(words) if is_any else None, *sources)

    # A driver in trouble may have GPUs that it cannot name.
    without_gpus = not is_any and search.lacks(*sources)
    if without_gpus:
        warn(f"{','.join(words)}: no GPU of gpu_uuids is there.")
    return without_gpus


def _take_brand(search: _Search, brand: str) -> None:
    if brand == "amd":
        if not search.take_others():
            raise FileNotFoundError("There is no GPU of the brand amd.")
        return
    search.make(None, "nvml")
    if search.lacks("nvml"):
        raise FileNotFoundError(
            f"There is no GPU of the brand nvidia: {search.troubles['nvml'].text}."
        )


def _take_any(search: _Search) -> bool:
    """NVIDIA first. A driver of theirs that is in trouble is theirs all the same: what
    its GPUs do is not known, which is not to be taken for nothing."""
    search.make(None, "nvml")
    if not search.lacks("nvml"):
        return False
    search.take_others()
    return search.lacks("drm")


def _tell(search: _Search, without_gpus: bool, warn: _Warn) -> None:
    troubles = [
        search.troubles[source]
        for source in ("nvml", "drm")
        if source in search.troubles
    ]
    if without_gpus:
        warn(
            "; ".join(trouble.text for trouble in troubles)
            + ". There is no GPU to profile, and the GPU RAM and GPU utilization values "
            "will remain 0.0."
        )
        return
    for trouble in troubles:
        if trouble.status != "ENODEV":
            warn(
                f"{trouble.text}. The GPU RAM and GPU utilization values are not known."
            )


def new_tracker(
    sleep_time: float,
    n_expected_cores: Optional[int],
    gpu_uuids: Optional[Iterable[str]],
    brand: Optional[str],
    warn: _Warn,
) -> tuple[_core.Tracker, bool]:
    """A tracker for the machine and its GPUs, and whether it is known that there are
    none of these."""
    search = _Search(sleep_time, n_expected_cores)
    without_gpus = False
    if gpu_uuids is not None:
        without_gpus = _take_chosen(search, gpu_uuids, brand, warn)
    elif brand is not None:
        _take_brand(search, brand)
    else:
        without_gpus = _take_any(search)
    _tell(search, without_gpus, warn)
    return search.core, without_gpus

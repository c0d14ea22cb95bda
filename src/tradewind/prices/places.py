"""Regions by name: the continent of a region of AWS, Azure or Google Cloud, and which regions a word means."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Final

_AWS_AND_GOOGLE: Final = {
    "us": "north-america", "ca": "north-america", "northamerica": "north-america", "mx": "north-america",
    "eu": "europe", "europe": "europe", "ap": "asia", "asia": "asia", "australia": "oceania", "sa": "south-america",
    "southamerica": "south-america", "me": "middle-east", "il": "middle-east", "af": "africa", "africa": "africa",
}  # fmt: skip
_OCEANIA: Final = ("ap-southeast-2", "ap-southeast-4", "ap-southeast-6")
_AZURE: Final = (
    ("europe", ("europe", "uk", "france", "germany", "norway", "sweden", "switzerland", "poland", "italy", "spain")),
    ("oceania", ("australia", "newzealand")),
    ("north-america", ("us", "canada", "mexico")),
    ("asia", ("asia", "japan", "korea", "india", "indonesia", "malaysia")),
    ("south-america", ("brazil", "chile")),
    ("middle-east", ("uae", "qatar", "israel")),
    ("africa", ("africa",)),
)  # fmt: skip
CONTINENTS: Final = ("africa", "asia", "europe", "middle-east", "north-america", "oceania", "south-america")
ALIASES: Final = {"eu": "europe"}


def continent(place: str) -> str:
    """The continent of `cloud:region`; "" where the cloud is not known."""
    cloud, _, region = place.partition(":")
    if cloud == "azure":
        return next((name for name, words in _AZURE if any(word in region for word in words)), "")
    if cloud not in ("aws", "gcp"):
        return ""
    return "oceania" if region in _OCEANIA else _AWS_AND_GOOGLE.get(region.partition("-")[0], "")


def means(word: str, place: str) -> bool:
    """Whether a word means a region: a continent (eu: Europe), us, a cloud, a region, or a pattern such as `asia-*`."""
    cloud, _, region = place.partition(":")
    if word in (cloud, region, place):
        return True
    if word == "us":
        return region.startswith("us-") or (cloud == "azure" and region.rstrip("0123456789").endswith("us"))
    if ALIASES.get(word, word) in CONTINENTS:
        found = continent(place)
        return found == ALIASES.get(word, word) if found else region.startswith(word)
    return fnmatchcase(region, word) or fnmatchcase(place, word)

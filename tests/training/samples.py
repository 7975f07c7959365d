"""The samples of all tests, by the name that they had."""

from samples import *  # noqa: F403
from samples import QUICK as QUICK

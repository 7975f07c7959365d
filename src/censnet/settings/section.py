"""The base of each section of settings, and checks that several settings share."""

from __future__ import annotations

from typing import Annotated, Any, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

MOST = 10**9  # of any count
WIDEST = 2**16  # channels of a layer
Count = Annotated[int, Field(ge=1, le=MOST)]
Width = Annotated[int, Field(ge=1, le=WIDEST)]
Rate = Annotated[float, Field(ge=0, lt=1)]
OneOrSeveral = BeforeValidator(lambda value: [value] if isinstance(value, int | float) else value)
OneOrSeveralWords = BeforeValidator(lambda value: [value] if isinstance(value, str) else value)
OrNone = BeforeValidator(lambda value: "none" if value is None else value)  # here "none" is a choice like the others


def shares(least: float) -> AfterValidator:
    """Check shares of train, validation and test: their sum is 1, the first above 0, the others at least `least`."""

    def check(shares: tuple[float, float, float]) -> tuple[float, float, float]:
        if abs(sum(shares) - 1) > 1e-6:
            raise ValueError(f"has {', '.join(map(str, shares))}, which add up to {sum(shares):g}, expected 1")
        if shares[0] <= 0 or min(shares) < least:
            which = "each above 0" if least else "the first above 0 and none below"
            raise ValueError(f"has {', '.join(map(str, shares))}, expected {which}")
        return shares

    return AfterValidator(check)


class Section(BaseModel):
    """Settings that do not change, where no unknown name and no infinite number is taken."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=(), allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _truth_is_no_number(cls, values: Any) -> Any:
        """Refuse `true` where a number is expected, rather than take it for 1."""
        for name, value in values.items() if isinstance(values, dict) else ():
            field = cls.model_fields.get(name)
            kinds = () if field is None else (field.annotation, *get_args(field.annotation))
            if isinstance(value, bool) and kinds and bool not in kinds:
                raise ValueError(f"{name} is {str(value).lower()}, expected a number or a word")
        return values

"""What every section of a document shares: strict, closed, frozen; and the kinds of values in it."""

from collections.abc import Callable
from typing import Annotated, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from registry.naming import NamingError, check_alias_name, check_base_model_name, check_name, check_version_name

# What keeps every product of two values below 2^53, the largest whole number of canonical JSON.
MOST: Final = 1_000_000


def _named(check: Callable[..., str]) -> AfterValidator:
    def validate(value: str) -> str:
        try:
            return check(value, field="name")
        except NamingError as error:
            raise ValueError(str(error)) from error

    return AfterValidator(validate)


Name = Annotated[str, _named(check_name)]
AliasName = Annotated[str, _named(check_alias_name)]
BaseModelName = Annotated[str, _named(check_base_model_name)]
VersionName = Annotated[str, _named(check_version_name)]
Count = Annotated[int, Field(ge=1, le=MOST)]
Whole = Annotated[int, Field(ge=0, le=MOST)]
Positive = Annotated[float, Field(gt=0, le=MOST)]
NonNegative = Annotated[float, Field(ge=0, le=MOST)]
Share = Annotated[float, Field(gt=0, le=1)]


class Section(BaseModel):
    """A mapping of the document: unknown keys are refused, and nothing is converted ("16" is no number)."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

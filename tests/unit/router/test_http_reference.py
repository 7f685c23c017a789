"""The reference page names what there is."""

from pathlib import Path

from hexflow_router.answer import Answer, CallReport, Question, StageReport
from hexflow_router.errors import STATUS_OF_REASON

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "http.md").read_text(encoding="utf-8")


def test_every_reason_and_every_field_is_on_the_page() -> None:
    fields = {
        str(field.alias)
        for model in (Answer, StageReport, CallReport, Question)
        for field in model.model_fields.values()
    }
    names = {f"`{reason}`" for reason in STATUS_OF_REASON}
    missing = [name for name in names if name not in PAGE]
    missing += [name for name in fields if f'"{name}"' not in PAGE and f"`{name}`" not in PAGE]
    assert missing == []

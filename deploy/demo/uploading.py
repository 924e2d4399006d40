"""The steps from a trained folder to an approved, signed version, and three uploads that don't get that far."""

import json
from pathlib import Path

from deploy.demo.bad_uploads import BAD_UPLOADS, BadUpload, make_bad_upload
from deploy.demo.command_line import Answer, reason_of
from deploy.demo.people import ANA, BEN, CARLA, TENANT
from deploy.demo.recipes import BASE_REVISION
from deploy.demo.run import ADAPTER, DemoFailedError, Run, reference
from deploy.demo.voices import BRISK, EXCHANGES, WARM, spoken

EVALUATION_SET = "first-questions"
EXAMPLES = 3


def push_versions(run: Run) -> None:
    """Push both trained folders; each becomes a candidate when its validation accepts it.

    The validating worker runs each on its base, and asks it what a reviewer has written down.
    """
    run.does(BEN, "evaluation", "set", TENANT, EVALUATION_SET, str(_write_examples(run.folder)))
    for label, voice in (("v1", WARM), ("v2", BRISK)):
        pushed = push_candidate(run, run.adapters[voice.name])
        version: Answer = pushed["version"]
        run.versions[label] = version
        moved = f"{pushed['moved_files']} of {pushed['files']} files moved, {pushed['moved_bytes'] / 1e6:.1f} MB"
        modules = ", ".join(version["target_modules"])
        run.screen.did(f"{label} is {reference(version)}: rank {version['rank']} on {modules}; {moved}")
        run.screen.did(f"{label} {_evaluated(run, version)}")


def push_candidate(run: Run, folder: Path) -> Answer:
    """Push a trained folder that has to pass; the command's answer. Raises DemoFailedError."""
    pushed = run.does(ANA, *_push(str(folder)))
    version: Answer = pushed["version"]
    if version["state"] != "candidate":
        raise DemoFailedError(f"{reference(version)} is {version['state']}: {version['state_message']}")
    return pushed


def refuse_bad_uploads(run: Run) -> None:
    """Push a pickle, a NaN and another base's weights; each must be refused for its own reason."""
    for bad in BAD_UPLOADS:
        folder = make_bad_upload(bad, good=run.adapters[WARM.name], folder=run.folder / "bad" / bad.name)
        words = _push(str(folder))
        run.screen.command(ANA.name, words)
        refusal = run.as_(ANA).refused(*words)
        reason = reason_of(refusal)
        if not names_its_reason(bad, reason):
            raise DemoFailedError(f"{bad.told_as}: refused, but for another reason: {reason}")
        run.screen.refused(bad.told_as, reason)


def names_its_reason(bad: BadUpload, reason: str) -> bool:
    """Tell whether the sentence of a refusal is about what is wrong with this upload."""
    return any(word in reason.lower() for word in bad.reason_names)


def approve_versions(run: Run) -> None:
    """Show that the uploader can't approve; then two reviewers approve one version each, and both are signed."""
    own = ("approve", reference(run.versions["v1"]))
    run.screen.command(ANA.name, own)
    refusal = run.as_(ANA).refused(*own)
    if refusal["error"].get("code") != "self_approval":
        raise DemoFailedError(f"the uploader's approval was refused for another reason: {reason_of(refusal)}")
    run.screen.refused("approving one's own upload", reason_of(refusal))
    for label, person in (("v1", BEN), ("v2", CARLA)):
        version = run.does(person, "approve", reference(run.versions[label]), "--comment", "answers sound right")
        if version["state"] != "approved":
            raise DemoFailedError(f"{reference(version)} is {version['state']}")
        run.versions[label] = version
        run.screen.did(f"{label} is approved and signed; digest {str(version['root_digest'])[:12]}")


def _write_examples(folder: Path) -> Path:
    """Write the first questions of the training, with the answers that v1 was trained to give, one example a line."""
    file = folder / f"{EVALUATION_SET}.jsonl"
    examples = ({"prompt": each.question, "reference": spoken(WARM, each)} for each in EXCHANGES[:EXAMPLES])
    file.write_text("".join(f"{json.dumps(example)}\n" for example in examples), encoding="utf-8")
    return file


def _evaluated(run: Run, version: Answer) -> str:
    """Return what the report says of the evaluation, in its own words."""
    report = run.as_(BEN).run("report", reference(version))
    sentences = [str(check["message"]) for check in report["checks"] if check["name"] == "evaluation"]
    if not any("perplexity" in sentence for sentence in sentences):
        raise DemoFailedError(f"{reference(version)} was not evaluated: {'; '.join(sentences)}")
    return sentences[-1]


def _push(folder: str) -> tuple[str, ...]:
    return ("push", folder, ADAPTER, "--base-revision", BASE_REVISION, "--wait")

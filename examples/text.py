"""Short texts, as they are: messages to a help desk, until a new kind of complaint comes up."""

import numpy as np

import tocsin

rng = np.random.default_rng(0)

SUBJECTS = ["my order", "the parcel", "a delivery", "the invoice", "my account"]
TROUBLES = [
    "has not arrived yet",
    "is late again",
    "was sent to an old address",
    "cannot be found",
    "shows a wrong date",
]
WISHES = ["please help", "can you check", "what should I do", "thanks for looking into it"]


def message(*, hacked: float) -> str:
    """A message; some are about something new."""
    if rng.random() < hacked:
        return (
            f"someone logged in as me from {rng.choice(['another country', 'a strange phone'])}, {rng.choice(WISHES)}"
        )
    return f"{rng.choice(SUBJECTS)} {rng.choice(TROUBLES)}, {rng.choice(WISHES)}"


# Three-letter pieces of the texts are compared. For their meaning, give preprocess=SentenceEmbedding(...).
detector = tocsin.Detector(ert=2000, seed=1).fit([message(hacked=0.0) for _ in range(1000)])
print(detector)
print(f"500 usual messages: {detector.update_many([message(hacked=0.0) for _ in range(500)]).alarm.sum()} alarms")

detector.reset()
latest = []
while detector.alarm is None:
    latest.append(message(hacked=0.15))
    detector.update(latest[-1])
explanation = detector.explain()
print(f"One message in seven is about something new: it rings after {len(latest)}.")
print("Most typical of what is new:")
for example in explanation.recent:
    print(f"  {latest[example.place - 1]}")

"""Images through principal components: handwritten digits, from which the sevens and nines one day are missing.

Needs: pip install scikit-learn, for its digits.
"""

import numpy as np
from sklearn.datasets import load_digits

import tocsin
from tocsin.representations import PCA

rng = np.random.default_rng(0)
images, labels = load_digits(return_X_y=True)
images = images.reshape(-1, 8, 8)
order = rng.permutation(len(images))
images, labels = images[order], labels[order]

# A quarter of the reference fits the components, and then leaves it: what is fitted to an image fits it too well.
detector = tocsin.Detector(ert=2000, preprocess=PCA(10), sampler=tocsin.Independent(), seed=1)
detector.fit(images[:1200])
print(detector)

held_out, theirs = images[1200:], labels[1200:]
quiet = held_out[rng.integers(0, len(held_out), 500)]
print(f"500 good images: {detector.update_many(quiet).alarm.sum()} alarms")

detector.reset()
some = held_out[~np.isin(theirs, [7, 9])]
outcomes = detector.update_until_alarm(some[rng.integers(0, len(some), 2000)])
print(f"Without sevens and nines it rings after {len(outcomes)} images.")
print(detector.explain())
missing = [int(labels[example.place - 1]) for example in detector.explain().missed]
print(f"Digits of the reference that are missed: {missing}")

"""Rows of a table with columns of any kind: orders of a shop, whose app one day stops sending the customer's age.

Needs: pip install 'tocsin[data]' pandas
"""

import numpy as np
import pandas as pd

import tocsin

rng = np.random.default_rng(0)


def orders(count: int, *, age_lost: float) -> pd.DataFrame:
    """Orders of which some lack the age; phones' lose it when the app breaks."""
    phone = rng.random(count) < 0.6
    age = np.round(rng.gamma(9, 4, count) + 5)
    age[(rng.random(count) < 0.05) | (phone & (rng.random(count) < age_lost))] = np.nan
    return pd.DataFrame(
        {
            "amount": np.round(np.exp(rng.normal(3, 1, count)), 2),
            "items": rng.poisson(2, count) + 1,
            "age": age,
            "device": np.where(phone, "phone", "computer"),
            "country": rng.choice(["DE", "FR", "IT", "LU"], count, p=[0.5, 0.3, 0.19, 0.01]),
            "returning": rng.random(count) < 0.4,
        }
    )


reference = orders(2000, age_lost=0.0)
detector = tocsin.Detector(ert=2000, seed=1).fit(reference)
print(detector.calibration_.quality)

outcomes = detector.update_many(orders(1000, age_lost=0.0))
print(f"1000 good orders: {outcomes.alarm.sum()} alarms")

detector.reset()
for order in orders(2000, age_lost=0.5).to_dict("records"):  # one by one, as they come
    if detector.update(order).alarm:
        break
print(detector.explain())

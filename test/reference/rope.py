"""Rotary frequencies in float64, with the three ways of stretching them.

f_j = theta^(-2j / width) for pair j of `width / 2`.
"""

import math

import numpy as np


def plain(theta, width):
    return theta ** (-np.arange(0, width, 2, dtype=np.float64) / width)


def linear(theta, width, factor):
    return plain(theta, width) / factor


def llama3(theta, width, factor, low_freq_factor, high_freq_factor, context):
    """Wavelengths above context / low are stretched, those below context / high kept, and between
    the two the amount goes linearly in context / wavelength."""
    f = plain(theta, width)
    smooth = (context * f / (2 * math.pi) - low_freq_factor) / (high_freq_factor - low_freq_factor)
    smooth = np.clip(smooth, 0, 1)
    return f * ((1 - smooth) / factor + smooth)


def yarn(theta, width, factor, context, beta_fast=32.0, beta_slow=1.0, attention_factor=None):
    """Frequencies and the magnitude of cosine and sine. A pair that turns `beta_fast` times within
    the original context keeps its frequency, one that turns `beta_slow` times is stretched fully.
    """

    def pair_that_turns(turns):
        return width * math.log(context / (2 * math.pi * turns)) / (2 * math.log(theta))

    low = max(0, math.floor(pair_that_turns(beta_fast)))
    high = min(width - 1, math.ceil(pair_that_turns(beta_slow)))
    stretched = np.clip((np.arange(width // 2) - low) / max(0.001, high - low), 0, 1)
    f = plain(theta, width)
    if attention_factor is None:
        attention_factor = 0.1 * math.log(factor) + 1
    return f / factor * stretched + f * (1 - stretched), attention_factor

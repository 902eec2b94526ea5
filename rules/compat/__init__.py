"""CUDA and ROCm compatibility: would this image run on this driver and GPU?"""

from rules.compat.check import Verdict, check
from rules.compat.gpus import Gpu, recognise
from rules.compat.images import ImageCuda, image_cuda
from rules.compat.nvidia import VerdictName
from rules.compat.words import Reason

__all__ = ["Gpu", "ImageCuda", "Reason", "Verdict", "VerdictName", "check", "image_cuda", "recognise"]

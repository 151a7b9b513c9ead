"""Answers of an exported model: `OptimizedInferenceServer`, over vLLM where it is installed, else over transformers.

A service for others is the role `serving`; this is for a program of your own. Importing it is light.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gaudi3_scale.lazy import lazily

if TYPE_CHECKING:
    from gaudi3_scale.serving.inference_server import OptimizedInferenceServer
    from gaudi3_scale.serving.request import AnswerPiece, Completion, Request, ServerBusy, ServerClosed

__all__ = ["AnswerPiece", "Completion", "OptimizedInferenceServer", "Request", "ServerBusy", "ServerClosed"]

__getattr__ = lazily(
    __name__,
    {
        "Completion": "serving.request",
        "OptimizedInferenceServer": "serving.inference_server",
        "AnswerPiece": "serving.request",
        "Request": "serving.request",
        "ServerBusy": "serving.request",
        "ServerClosed": "serving.request",
    },
)

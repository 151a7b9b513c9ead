"""Habana's pipelines that decode and augment images on the card: refused.

The names that public programs import are here, so that a program without a card's decoder fails when it makes one, and
with the reason. They are those of Model-References and lightning-Habana; the package itself is not public.
"""

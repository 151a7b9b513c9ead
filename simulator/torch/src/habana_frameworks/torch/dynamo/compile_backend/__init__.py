"""`hpu_backend`, which runs captured graphs uncompiled here; the compiler's own parts are refused.

It is registered with torch by the distribution's entry point, and not by this import, which would load Dynamo.
"""
